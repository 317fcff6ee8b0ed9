// fft: discrete Fourier transforms over the last one to three dimensions.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "fft";

ElementType complex_of(ElementType t) {
  return bits_of(t) == 64 ? ElementType::kC128 : ElementType::kC64;
}
ElementType real_of(ElementType t) {
  return t == ElementType::kC128 ? ElementType::kF64 : ElementType::kF32;
}

// The element type of the result; the operand must be real for RFFT and complex otherwise.
ElementType result_type_of(const FftAttrs& a, Shape x) {
  bool real_operand = a.type == FftType::kRfft;
  if (real_operand ? !is_float(x.type()) : !is_complex(x.type())) {
    refuse(kName,
           fmt::format("the operand is {}, {} is needed", to_string(x),
                       real_operand ? "f32 or f64" : "c64 or c128"),
           "RFFT takes real numbers, the others complex ones");
  }
  if (a.type == FftType::kRfft) return complex_of(x.type());
  return a.type == FftType::kIrfft ? real_of(x.type()) : x.type();
}

// Elements of transformed dimension `d` (of `n`, counted from the first transformed) that operand
// and result have.
int64_t operand_size(const FftAttrs& a, size_t k) {
  bool half = a.type == FftType::kIrfft && k + 1 == a.length.size();
  return half ? a.length[k] / 2 + 1 : a.length[k];
}
int64_t result_size(const FftAttrs& a, size_t k) {
  bool half = a.type == FftType::kRfft && k + 1 == a.length.size();
  return half ? a.length[k] / 2 + 1 : a.length[k];
}

Shape infer(const InferArgs& args) {
  const auto& a = args.attrs.get<FftAttrs>();
  Shape x = array_operand(args, 0, kName);
  int n = static_cast<int>(a.length.size());
  if (n < 1 || n > 3 || n > x.rank()) {
    refuse(kName,
           fmt::format("fft_length has {} entries for {}: one to three of its last dimensions", n,
                       to_string(x)));
  }
  ElementType type = result_type_of(a, x);
  int batch = x.rank() - n;
  Sizes sizes;
  for (int d = 0; d < batch; ++d) sizes.add(x, d);
  for (int k = 0; k < n; ++k) {
    if (x.dim(batch + k) != operand_size(a, k)) {
      refuse(kName, fmt::format("dimension {} has {} elements, fft_length {} needs {}", batch + k,
                                x.dim(batch + k), a.length[k], operand_size(a, k)));
    }
    sizes.add(result_size(a, k));
  }
  return sizes.shape(args.context, type);
}

// Batch dimensions are parallel; every result element of a transform needs all its operand
// elements.
const Rule* rule(const Instr& instr, Arena& arena) {
  Shape x = instr.operand(0)->shape;
  int batch = x.rank() - static_cast<int>(instr.attrs<FftAttrs>().length.size());
  RuleBuilder r(instr, arena);
  for (int d = 0; d < x.rank(); ++d) {
    if (d < batch) {
      r.parallel({d}, d);
    } else if (x.dim(d) == instr.shape.dim(d)) {
      r.whole({d}, d);
    } else {  // the last one of RFFT, IRFFT: not one index on both sides
      r.whole({d}, kNone);
      r.whole({}, d);
    }
  }
  return r.build();
}

constexpr std::string_view kTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
constexpr Field kFields[] = {
    required(enum_names(field<&FftAttrs::type>("fft_type", FieldKind::kEnum), kTypes)),
    required(field<&FftAttrs::length>("fft_length", FieldKind::kDims)),
};

}  // namespace

extern const OpDef kFftDef = {
    .opcode = Opcode::kFft,
    .name = kName,
    .attrs = AttrsKind::kFftAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true, .sums = PartialSums::kPassInOne},
    .infer = infer,
    .rule = rule,
    .flops_per_point = 1,
};

}  // namespace gspmd
