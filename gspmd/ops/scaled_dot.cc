// scaled-dot(lhs, lhs_scale, rhs, rhs_scale): a dot of operands that are multiplied by blockwise
// scales first. A scale has its operand's rank; a dimension of n scales for K elements scales
// blocks of K/n. A scalar scale is no scaling.

#include <fmt/format.h>

#include "gspmd/ops/dot_dims.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "scaled-dot";
enum : int { kLhs, kLhsScale, kRhs, kRhsScale };

void check_scale(Shape x, Shape scale, std::string_view side) {
  if (scale.rank() == 0) return;
  if (scale.rank() != x.rank()) {
    refuse(kName, fmt::format("{} is {} and its scale {}: ranks must be equal", side, to_string(x),
                              to_string(scale)));
  }
  for (int d = 0; d < x.rank(); ++d) {
    bool fits = scale.dim(d) == 1 || (0 < scale.dim(d) && scale.dim(d) <= x.dim(d));
    if (fits && x.dim(d) % scale.dim(d) == 0) continue;
    refuse(kName,
           fmt::format("dimension {} of {} has {} elements and {} scales", d, side, x.dim(d),
                       scale.dim(d)),
           "the number of scales must divide the number of elements");
  }
}

Shape infer(const InferArgs& args) {
  Shape lhs = array_operand(args, kLhs, kName), rhs = array_operand(args, kRhs, kName);
  check_scale(lhs, array_operand(args, kLhsScale, kName), "lhs");
  check_scale(rhs, array_operand(args, kRhsScale, kName), "rhs");
  const auto& a = args.attrs.get<DotAttrs>();
  check_dot_dims(a, lhs, rhs, kName);
  Sizes sizes;
  for (int64_t d : a.lhs_batch) sizes.add(lhs, static_cast<int>(d));
  for (int64_t d : free_dims(lhs.rank(), {a.lhs_batch, a.lhs_contract}))
    sizes.add(lhs, static_cast<int>(d));
  for (int64_t d : free_dims(rhs.rank(), {a.rhs_batch, a.rhs_contract}))
    sizes.add(rhs, static_cast<int>(d));
  return sizes.shape(args.context, product_type(args, lhs, rhs));
}

// Scales along dimension d of an operand: 1 where one scale serves all.
int64_t num_scales(const Instr& dot, int scale, int64_t d) {
  Shape s = dot.operand(scale)->shape;
  return d == kNone || s.rank() == 0 ? 1 : s.dim(static_cast<int>(d));
}

// One index of the iteration space on lhs dimension l, rhs dimension s and result dimension
// `result` (kNone: absent): a major factor of the blocks, on the scales too, and a minor one within
// a block. Where both sides have blocks of different sizes, whole.
void add_index(RuleBuilder* r, const Instr& dot, Factor factor, int64_t l, int64_t s,
               int64_t result) {
  int64_t blocks_l = num_scales(dot, kLhsScale, l), blocks_s = num_scales(dot, kRhsScale, s);
  int64_t blocks = std::max(blocks_l, blocks_s);
  int64_t size = l != kNone ? dot.operand(kLhs)->shape.dim(static_cast<int>(l))
                            : dot.operand(kRhs)->shape.dim(static_cast<int>(s));
  bool differ = blocks_l != 1 && blocks_s != 1 && blocks_l != blocks_s;
  auto add = [&](int64_t part, bool with_scales) {
    factor.size = part;
    FactorId f = r->add(factor);
    if (l != kNone) r->place(f, kLhs, l);
    if (s != kNone) r->place(f, kRhs, s);
    if (with_scales && blocks_l > 1) r->place(f, kLhsScale, l);
    if (with_scales && blocks_s > 1) r->place(f, kRhsScale, s);
    if (result != kNone) r->place(f, r->result(), result);
  };
  if (differ) {
    factor = {.kind = FactorKind::kWhole};
    add(size, /*with_scales=*/false);
    return;
  }
  if (blocks > 1) add(blocks, /*with_scales=*/true);
  if (size / blocks > 1) add(size / blocks, /*with_scales=*/false);
}

const Rule* rule(const Instr& dot, Arena& arena) {
  const auto& a = dot.attrs<DotAttrs>();
  const Factor parallel, sum{.kind = FactorKind::kReduce, .combiner = Combiner::kSum};
  RuleBuilder r(dot, arena);
  int64_t next = 0;
  for (size_t i = 0; i < a.lhs_batch.size(); ++i) {
    add_index(&r, dot, parallel, a.lhs_batch[i], a.rhs_batch[i], next++);
  }
  for (int64_t d : free_dims(dot.operand(kLhs)->shape.rank(), {a.lhs_batch, a.lhs_contract})) {
    add_index(&r, dot, parallel, d, kNone, next++);
  }
  for (int64_t d : free_dims(dot.operand(kRhs)->shape.rank(), {a.rhs_batch, a.rhs_contract})) {
    add_index(&r, dot, parallel, kNone, d, next++);
  }
  for (size_t i = 0; i < a.lhs_contract.size(); ++i) {
    add_index(&r, dot, sum, a.lhs_contract[i], a.rhs_contract[i], kNone);
  }
  return r.build();
}

constexpr Field kFields[] = {GSPMD_DOT_DIMS_FIELDS, GSPMD_DOT_PRECISION_FIELDS};

}  // namespace

extern const OpDef kScaledDotDef = {
    .opcode = Opcode::kScaledDot,
    .name = kName,
    .min_operands = 4,
    .max_operands = 4,
    .attrs = AttrsKind::kDotAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true},
    .infer = infer,
    .rule = rule,
    .flops_per_point = 2,
};

}  // namespace gspmd
