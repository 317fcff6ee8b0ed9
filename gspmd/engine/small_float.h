#pragma once

#include <bit>
#include <cstdint>

#include "gspmd/ir/element_type.h"

namespace gspmd {

// Fast forms of float_bits and float_value (ir/float_format.h) for the types below f32.

inline float f32_of_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline uint16_t bf16_of_f32(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t nan = (bits >> 16) | 0x40;
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(x != x ? nan : rounded);
}

inline float f32_of_f16(uint16_t bits) {
  float magnitude = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;  // subnormals too
  uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | special |
                              (bits & 0x8000u) << 16);
}

inline uint16_t f16_of_f32(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  // Adding 0.5 aligns a subnormal's last bit with the sum's.
  uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  uint32_t code = magnitude >= 0x477ff000u ? special : magnitude < 0x38800000u ? subnormal : normal;
  return static_cast<uint16_t>(code | (bits >> 16 & 0x8000u));
}

// f64 to f32 rounded to odd: what is inexact gets a last bit of 1, so that rounding the result to
// a narrower type gives what rounding the f64 once would give.
inline float f32_to_odd(double x) {
  float f = static_cast<float>(x);
  double back = f;
  if (back == x || x != x) return f;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  bool grown = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  return std::bit_cast<float>((grown ? bits - 1 : bits) | 1);
}

// Tables of a type of at most 8 bits: all its values, and its codes by the upper half of an f32
// whose lower half was rounded to odd (eight significant bits are enough for five).
struct SmallFloatTable {
  float values[256];
  uint8_t codes[1 << 16];

  uint8_t code_of(float x) const {
    uint32_t bits = std::bit_cast<uint32_t>(x);
    return codes[bits >> 16 | ((bits & 0xffff) != 0 ? 1 : 0)];
  }
};
const SmallFloatTable& small_float_table(ElementType type);

}  // namespace gspmd
