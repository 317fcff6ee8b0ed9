#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "gspmd/ir/element_type.h"

namespace gspmd {

// The types that kernels compute in. Every element type is stored in its own form and computed in
// one of these: f8, f16 and bf16 in f32; s4, s8 and s16 in s32.
enum class Lane : uint8_t { kPred, kS32, kU32, kS64, kU64, kF32, kF64, kC64, kC128 };

inline constexpr int kNumLanes = 9;
// How many elements kernels take at a time where they must be converted: they stay in the cache.
inline constexpr int64_t kChunk = 512;
inline constexpr int64_t kMaxLaneBytes = 16;

Lane lane_of(ElementType type);
int bytes_of(Lane lane);
// The lane that sums over many elements are kept in: the widest of its class (f64 for f32).
Lane wide_lane(Lane lane);
inline bool is_float(Lane l) { return l == Lane::kF32 || l == Lane::kF64; }
inline bool is_complex(Lane l) { return l == Lane::kC64 || l == Lane::kC128; }
// Stored exactly as computed in.
bool is_native(ElementType type);

// `n` stored elements as lanes of lane_of(type), and back: floats rounded to nearest even, integers
// wrapped to the type's width.
void load_lanes(ElementType type, const std::byte* from, int64_t n, void* to);
void store_lanes(ElementType type, const void* from, int64_t n, std::byte* to);
// To and from any other lane of the same class (f32 from f64 is rounded once).
void load_as(ElementType type, const std::byte* from, int64_t n, Lane lane, void* to);
void store_from(ElementType type, Lane lane, const void* from, int64_t n, std::byte* to);

// HLO's `convert` on stored elements: float to integer truncates and saturates (NaN gives 0),
// integers wrap, floats round to nearest even, anything but zero becomes true.
void convert_elements(ElementType from_type, const std::byte* from, int64_t n, ElementType to_type,
                      std::byte* to);

// One stored element as an integer (s4 to u64, pred); of a u64 its low 63 bits saturate.
int64_t integer_element(ElementType type, const std::byte* data, int64_t i);

// Calls f with a value of the lane's C++ type (bool for pred's bytes: uint8_t).
template <typename F>
decltype(auto) with_lane_type(Lane lane, F&& f) {
  switch (lane) {
    case Lane::kPred:
      return f(uint8_t{});
    case Lane::kS32:
      return f(int32_t{});
    case Lane::kU32:
      return f(uint32_t{});
    case Lane::kS64:
      return f(int64_t{});
    case Lane::kU64:
      return f(uint64_t{});
    case Lane::kF32:
      return f(float{});
    case Lane::kF64:
      return f(double{});
    case Lane::kC64:
      return f(std::complex<float>{});
    case Lane::kC128:
      break;
  }
  return f(std::complex<double>{});
}

}  // namespace gspmd
