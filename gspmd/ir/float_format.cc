#include "gspmd/ir/float_format.h"

#include <bit>
#include <cmath>
#include <limits>

#include "gspmd/base/check.h"

namespace gspmd {
namespace {

using Nan = FloatFormat::Nan;

uint64_t largest_finite(const FloatFormat& f) {
  uint64_t all = (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.has_infinity) return (all >> f.mantissa_bits << f.mantissa_bits) - 1;
  return f.nan == Nan::kAllOnes ? all - 1 : all;
}

uint64_t nan_bits(const FloatFormat& f) {
  int magnitude = f.exponent_bits + f.mantissa_bits;
  uint64_t all = (uint64_t{1} << magnitude) - 1;
  switch (f.nan) {
    case Nan::kIeee:
      return all >> (f.mantissa_bits - 1) << (f.mantissa_bits - 1);
    case Nan::kAllOnes:
      return all;
    case Nan::kNegativeZero:
      return uint64_t{1} << magnitude;
    case Nan::kNone:
      return 0;
  }
  return 0;
}

uint64_t too_large(const FloatFormat& f) {
  if (f.has_infinity) return largest_finite(f) + 1;
  return f.nan == Nan::kNone ? largest_finite(f) : nan_bits(f);
}

// f8e8m0fnu: powers of two alone, code c is 2^(c-127); no sign, no zero. A tie goes up: 1.5 to 2.
uint64_t scale_bits(double value) {
  if (!(value > 0) || std::isinf(value)) return 0xff;
  int exponent = 0;
  double mantissa = std::frexp(value, &exponent);  // [0.5, 1)
  int code = exponent - 1 + 127 + (mantissa >= 0.75 ? 1 : 0);
  return static_cast<uint64_t>(code < 0 ? 0 : code > 254 ? 0xff : code);
}

// Bits without sign of a finite magnitude > 0.
uint64_t magnitude_bits(const FloatFormat& f, double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  int e = exponent - 1, lowest = 1 - f.bias;
  bool subnormal = e < lowest;
  double steps = std::nearbyint(std::ldexp(x, f.mantissa_bits - (subnormal ? lowest : e)));
  uint64_t n = static_cast<uint64_t>(steps);
  if (subnormal) return n;  // may have been rounded up to the least normal number: the same code
  return (static_cast<uint64_t>(e + f.bias - 1) << f.mantissa_bits) + n;
}

}  // namespace

FloatFormat format_of(ElementType type) {
  switch (type) {
    case ElementType::kF4E2M1FN:
      return {2, 1, 1, true, false, Nan::kNone};
    case ElementType::kF6E2M3FN:
      return {2, 3, 1, true, false, Nan::kNone};
    case ElementType::kF6E3M2FN:
      return {3, 2, 3, true, false, Nan::kNone};
    case ElementType::kF8E3M4:
      return {3, 4, 3};
    case ElementType::kF8E4M3:
      return {4, 3, 7};
    case ElementType::kF8E4M3FN:
      return {4, 3, 7, true, false, Nan::kAllOnes};
    case ElementType::kF8E4M3B11FNUZ:
      return {4, 3, 11, true, false, Nan::kNegativeZero};
    case ElementType::kF8E4M3FNUZ:
      return {4, 3, 8, true, false, Nan::kNegativeZero};
    case ElementType::kF8E5M2:
      return {5, 2, 15};
    case ElementType::kF8E5M2FNUZ:
      return {5, 2, 16, true, false, Nan::kNegativeZero};
    case ElementType::kF8E8M0FNU:
      return {8, 0, 127, false, false, Nan::kAllOnes};
    case ElementType::kF16:
      return {5, 10, 15};
    case ElementType::kBF16:
      return {8, 7, 127};
    case ElementType::kF32:
      return {8, 23, 127};
    case ElementType::kF64:
      return {11, 52, 1023};
    default:
      break;
  }
  GSPMD_CHECK(false, "no floating-point type: " + std::string(name_of(type)));
}

uint64_t float_bits(ElementType type, double value) {
  if (type == ElementType::kF64) return std::bit_cast<uint64_t>(value);
  if (type == ElementType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == ElementType::kF8E8M0FNU) return scale_bits(value);
  const FloatFormat f = format_of(type);
  const uint64_t sign = uint64_t{std::signbit(value)} << (f.exponent_bits + f.mantissa_bits);
  if (std::isnan(value)) return nan_bits(f) | (f.nan == Nan::kNegativeZero ? 0 : sign);
  if (value == 0) return f.nan == Nan::kNegativeZero ? 0 : sign;
  uint64_t bits = std::isinf(value) ? too_large(f) : magnitude_bits(f, std::fabs(value));
  if (bits > largest_finite(f)) bits = too_large(f);
  if (bits == 0 && f.nan == Nan::kNegativeZero) return 0;
  return bits | sign;
}

double float_value(ElementType type, uint64_t bits) {
  if (type == ElementType::kF64) return std::bit_cast<double>(bits);
  if (type == ElementType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (type == ElementType::kF8E8M0FNU) {
    return bits == 0xff ? nan : std::ldexp(1.0, static_cast<int>(bits) - 127);
  }
  const FloatFormat f = format_of(type);
  const int magnitude = f.exponent_bits + f.mantissa_bits;
  const bool negative = bits >> magnitude & 1;
  const uint64_t code = bits & ((uint64_t{1} << magnitude) - 1);
  if (f.nan == Nan::kNegativeZero && negative && code == 0) return nan;
  double value = 0;
  if (code > largest_finite(f)) {
    value = f.has_infinity && code == too_large(f) ? std::numeric_limits<double>::infinity() : nan;
  } else {
    int exponent = static_cast<int>(code >> f.mantissa_bits);
    double mantissa = static_cast<double>(code & ((uint64_t{1} << f.mantissa_bits) - 1));
    if (exponent > 0) mantissa += static_cast<double>(uint64_t{1} << f.mantissa_bits);
    value = std::ldexp(mantissa, (exponent > 0 ? exponent : 1) - f.bias - f.mantissa_bits);
  }
  return negative ? -value : value;
}

}  // namespace gspmd
