// convert, reduce-precision, stochastic-convert, copy.

#include <bit>
#include <cmath>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/numeric.h"
#include "gspmd/ir/float_format.h"

namespace gspmd {
namespace {

// An IEEE type's bits, rounded to fewer exponent and mantissa bits.
struct PrecisionReducer {
  int own_exponent, own_mantissa, exponent, mantissa;

  uint64_t operator()(uint64_t x) const {
    const uint64_t sign = x & uint64_t{1} << (own_exponent + own_mantissa);
    const uint64_t infinity = ((uint64_t{1} << own_exponent) - 1) << own_mantissa;
    uint64_t magnitude = x ^ sign;
    if (magnitude > infinity) return x;  // NaN
    if (mantissa < own_mantissa) {
      const int dropped = own_mantissa - mantissa;
      const uint64_t odd = magnitude >> dropped & 1;
      magnitude = (magnitude + (uint64_t{1} << (dropped - 1)) - 1 + odd) >> dropped << dropped;
    }
    if (exponent < own_exponent) {
      const int64_t own_bias = (int64_t{1} << (own_exponent - 1)) - 1;
      const int64_t bias = (int64_t{1} << (exponent - 1)) - 1;
      const auto e = static_cast<int64_t>(magnitude >> own_mantissa);
      if (e > own_bias + bias) magnitude = infinity;
      if (e <= own_bias - bias) magnitude = 0;
    }
    return sign | magnitude;
  }
};

template <typename Bits>
void reduce_precision(const PrecisionReducer& reducer, Buffer* buffer) {
  Bits* x = buffer->mutable_data<Bits>();
  for (int64_t i = 0; i < buffer->size(); ++i) x[i] = static_cast<Bits>(reducer(x[i]));
}

}  // namespace

GSPMD_KERNEL(convert_kernel) { return {converted(operands[0], result_type(instr, context))}; }

GSPMD_KERNEL(copy_kernel) { return {std::move(operands[0])}; }

// In a wide run, which computes without rounding, the identity.
GSPMD_KERNEL(reduce_precision_kernel) {
  Buffer result = std::move(operands[0]);
  if (context.wide) return {std::move(result)};
  const auto& a = instr.attrs<ReducePrecisionAttrs>();
  const FloatFormat format = format_of(result.type());
  const PrecisionReducer reducer{format.exponent_bits, format.mantissa_bits,
                                 static_cast<int>(a.exponent_bits),
                                 static_cast<int>(a.mantissa_bits)};
  switch (storage_bytes(result.type())) {
    case 8:
      reduce_precision<uint64_t>(reducer, &result);
      break;
    case 4:
      reduce_precision<uint32_t>(reducer, &result);
      break;
    case 2:
      reduce_precision<uint16_t>(reducer, &result);
      break;
    default:
      refuse_to_run(instr, "not defined for types under 16 bits");
  }
  return {std::move(result)};
}

// f32 to a type of fewer mantissa bits: random bits are added below the last one kept, and the sum
// truncated.
GSPMD_KERNEL(stochastic_convert_kernel) {
  const ElementType type = result_type(instr, context);
  if (context.wide) return {converted(operands[0], type)};
  if (operands[0].type() != ElementType::kF32 || !is_float(type) || bits_of(type) >= 32) {
    refuse_to_run(instr, "only f32 to a narrower float type can be evaluated");
  }
  Buffer sums = std::move(operands[0]);
  const Buffer random = converted(operands[1], ElementType::kU32);
  const uint32_t dropped = (uint32_t{1} << (23 - format_of(type).mantissa_bits)) - 1;
  auto* x = sums.mutable_data<uint32_t>();
  const auto* r = random.data<uint32_t>();
  for (int64_t i = 0; i < sums.size(); ++i) {
    if (std::isfinite(std::bit_cast<float>(x[i]))) x[i] = (x[i] + (r[i] & dropped)) & ~dropped;
  }
  return {converted(sums, type)};
}

}  // namespace gspmd
