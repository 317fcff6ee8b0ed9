// CHLO operations that HLO has no operator for.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "gspmd/formats/stablehlo/importer.h"

namespace gspmd::stablehlo {
namespace {

using mlir::Op;

void square(Importer& in, const Op& op) {
  Instr* x = in.operand(op, 0);
  in.finish(op, in.add(op, Opcode::kMultiply, x->shape, {x, x}));
}

void atan(Importer& in, const Op& op) {
  Instr* x = in.operand(op, 0);
  Instr* one = in.splat(op, in.number(op, x->shape.type(), 1), x->shape);
  in.finish(op, in.add(op, Opcode::kAtan2, x->shape, {x, one}));
}

void conj(Importer& in, const Op& op) {
  Instr* x = in.operand(op, 0);
  if (!is_complex(x->shape.type())) return in.finish(op, x);
  ElementType part = x->shape.type() == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  Shape real = in.context().with_type(x->shape, part);
  Instr* im = in.add(op, Opcode::kNegate, real, {in.add(op, Opcode::kImag, real, {x})});
  Instr* re = in.add(op, Opcode::kReal, real, {x});
  in.finish(op, in.add(op, Opcode::kComplex, x->shape, {re, im}));
}

void equals_infinity(Importer& in, const Op& op, double sign) {
  Instr* x = in.operand(op, 0);
  Shape pred = in.context().with_type(x->shape, ElementType::kPred);
  if (sign == 0) x = in.add(op, Opcode::kAbs, x->shape, {x});
  double infinity = std::numeric_limits<double>::infinity();
  Instr* bound =
      in.splat(op, in.number(op, x->shape.type(), sign < 0 ? -infinity : infinity), x->shape);
  in.finish(op, in.add(op, Opcode::kCompare, pred, {x, bound}, CompareAttrs{}));
}
void is_inf(Importer& in, const Op& op) { equals_infinity(in, op, 0); }
void is_pos_inf(Importer& in, const Op& op) { equals_infinity(in, op, 1); }
void is_neg_inf(Importer& in, const Op& op) { equals_infinity(in, op, -1); }

// Special functions: element-wise calls, under CHLO's own names (ops/custom_call.cc knows them).
void special(Importer& in, const Op& op) {
  CustomCallAttrs a;
  a.target = in.context().name(op.name);
  in.finish(op, in.add(op, Opcode::kCustomCall, in.result_type(op), in.operands(op),
                       Attrs(in.context().attrs(a))));
}

// chlo.broadcast_add and the like: both operands get the result's dimensions.
Instr* stretched(Importer& in, const Op& op, Instr* x, Shape result) {
  Shape whole = in.context().array(x->shape.type(), result.dims());
  if (same(whole, x->shape)) return x;
  DimVector dims;
  for (int d = result.rank() - x->shape.rank(); d < result.rank(); ++d) dims.push_back(d);
  return in.stretch(op, x, whole, dims);
}

void broadcasting(Importer& in, const Op& op) {
  std::string name = op.name.substr(op.name.find('_') + 1);
  std::replace(name.begin(), name.end(), '_', '-');
  std::optional<Opcode> opcode = parse_opcode(name);
  if (!opcode || op.attr("broadcast_dimensions") != nullptr)
    in.fail(op, "this form of it is not supported");
  Shape shape = in.result_type(op);
  std::vector<Instr*> operands;
  for (size_t k = 0; k < op.operands.size(); ++k)
    operands.push_back(stretched(in, op, in.operand(op, k), shape));
  const OpDef& d = def(*opcode);
  in.finish(op, in.add(op, *opcode, shape, operands, Attrs(d.attrs, in.fields(op, d))));
}

constexpr std::pair<std::string_view, Translation> kTranslations[] = {
    {"square", square},
    {"atan", atan},
    {"conj", conj},
    {"is_inf", is_inf},
    {"is_pos_inf", is_pos_inf},
    {"is_neg_inf", is_neg_inf},
    {"erfc", special},
    {"erf_inv", special},
    {"lgamma", special},
    {"digamma", special},
    {"bessel_i1e", special},
    {"next_after", special},
    {"polygamma", special},
    {"zeta", special},
};

}  // namespace

Translation chlo_translation_of(std::string_view name) {
  for (const auto& [known, translation] : kTranslations) {
    if (known == name) return translation;
  }
  return name.starts_with("broadcast_") ? broadcasting : nullptr;
}

}  // namespace gspmd::stablehlo
