#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gspmd {

// HLO's maximum and minimum: NaN if either is, and -0 below +0. Written with masks, so that loops
// over them become vectors.
template <typename T>
T maximum_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr Bits kNan = std::bit_cast<Bits>(std::numeric_limits<T>::quiet_NaN());
    const Bits a = std::bit_cast<Bits>(x), b = std::bit_cast<Bits>(y);
    const Bits first = x > y ? ~Bits{0} : 0, second = y > x ? ~Bits{0} : 0;
    const Bits nan = (x != x ? kNan : 0) | (y != y ? kNan : 0);
    // Where neither is larger they are equal, or zeros of either sign.
    return std::bit_cast<T>((a & first) | (b & second) | (a & b & ~(first | second)) | nan);
  } else {
    return x > y ? x : y;
  }
}

template <typename T>
T minimum_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr Bits kNan = std::bit_cast<Bits>(std::numeric_limits<T>::quiet_NaN());
    const Bits a = std::bit_cast<Bits>(x), b = std::bit_cast<Bits>(y);
    const Bits first = x < y ? ~Bits{0} : 0, second = y < x ? ~Bits{0} : 0;
    const Bits nan = (x != x ? kNan : 0) | (y != y ? kNan : 0);
    return std::bit_cast<T>((a & first) | (b & second) | ((a | b) & ~(first | second)) | nan);
  } else {
    return x < y ? x : y;
  }
}

// An integer whose order is the float's total order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
inline int32_t total_order(float x) {
  auto bits = std::bit_cast<int32_t>(x);
  return bits ^ static_cast<int32_t>(static_cast<uint32_t>(bits >> 31) >> 1);
}
inline int64_t total_order(double x) {
  auto bits = std::bit_cast<int64_t>(x);
  return bits ^ static_cast<int64_t>(static_cast<uint64_t>(bits >> 63) >> 1);
}

}  // namespace gspmd
