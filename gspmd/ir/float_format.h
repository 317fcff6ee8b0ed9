#pragma once

#include <cstdint>

#include "gspmd/ir/element_type.h"

namespace gspmd {

// The bits of `value` in a floating-point type (f4... to f64), rounded to nearest, ties to even.
// What is too large becomes the infinity, else the NaN, else (f4, f6) the largest number of the
// type. float_bits(kBF16, 1.0) == 0x3f80.
uint64_t float_bits(ElementType type, double value);
double float_value(ElementType type, uint64_t bits);

// How a floating-point type lays out its bits, most significant first: sign, exponent, mantissa.
struct FloatFormat {
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  bool has_sign = true;
  bool has_infinity = true;  // IEEE: all-ones exponent is infinity (mantissa 0) or NaN
  enum class Nan : uint8_t {
    kIeee,
    kAllOnes,       // ...fn: only the largest code
    kNegativeZero,  // ...fnuz: the code of -0, which does not exist
    kNone,          // f4, f6
  } nan = Nan::kIeee;
};
FloatFormat format_of(ElementType type);

}  // namespace gspmd
