// dot: result dimensions are the batch dimensions, the free ones of lhs, the free ones of rhs.

#include "gspmd/ops/dot_dims.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

Shape infer(const InferArgs& args) {
  Shape lhs = array_operand(args, 0, "dot"), rhs = array_operand(args, 1, "dot");
  const auto& a = args.attrs.get<DotAttrs>();
  check_dot_dims(a, lhs, rhs, "dot");
  Sizes sizes;
  for (int64_t d : a.lhs_batch) sizes.add(lhs, static_cast<int>(d));
  for (int64_t d : free_dims(lhs.rank(), {a.lhs_batch, a.lhs_contract}))
    sizes.add(lhs, static_cast<int>(d));
  for (int64_t d : free_dims(rhs.rank(), {a.rhs_batch, a.rhs_contract}))
    sizes.add(rhs, static_cast<int>(d));
  return sizes.shape(args.context, product_type(args, lhs, rhs));
}

// dot(f32[4,8,2], f32[4,2,6]) with one batch dimension: "abc,acd->abd | c: reduce(sum)".
const Rule* rule(const Instr& dot, Arena& arena) {
  const auto& a = dot.attrs<DotAttrs>();
  RuleBuilder r(dot, arena);
  int64_t next = 0;
  for (size_t i = 0; i < a.lhs_batch.size(); ++i)
    r.parallel({a.lhs_batch[i], a.rhs_batch[i]}, next++);
  for (int64_t d : free_dims(dot.operand(0)->shape.rank(), {a.lhs_batch, a.lhs_contract})) {
    r.parallel({d, kNone}, next++);
  }
  for (int64_t d : free_dims(dot.operand(1)->shape.rank(), {a.rhs_batch, a.rhs_contract})) {
    r.parallel({kNone, d}, next++);
  }
  for (size_t i = 0; i < a.lhs_contract.size(); ++i) {
    r.reduce({a.lhs_contract[i], a.rhs_contract[i]}, Combiner::kSum);
  }
  return r.build();
}

constexpr Field kFields[] = {GSPMD_DOT_DIMS_FIELDS, GSPMD_DOT_PRECISION_FIELDS};

}  // namespace

extern const OpDef kDotDef = {
    .opcode = Opcode::kDot,
    .name = "dot",
    .stablehlo = "dot_general",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = AttrsKind::kDotAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true, .sums = PartialSums::kPassInOne},
    .infer = infer,
    .rule = rule,
    .flops_per_point = 2,
};

}  // namespace gspmd
