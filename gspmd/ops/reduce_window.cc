// reduce-window: a reducer over every position of a window. n arrays and n initial scalars, n
// results.

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/reducer.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "reduce-window";

Shape infer(const InferArgs& args) {
  Window window = args.attrs.get<WindowAttrs>().window;
  int n = check_reduction_operands(args, kName);
  Shape first = args.operands[0];
  check_window(window, first.rank(), kName);
  Sizes sizes;
  for (int d = 0; d < first.rank(); ++d) {
    if (is_trivial(window[d])) {
      sizes.add(first, d);
    } else {
      sizes.add(window_positions(first.dim(d), window[d]));
    }
  }
  absl::InlinedVector<Shape, 4> results;
  for (int i = 0; i < n; ++i)
    results.push_back(sizes.shape(args.context, args.operands[n + i].type()));
  return one_or_tuple(args.context, results);
}

// Windows of one element are parallel; all others read across shards.
const Rule* rule(const Instr& instr, Arena& arena) {
  Window window = instr.attrs<WindowAttrs>().window;
  int n = instr.num_operands() / 2;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.operand(0)->shape.rank(); ++d) {
    DimVector dims(n, d);
    if (is_trivial(window[d])) {
      r.parallel(dims, d);
    } else {
      r.window(dims, d, window[d]);
    }
  }
  return r.build();
}

constexpr Field kFields[] = {field<&WindowAttrs::window>("window", FieldKind::kWindow)};
constexpr std::string_view kCalled[] = {"to_apply"};

}  // namespace

extern const OpDef kReduceWindowDef = {
    .opcode = Opcode::kReduceWindow,
    .name = kName,
    .min_operands = 2,
    .max_operands = -1,
    .attrs = AttrsKind::kWindowAttrs,
    .fields = kFields,
    .called = kCalled,
    .traits = {.shape_inferable = true},
    .infer = infer,
    .rule = rule,
    .flops_per_point = 1,
};

}  // namespace gspmd
