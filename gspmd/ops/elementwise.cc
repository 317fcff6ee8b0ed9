// Element-wise operators: each result element depends on the operands' elements of the same index
// only.

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"
#include "gspmd/ops/type_checks.h"

namespace gspmd {
namespace {

const Rule* pointwise(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  r.pointwise();
  return r.build();
}

// The operands' common sizes and their widest type.
Shape infer_same(const InferArgs& args, std::string_view name, Types types) {
  Shape widest = array_operand(args, 0, name);
  size_t at = 0;
  check_same_sizes(args, 0, static_cast<int>(args.operands.size()), name);
  check_type(name, widest, 0, types);
  for (size_t k = 1; k < args.operands.size(); ++k) {
    Shape w = wider(name, widest, at, args.operands[k], k);
    if (w != widest) at = k;
    widest = w;
  }
  return widest.plain();
}

template <Opcode kOp, Types kTypes>
Shape infer_like_operands(const InferArgs& args) {
  return infer_same(args, name_of(kOp), kTypes);
}

ElementType real_part(ElementType t) {
  if (t == ElementType::kC64) return ElementType::kF32;
  if (t == ElementType::kC128) return ElementType::kF64;
  return t;
}

template <Opcode kOp, Types kTypes>
Shape infer_real(const InferArgs& args) {
  Shape s = infer_same(args, name_of(kOp), kTypes);
  return args.context.with_type(s, real_part(s.type()));
}

Shape infer_is_finite(const InferArgs& args) {
  return args.context.with_type(infer_same(args, "is-finite", kFloats), ElementType::kPred);
}

Shape infer_compare(const InferArgs& args) {
  Direction d = args.attrs.get<CompareAttrs>().direction;
  bool orders = d != Direction::kEq && d != Direction::kNe;
  Shape s = infer_same(args, "compare", orders ? kOrdered : kAny);
  return args.context.with_type(s, ElementType::kPred);
}

Shape infer_complex(const InferArgs& args) {
  Shape s = infer_same(args, "complex", kAny);
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
  return wider("select", on_true, 1, args.operands[2], 2).plain();
}

Shape infer_clamp(const InferArgs& args) {
  Shape x = array_operand(args, 1, "clamp");
  check_same_sizes_or_scalar(args.operands[0], x, "clamp", "the lower bound");
  check_same_sizes_or_scalar(args.operands[2], x, "clamp", "the upper bound");
  check_type("clamp", x, 1, kOrdered);
  ElementType type = wider("clamp", x, 1, args.operands[0], 0).type();
  Shape widest = args.context.with_type(x, type);
  type = wider("clamp", widest, 1, args.operands[2], 2).type();
  return args.context.with_type(x, type).plain();
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

void verify_convert(const Instr& i) {
  verify_sizes_kept(i);
  ElementType from = i.operand(0)->shape.type(), to = i.shape.type();
  if (!is_complex(from) || is_complex(to)) return;
  refuse("convert", fmt::format("{} becomes {}", name_of(from), name_of(to)),
         "take its part with real or imag first");
}

void verify_reduce_precision(const Instr& i) {
  verify_sizes_kept(i);
  check_type("reduce-precision", i.operand(0)->shape, 0, kFloats);
  const auto& a = i.attrs<ReducePrecisionAttrs>();
  if (a.exponent_bits >= 1 && a.mantissa_bits >= 0) return;
  refuse("reduce-precision",
         fmt::format("exponent_bits {}, mantissa_bits {}", a.exponent_bits, a.mantissa_bits),
         "at least 1 and 0");
}

void verify_stochastic_convert(const Instr& i) {
  verify_sizes_kept(i);
  Shape x = i.operand(0)->shape, random = i.operand(1)->shape;
  check_type("stochastic-convert", x, 0, kFloats);
  bool fits = class_of(random.type()) == TypeClass::kUnsigned &&
              bits_of(random.type()) == bits_of(x.type());
  if (fits) return;
  refuse("stochastic-convert",
         fmt::format("random bits {} for {}", to_string(random), to_string(x)),
         "an unsigned type of the same width is needed");
}

constexpr OpTraits kTraits = {.elementwise = true, .shape_inferable = true};
constexpr OpTraits kStatedTraits = {.elementwise = true};
constexpr OpTraits kTranscendentalTraits = {
    .elementwise = true, .shape_inferable = true, .transcendental = true};
constexpr OpTraits kProductTraits = {
    .elementwise = true, .shape_inferable = true, .sums = PartialSums::kPassInOne};
constexpr OpTraits kSumTraits = {
    .elementwise = true, .shape_inferable = true, .sums = PartialSums::kPassInAll};
constexpr OpTraits kConvertTraits = {.elementwise = true, .sums = PartialSums::kPassInOne};
constexpr OpTraits kMoveTraits = {.elementwise = true,
                                  .shape_inferable = true,
                                  .data_movement = true,
                                  .sums = PartialSums::kPassInOne};

// Partial sums keep their precision.
bool sums_pass_convert(const Instr& i, int) {
  ElementType from = i.operand(0)->shape.type(), to = i.shape.type();
  return class_of(from) == TypeClass::kFloat && class_of(to) == TypeClass::kFloat &&
         bits_of(from) <= bits_of(to);
}

bool is_zero(const Instr& scalar) {
  return is_identity(*scalar.attrs<ConstantAttrs>().literal, Combiner::kSum);
}

// The dividend's, over one number: integer division rounds, and parts of different signs over 0 are
// infinities whose sum is none.
bool sums_pass_divide(const Instr& i, int operand) {
  ElementType t = i.shape.type();
  const Instr* by = i.operand(1);
  if (by->opcode == Opcode::kBroadcast) by = by->operand(0);
  return operand == 0 && (class_of(t) == TypeClass::kFloat || is_complex(t)) &&
         by->opcode == Opcode::kConstant && by->shape.is_scalar() && !is_zero(*by);
}

bool sums_pass_select(const Instr&, int operand) { return operand > 0; }

constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
constexpr std::string_view kCompareTypes[] = {"", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
constexpr Field kCompareFields[] = {
    stablehlo_name(
        required(enum_names(field<&CompareAttrs::direction>("direction", FieldKind::kEnum),
                            kDirections)),
        "comparison_direction"),
    stablehlo_name(enum_names(field<&CompareAttrs::type>("type", FieldKind::kEnum), kCompareTypes),
                   "compare_type"),
};
constexpr Field kReducePrecisionFields[] = {
    required(field<&ReducePrecisionAttrs::exponent_bits>("exponent_bits", FieldKind::kInt)),
    required(field<&ReducePrecisionAttrs::mantissa_bits>("mantissa_bits", FieldKind::kInt)),
};
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
#define LIKE(id, operands, types) \
  ELEMENTWISE(id, operands, kTraits, (infer_like_operands<Opcode::k##id, types>), 1)
#define TRANSCENDENTAL(id, operands, types) \
  ELEMENTWISE(id, operands, kTranscendentalTraits, (infer_like_operands<Opcode::k##id, types>), 1)
#define PRODUCT(id, operands, types) \
  ELEMENTWISE(id, operands, kProductTraits, (infer_like_operands<Opcode::k##id, types>), 1)
#define SUM(id, operands, types) \
  ELEMENTWISE(id, operands, kSumTraits, (infer_like_operands<Opcode::k##id, types>), 1)

TRANSCENDENTAL(Acos, 1, kFloating);
TRANSCENDENTAL(Acosh, 1, kFloating);
TRANSCENDENTAL(Asin, 1, kFloating);
TRANSCENDENTAL(Asinh, 1, kFloating);
TRANSCENDENTAL(Atanh, 1, kFloating);
TRANSCENDENTAL(Cbrt, 1, kFloating);
LIKE(Ceil, 1, kFloats);
LIKE(Clz, 1, kInts);
TRANSCENDENTAL(Cos, 1, kFloating);
TRANSCENDENTAL(Cosh, 1, kFloating);
TRANSCENDENTAL(Erf, 1, kFloats);
TRANSCENDENTAL(Exp, 1, kFloating);
TRANSCENDENTAL(Expm1, 1, kFloating);
LIKE(Floor, 1, kFloats);
TRANSCENDENTAL(Log, 1, kFloating);
TRANSCENDENTAL(Log1p, 1, kFloating);
TRANSCENDENTAL(Logistic, 1, kFloating);
LIKE(Not, 1, kBits);
LIKE(Popcnt, 1, kInts);
LIKE(RoundNearestAfz, 1, kFloats);
LIKE(RoundNearestEven, 1, kFloats);
TRANSCENDENTAL(Rsqrt, 1, kFloating);
LIKE(Sign, 1, kNumbers);
TRANSCENDENTAL(Sin, 1, kFloating);
TRANSCENDENTAL(Sinh, 1, kFloating);
TRANSCENDENTAL(Sqrt, 1, kFloating);
TRANSCENDENTAL(Tan, 1, kFloating);
TRANSCENDENTAL(Tanh, 1, kFloating);
PRODUCT(Negate, 1, kNumbers);
ELEMENTWISE(Copy, 1, kMoveTraits, (infer_like_operands<Opcode::kCopy, kAny>), 0);
ELEMENTWISE(Abs, 1, kTraits, (infer_real<Opcode::kAbs, kNumbers>), 1);
ELEMENTWISE(Imag, 1, kProductTraits, (infer_real<Opcode::kImag, kFloating>), 1);
ELEMENTWISE(Real, 1, kProductTraits, (infer_real<Opcode::kReal, kFloating>), 1);
ELEMENTWISE(IsFinite, 1, kTraits, infer_is_finite, 1);

SUM(Add, 2, kAny);
SUM(Subtract, 2, kNumbers);
LIKE(And, 2, kBits);
TRANSCENDENTAL(Atan2, 2, kFloating);
LIKE(Maximum, 2, kOrdered);
LIKE(Minimum, 2, kOrdered);
LIKE(Mulhi, 2, kInts);
PRODUCT(Multiply, 2, kAny);
LIKE(Or, 2, kBits);
TRANSCENDENTAL(Power, 2, kNumbers);
LIKE(Remainder, 2, kReals);
LIKE(ShiftLeft, 2, kInts);
LIKE(ShiftRightArithmetic, 2, kInts);
LIKE(ShiftRightLogical, 2, kInts);
LIKE(Xor, 2, kBits);
ELEMENTWISE(Complex, 2, kSumTraits, infer_complex, 1);
ELEMENTWISE(Clamp, 3, kTraits, infer_clamp, 1);

extern const OpDef kDivideDef = {.opcode = Opcode::kDivide,
                                 .name = "divide",
                                 .min_operands = 2,
                                 .max_operands = 2,
                                 .traits = kProductTraits,
                                 .infer = infer_like_operands<Opcode::kDivide, kNumbers>,
                                 .sums_pass = sums_pass_divide,
                                 .rule = pointwise,
                                 .flops_per_point = 1};
extern const OpDef kSelectDef = {.opcode = Opcode::kSelect,
                                 .name = "select",
                                 .min_operands = 3,
                                 .max_operands = 3,
                                 .traits = kSumTraits,
                                 .infer = infer_select,
                                 .sums_pass = sums_pass_select,
                                 .rule = pointwise,
                                 .flops_per_point = 1};
extern const OpDef kCompareDef = {.opcode = Opcode::kCompare,
                                  .name = "compare",
                                  .min_operands = 2,
                                  .max_operands = 2,
                                  .attrs = AttrsKind::kCompareAttrs,
                                  .fields = kCompareFields,
                                  .traits = kTraits,
                                  .infer = infer_compare,
                                  .rule = pointwise,
                                  .flops_per_point = 1};
extern const OpDef kConvertDef = {.opcode = Opcode::kConvert,
                                  .name = "convert",
                                  .traits = kConvertTraits,
                                  .sums_pass = sums_pass_convert,
                                  .verify = verify_convert,
                                  .rule = pointwise,
                                  .flops_per_point = 1};
extern const OpDef kReducePrecisionDef = {.opcode = Opcode::kReducePrecision,
                                          .name = "reduce-precision",
                                          .attrs = AttrsKind::kReducePrecisionAttrs,
                                          .fields = kReducePrecisionFields,
                                          .traits = kStatedTraits,
                                          .verify = verify_reduce_precision,
                                          .rule = pointwise,
                                          .flops_per_point = 1};
extern const OpDef kStochasticConvertDef = {.opcode = Opcode::kStochasticConvert,
                                            .name = "stochastic-convert",
                                            .min_operands = 2,
                                            .max_operands = 2,
                                            .traits = kStatedTraits,
                                            .verify = verify_stochastic_convert,
                                            .rule = pointwise,
                                            .flops_per_point = 1};

}  // namespace gspmd
