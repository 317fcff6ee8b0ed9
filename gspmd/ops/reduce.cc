// reduce: dimensions folded by a reducer. n arrays and n initial scalars, n results.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/reducer.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "reduce";

Shape infer(const InferArgs& args) {
  Dims reduced = args.attrs.get<DimsAttrs>().dimensions;
  int n = check_reduction_operands(args, kName);
  Shape first = args.operands[0];
  check_dims(reduced, first.rank(), kName, "dimensions");
  Sizes kept;
  for (int d = 0; d < first.rank(); ++d) {
    if (!reduced.contains(d)) kept.add(first, d);
  }
  absl::InlinedVector<Shape, 4> results;
  for (int i = 0; i < n; ++i)
    results.push_back(kept.shape(args.context, args.operands[n + i].type()));
  return one_or_tuple(args.context, results);
}

// reduce(f32[8,4], f32[]) over {1}: "ab,->a | b: reduce(sum)". The initial values are scalars and
// enter once. The parts of a joint reduction of several arrays (an argmax) can not be combined one
// by one, hence Combiner::kNone.
const Rule* rule(const Instr& instr, Arena& arena) {
  Dims reduced = instr.attrs<DimsAttrs>().dimensions;
  int n = instr.num_operands() / 2;
  Combiner combiner = n == 1 ? combiner_of(*instr.called[0]) : Combiner::kNone;
  RuleBuilder r(instr, arena);
  int64_t result_dim = 0;
  for (int d = 0; d < instr.operand(0)->shape.rank(); ++d) {
    DimVector dims(n, d);
    if (reduced.contains(d)) {
      r.set_needs_handler(r.reduce(dims, combiner));  // the initial values enter once
    } else {
      r.parallel(dims, result_dim++);
    }
  }
  return r.build();
}

constexpr Field kFields[] = {
    required(field<&DimsAttrs::dimensions>("dimensions", FieldKind::kDims))};
constexpr std::string_view kCalled[] = {"to_apply"};

// Sums of one tensor.
bool passes(const Instr& i, int operand) {
  return operand == 0 && i.num_operands() == 2 && combiner_of(*i.called[0]) == Combiner::kSum;
}

}  // namespace

extern const OpDef kReduceDef = {
    .opcode = Opcode::kReduce,
    .name = kName,
    .min_operands = 2,
    .max_operands = -1,
    .attrs = AttrsKind::kDimsAttrs,
    .fields = kFields,
    .called = kCalled,
    .traits = {.shape_inferable = true, .sums = PartialSums::kPassInOne},
    .infer = infer,
    .sums_pass = passes,
    .rule = rule,
    .flops_per_point = 1,
};

}  // namespace gspmd
