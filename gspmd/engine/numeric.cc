#include "gspmd/engine/numeric.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "gspmd/base/check.h"
#include "gspmd/engine/small_float.h"

namespace gspmd {
namespace {

template <typename Stored, typename L>
void widen(const std::byte* from, int64_t n, void* to) {
  const auto* x = reinterpret_cast<const Stored*>(from);
  auto* y = static_cast<L*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<L>(x[i]);
}

template <typename Stored, typename L>
void narrow(const void* from, int64_t n, std::byte* to) {
  const auto* x = static_cast<const L*>(from);
  auto* y = reinterpret_cast<Stored*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Stored>(x[i]);
}

// Integers of less than a byte, sign- or zero-extended to it.
template <typename Stored, typename L>
void narrow_bits(const void* from, int64_t n, int bits, std::byte* to) {
  const auto* x = static_cast<const L*>(from);
  auto* y = reinterpret_cast<Stored*>(to);
  const int unused = 8 - bits;
  for (int64_t i = 0; i < n; ++i) {
    auto top = static_cast<uint8_t>(static_cast<uint8_t>(x[i]) << unused);
    y[i] = static_cast<Stored>(static_cast<Stored>(top) >> unused);
  }
}

void load_small_floats(ElementType type, const std::byte* from, int64_t n, float* to) {
  const auto* half = reinterpret_cast<const uint16_t*>(from);
  if (type == ElementType::kBF16) {
    for (int64_t i = 0; i < n; ++i) to[i] = f32_of_bf16(half[i]);
  } else if (type == ElementType::kF16) {
    for (int64_t i = 0; i < n; ++i) to[i] = f32_of_f16(half[i]);
  } else {
    const SmallFloatTable& table = small_float_table(type);
    for (int64_t i = 0; i < n; ++i) to[i] = table.values[static_cast<uint8_t>(from[i])];
  }
}

void store_small_floats(ElementType type, const float* from, int64_t n, std::byte* to) {
  auto* half = reinterpret_cast<uint16_t*>(to);
  if (type == ElementType::kBF16) {
    for (int64_t i = 0; i < n; ++i) half[i] = bf16_of_f32(from[i]);
  } else if (type == ElementType::kF16) {
    for (int64_t i = 0; i < n; ++i) half[i] = f16_of_f32(from[i]);
  } else {
    const SmallFloatTable& table = small_float_table(type);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(table.code_of(from[i]));
  }
}

// Lowest and highest value of an integer type.
template <typename T>
void bounds(ElementType type, T* lowest, T* highest) {
  const int bits = bits_of(type);
  if (class_of(type) == TypeClass::kSigned) {
    *highest = static_cast<T>((uint64_t{1} << (bits - 1)) - 1);
    *lowest = static_cast<T>(-static_cast<int64_t>(*highest) - 1);
  } else {
    *lowest = 0;
    *highest = static_cast<T>(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  }
}

// A float as an integer: truncated, saturated, NaN as 0. I is the lane of `type`.
template <typename I, typename F>
void truncate(ElementType type, const F* x, int64_t n, I* y) {
  I lowest, highest;
  bounds(type, &lowest, &highest);
  // The bounds plus or minus one are exact in F, or too large for the difference to matter.
  const F below = static_cast<F>(lowest), above = static_cast<F>(highest);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) {
      y[i] = 0;
    } else if (x[i] <= below) {
      y[i] = lowest;
    } else if (x[i] >= above) {
      y[i] = highest;
    } else {
      y[i] = static_cast<I>(x[i]);
    }
  }
}

// An integer that goes to a type below f32: rounded to odd first, so that rounding happens once.
template <typename I>
float odd_float(I x) {
  auto direct = static_cast<float>(x);
  if (std::fabs(direct) < 0x1p24f) return direct;
  auto wide = static_cast<long double>(x);  // 64 bits: exact
  auto nearest = static_cast<double>(wide);
  if (static_cast<long double>(nearest) == wide) return f32_to_odd(nearest);
  uint64_t bits = std::bit_cast<uint64_t>(nearest);
  bool grown = std::fabs(static_cast<long double>(nearest)) > std::fabs(wide);
  return f32_to_odd(std::bit_cast<double>((grown ? bits - 1 : bits) | 1));
}

template <typename T>
constexpr bool kIsComplex = !std::is_arithmetic_v<T>;

// One lane to another, for `convert` to `type` (whose lane is To's, or the lane that its is made
// from).
template <typename From, typename To>
void convert_lanes(ElementType type, const From* x, int64_t n, To* y) {
  if constexpr (kIsComplex<From> && kIsComplex<To>) {
    for (int64_t i = 0; i < n; ++i) y[i] = To(x[i]);
  } else if constexpr (kIsComplex<From>) {
    GSPMD_CHECK(false, "complex converted to real");
  } else if constexpr (kIsComplex<To>) {
    for (int64_t i = 0; i < n; ++i) y[i] = To(static_cast<typename To::value_type>(x[i]));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    truncate(type, x, n, y);
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
    bool rounds_again = !is_native(type);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = rounds_again ? f32_to_odd(x[i]) : static_cast<float>(x[i]);
    }
  } else if constexpr (std::is_integral_v<From> && std::is_same_v<To, float>) {
    bool rounds_again = !is_native(type);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = rounds_again ? odd_float(x[i]) : static_cast<float>(x[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
  }
}

void to_pred(Lane lane, const void* from, int64_t n, uint8_t* to) {
  with_lane_type(lane, [&](auto zero) {
    const auto* x = static_cast<const decltype(zero)*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = x[i] != zero ? 1 : 0;
  });
}

void convert_chunk(ElementType type, Lane from_lane, const void* from, int64_t n, void* to) {
  Lane to_lane = lane_of(type);
  if (to_lane == Lane::kPred) return to_pred(from_lane, from, n, static_cast<uint8_t*>(to));
  with_lane_type(from_lane, [&](auto f) {
    with_lane_type(to_lane, [&](auto t) {
      convert_lanes(type, static_cast<const decltype(f)*>(from), n, static_cast<decltype(t)*>(to));
    });
  });
}

}  // namespace

Lane lane_of(ElementType type) {
  const bool wide = bits_of(type) == 64;
  switch (class_of(type)) {
    case TypeClass::kPredicate:
      return Lane::kPred;
    case TypeClass::kSigned:
      return wide ? Lane::kS64 : Lane::kS32;
    case TypeClass::kUnsigned:
      return wide ? Lane::kU64 : Lane::kU32;
    case TypeClass::kFloat:
      return wide ? Lane::kF64 : Lane::kF32;
    case TypeClass::kComplex:
      return wide ? Lane::kC64 : Lane::kC128;
    case TypeClass::kOther:
      break;
  }
  GSPMD_CHECK(false, "no array type: " + std::string(name_of(type)));
}

int bytes_of(Lane lane) {
  return with_lane_type(lane, [](auto zero) { return static_cast<int>(sizeof(zero)); });
}

Lane wide_lane(Lane lane) {
  switch (lane) {
    case Lane::kS32:
      return Lane::kS64;
    case Lane::kU32:
      return Lane::kU64;
    case Lane::kF32:
      return Lane::kF64;
    case Lane::kC64:
      return Lane::kC128;
    default:
      return lane;
  }
}

bool is_native(ElementType type) { return storage_bytes(type) == bytes_of(lane_of(type)); }

void load_lanes(ElementType type, const std::byte* from, int64_t n, void* to) {
  if (n == 0) return;  // there may be no memory
  if (is_native(type)) {
    std::memcpy(to, from, static_cast<size_t>(n * storage_bytes(type)));
  } else if (is_float(type)) {
    load_small_floats(type, from, n, static_cast<float*>(to));
  } else if (class_of(type) == TypeClass::kSigned) {
    bits_of(type) == 16 ? widen<int16_t, int32_t>(from, n, to)
                        : widen<int8_t, int32_t>(from, n, to);
  } else {
    bits_of(type) == 16 ? widen<uint16_t, uint32_t>(from, n, to)
                        : widen<uint8_t, uint32_t>(from, n, to);
  }
}

void store_lanes(ElementType type, const void* from, int64_t n, std::byte* to) {
  if (n == 0) return;  // there may be no memory
  const int bits = bits_of(type);
  const bool is_signed = class_of(type) == TypeClass::kSigned;
  if (is_native(type)) {
    std::memcpy(to, from, static_cast<size_t>(n * storage_bytes(type)));
  } else if (is_float(type)) {
    store_small_floats(type, static_cast<const float*>(from), n, to);
  } else if (bits == 16) {
    narrow<uint16_t, uint32_t>(from, n, to);  // the same bits for either sign
  } else if (bits == 8) {
    narrow<uint8_t, uint32_t>(from, n, to);
  } else if (is_signed) {
    narrow_bits<int8_t, int32_t>(from, n, bits, to);
  } else {
    narrow_bits<uint8_t, uint32_t>(from, n, bits, to);
  }
}

void load_as(ElementType type, const std::byte* from, int64_t n, Lane lane, void* to) {
  const Lane own = lane_of(type);
  if (own == lane) return load_lanes(type, from, n, to);
  alignas(64) std::byte chunk[kChunk * kMaxLaneBytes];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    load_lanes(type, from + begin * storage_bytes(type), count, chunk);
    with_lane_type(own, [&](auto f) {
      with_lane_type(lane, [&](auto t) {
        using From = decltype(f);
        using To = decltype(t);
        if constexpr (kIsComplex<From> == kIsComplex<To>) {
          const auto* x = reinterpret_cast<const From*>(chunk);
          auto* y = static_cast<To*>(to) + begin;
          for (int64_t i = 0; i < count; ++i) y[i] = static_cast<To>(x[i]);
        }
      });
    });
  }
}

void store_from(ElementType type, Lane lane, const void* from, int64_t n, std::byte* to) {
  const Lane own = lane_of(type);
  if (own == lane) return store_lanes(type, from, n, to);
  alignas(64) std::byte chunk[kChunk * kMaxLaneBytes];
  const auto* bytes = static_cast<const std::byte*>(from);
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    const std::byte* part = bytes + begin * bytes_of(lane);
    const bool integers = !is_float(lane) && !is_complex(lane) && own != Lane::kPred;
    if (integers) {  // wraps
      with_lane_type(lane, [&](auto f) {
        with_lane_type(own, [&](auto t) {
          if constexpr (std::is_integral_v<decltype(f)> && std::is_integral_v<decltype(t)>) {
            narrow<decltype(t), decltype(f)>(part, count, chunk);
          }
        });
      });
    } else {
      convert_chunk(type, lane, part, count, chunk);
    }
    store_lanes(type, chunk, count, to + begin * storage_bytes(type));
  }
}

void convert_elements(ElementType from_type, const std::byte* from, int64_t n, ElementType to_type,
                      std::byte* to) {
  if (from_type == to_type) {
    if (n > 0) std::memcpy(to, from, static_cast<size_t>(n * storage_bytes(to_type)));
    return;
  }
  alignas(64) std::byte in[kChunk * kMaxLaneBytes], out[kChunk * kMaxLaneBytes];
  const int64_t from_bytes = storage_bytes(from_type), to_bytes = storage_bytes(to_type);
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    const std::byte* source = from + begin * from_bytes;
    std::byte* target = to + begin * to_bytes;
    const void* lanes = source;
    if (!is_native(from_type)) {
      load_lanes(from_type, source, count, in);
      lanes = in;
    }
    const bool direct = is_native(to_type);
    convert_chunk(to_type, lane_of(from_type), lanes, count, direct ? target : out);
    if (!direct) store_lanes(to_type, out, count, target);
  }
}

int64_t integer_element(ElementType type, const std::byte* data, int64_t i) {
  const std::byte* at = data + i * storage_bytes(type);
  if (type == ElementType::kU64) {
    uint64_t value;
    std::memcpy(&value, at, sizeof(value));
    return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
  }
  int64_t value = 0;
  load_as(type, at, 1, Lane::kS64, &value);
  return value;
}

}  // namespace gspmd
