#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace gspmd {

// HLO's maximum and minimum: NaN if either is, and -0 below +0.
template <typename T>
T maximum_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    T both = std::bit_cast<T>(std::bit_cast<Bits>(x) & std::bit_cast<Bits>(y));  // x == y
    T larger = x > y ? x : y > x ? y : both;
    return x != x || y != y ? x + y : larger;
  } else {
    return x > y ? x : y;
  }
}

template <typename T>
T minimum_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    T both = std::bit_cast<T>(std::bit_cast<Bits>(x) | std::bit_cast<Bits>(y));  // x == y
    T smaller = x < y ? x : y < x ? y : both;
    return x != x || y != y ? x + y : smaller;
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
