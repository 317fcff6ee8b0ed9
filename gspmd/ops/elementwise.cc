// Element-wise operators: each result element depends on the operands' elements of the same index
// only.

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

const Rule* pointwise(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  r.pointwise();
  return r.build();
}

// The operands' common sizes; the wider of float types that differ, as old programs mix them.
Shape infer_same(const InferArgs& args, std::string_view name) {
  Shape widest = array_operand(args, 0, name);
  check_same_sizes(args, 0, static_cast<int>(args.operands.size()), name);
  for (size_t k = 1; k < args.operands.size(); ++k) {
    Shape s = args.operands[k];
    if (s.type() == widest.type()) continue;
    if (!is_float(s.type()) || !is_float(widest.type())) {
      refuse(name,
             fmt::format("operand 0 has type {} and operand {} has {}", name_of(widest.type()), k,
                         name_of(s.type())),
             "convert one of them");
    }
    if (bits_of(s.type()) > bits_of(widest.type())) widest = s;
  }
  return widest.plain();
}

template <Opcode kOp>
Shape infer_like_operands(const InferArgs& args) {
  return infer_same(args, name_of(kOp));
}

ElementType real_part(ElementType t) {
  if (t == ElementType::kC64) return ElementType::kF32;
  if (t == ElementType::kC128) return ElementType::kF64;
  return t;
}

template <Opcode kOp>
Shape infer_real(const InferArgs& args) {
  Shape s = infer_same(args, name_of(kOp));
  return args.context.with_type(s, real_part(s.type()));
}

template <Opcode kOp>
Shape infer_pred(const InferArgs& args) {
  return args.context.with_type(infer_same(args, name_of(kOp)), ElementType::kPred);
}

Shape infer_complex(const InferArgs& args) {
  Shape s = infer_same(args, "complex");
  if (s.type() != ElementType::kF32 && s.type() != ElementType::kF64) {
    refuse("complex", fmt::format("parts of type {}", name_of(s.type())),
           "the parts are f32 or f64");
  }
  return args.context.with_type(
      s, s.type() == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128);
}

void check_same_sizes_or_scalar(Shape s, Shape full, std::string_view name, std::string_view what) {
  if (s.is_array() && (s.rank() == 0 || s.dims() == full.dims())) return;
  refuse(name,
         fmt::format("{} is {}, the other operands are {}", what, to_string(s), to_string(full)),
         "it must be a scalar or have the same sizes");
}

Shape infer_select(const InferArgs& args) {
  Shape on_true = array_operand(args, 1, "select");
  check_same_sizes(args, 1, 3, "select");
  check_same_sizes_or_scalar(args.operands[0], on_true, "select", "the predicate");
  if (args.operands[0].type() != ElementType::kPred) {
    refuse("select", fmt::format("the predicate has type {}", name_of(args.operands[0].type())),
           "it must be pred");
  }
  return on_true.plain();
}

Shape infer_clamp(const InferArgs& args) {
  Shape x = array_operand(args, 1, "clamp");
  check_same_sizes_or_scalar(args.operands[0], x, "clamp", "the lower bound");
  check_same_sizes_or_scalar(args.operands[2], x, "clamp", "the upper bound");
  return x.plain();
}

// The program states the type; the sizes are the operand's.
void verify_sizes_kept(const Instr& i) {
  for (const Instr* o : i.operands) {
    if (o->shape.is_array() && i.shape.is_array() && o->shape.dims() == i.shape.dims()) continue;
    refuse(name_of(i.opcode),
           fmt::format("operand {} becomes {}", to_string(o->shape), to_string(i.shape)),
           "the sizes must be the same");
  }
}

Shape infer_map(const InferArgs& args) {
  Shape s = array_operand(args, 0, "map");
  check_same_sizes(args, 0, static_cast<int>(args.operands.size()), "map");
  if (args.called.empty() || args.called[0]->root() == nullptr) return s.plain();
  return args.context.with_type(s, args.called[0]->root()->shape.type()).plain();
}

constexpr OpTraits kTraits = {.elementwise = true, .shape_inferable = true};
constexpr OpTraits kStatedTraits = {.elementwise = true};
constexpr OpTraits kLinearTraits = {.elementwise = true, .shape_inferable = true, .linear = true};
constexpr OpTraits kMoveTraits = {
    .elementwise = true, .shape_inferable = true, .data_movement = true, .linear = true};

constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
constexpr std::string_view kCompareTypes[] = {"", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
constexpr Field kCompareFields[] = {
    required(
        enum_names(field<&CompareAttrs::direction>("direction", FieldKind::kEnum), kDirections)),
    enum_names(field<&CompareAttrs::type>("type", FieldKind::kEnum), kCompareTypes),
};
constexpr Field kReducePrecisionFields[] = {
    required(field<&ReducePrecisionAttrs::exponent_bits>("exponent_bits", FieldKind::kInt)),
    required(field<&ReducePrecisionAttrs::mantissa_bits>("mantissa_bits", FieldKind::kInt)),
};
constexpr Field kMapFields[] = {field<&DimsAttrs::dimensions>("dimensions", FieldKind::kDims)};
constexpr std::string_view kMapCalled[] = {"to_apply"};

}  // namespace

#define ELEMENTWISE(id, operands, op_traits, infer_fn, flops)      \
  extern const OpDef k##id##Def = {.opcode = Opcode::k##id,        \
                                   .name = name_of(Opcode::k##id), \
                                   .min_operands = operands,       \
                                   .max_operands = operands,       \
                                   .traits = op_traits,            \
                                   .infer = infer_fn,              \
                                   .rule = pointwise,              \
                                   .flops_per_point = flops}
#define LIKE(id, operands) ELEMENTWISE(id, operands, kTraits, infer_like_operands<Opcode::k##id>, 1)
#define LINEAR(id, operands) \
  ELEMENTWISE(id, operands, kLinearTraits, infer_like_operands<Opcode::k##id>, 1)

LIKE(Acos, 1);
LIKE(Acosh, 1);
LIKE(Asin, 1);
LIKE(Asinh, 1);
LIKE(Atanh, 1);
LIKE(Cbrt, 1);
LIKE(Ceil, 1);
LIKE(Clz, 1);
LIKE(Cos, 1);
LIKE(Cosh, 1);
LIKE(Erf, 1);
LIKE(Exp, 1);
LIKE(Expm1, 1);
LIKE(Floor, 1);
LIKE(Log, 1);
LIKE(Log1p, 1);
LIKE(Logistic, 1);
LINEAR(Negate, 1);
LIKE(Not, 1);
LIKE(Popcnt, 1);
LIKE(RoundNearestAfz, 1);
LIKE(RoundNearestEven, 1);
LIKE(Rsqrt, 1);
LIKE(Sign, 1);
LIKE(Sin, 1);
LIKE(Sinh, 1);
LIKE(Sqrt, 1);
LIKE(Tan, 1);
LIKE(Tanh, 1);
ELEMENTWISE(Copy, 1, kMoveTraits, infer_like_operands<Opcode::kCopy>, 0);
ELEMENTWISE(Abs, 1, kTraits, infer_real<Opcode::kAbs>, 1);
ELEMENTWISE(Imag, 1, kTraits, infer_real<Opcode::kImag>, 1);
ELEMENTWISE(Real, 1, kTraits, infer_real<Opcode::kReal>, 1);
ELEMENTWISE(IsFinite, 1, kTraits, infer_pred<Opcode::kIsFinite>, 1);

LINEAR(Add, 2);
LINEAR(Subtract, 2);
LIKE(And, 2);
LIKE(Atan2, 2);
LIKE(Divide, 2);
LIKE(Maximum, 2);
LIKE(Minimum, 2);
LIKE(Mulhi, 2);
LIKE(Multiply, 2);
LIKE(Or, 2);
LIKE(Power, 2);
LIKE(Remainder, 2);
LIKE(ShiftLeft, 2);
LIKE(ShiftRightArithmetic, 2);
LIKE(ShiftRightLogical, 2);
LIKE(Xor, 2);
ELEMENTWISE(Complex, 2, kTraits, infer_complex, 1);
ELEMENTWISE(Clamp, 3, kTraits, infer_clamp, 1);
ELEMENTWISE(Select, 3, kTraits, infer_select, 1);

extern const OpDef kCompareDef = {.opcode = Opcode::kCompare,
                                  .name = "compare",
                                  .min_operands = 2,
                                  .max_operands = 2,
                                  .attrs = AttrsKind::kCompareAttrs,
                                  .fields = kCompareFields,
                                  .traits = kTraits,
                                  .infer = infer_pred<Opcode::kCompare>,
                                  .rule = pointwise,
                                  .flops_per_point = 1};
extern const OpDef kConvertDef = {.opcode = Opcode::kConvert,
                                  .name = "convert",
                                  .traits = kStatedTraits,
                                  .verify = verify_sizes_kept,
                                  .rule = pointwise,
                                  .flops_per_point = 1};
extern const OpDef kReducePrecisionDef = {.opcode = Opcode::kReducePrecision,
                                          .name = "reduce-precision",
                                          .attrs = AttrsKind::kReducePrecisionAttrs,
                                          .fields = kReducePrecisionFields,
                                          .traits = kStatedTraits,
                                          .verify = verify_sizes_kept,
                                          .rule = pointwise,
                                          .flops_per_point = 1};
extern const OpDef kStochasticConvertDef = {.opcode = Opcode::kStochasticConvert,
                                            .name = "stochastic-convert",
                                            .min_operands = 2,
                                            .max_operands = 2,
                                            .traits = kStatedTraits,
                                            .verify = verify_sizes_kept,
                                            .rule = pointwise,
                                            .flops_per_point = 1};
extern const OpDef kMapDef = {.opcode = Opcode::kMap,
                              .name = "map",
                              .max_operands = -1,
                              .attrs = AttrsKind::kDimsAttrs,
                              .fields = kMapFields,
                              .called = kMapCalled,
                              .traits = kTraits,
                              .infer = infer_map,
                              .rule = pointwise,
                              .flops_per_point = 1};

}  // namespace gspmd
