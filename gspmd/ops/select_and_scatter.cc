// select-and-scatter: each source element goes to the operand element that its window selects (a
// max-pool's gradient).

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "select-and-scatter";

Shape infer(const InferArgs& args) {
  Window window = args.attrs.get<WindowAttrs>().window;
  Shape x = array_operand(args, 0, kName), source = array_operand(args, 1, kName);
  Shape init = array_operand(args, 2, kName);
  check_window(window, x.rank(), kName);
  if (!init.is_scalar())
    refuse(kName, fmt::format("initial value is {}, not a scalar", to_string(init)));
  if (source.rank() != x.rank()) {
    refuse(kName, fmt::format("operand is {} and source {}: ranks must be equal", to_string(x),
                              to_string(source)));
  }
  for (int d = 0; d < x.rank(); ++d) {
    int64_t positions = window_positions(x.dim(d), window[d]);
    if (source.dim(d) == positions) continue;
    refuse(kName,
           fmt::format("dimension {}: the window has {} positions and the source {} elements", d,
                       positions, source.dim(d)),
           "the source has one element for each position of the window on the operand");
  }
  return x;
}

// The source runs over the window's positions, operand and result are what the windows cover:
// Factor::scatters.
const Rule* rule(const Instr& instr, Arena& arena) {
  Window window = instr.attrs<WindowAttrs>().window;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.shape.rank(); ++d) {
    if (is_trivial(window[d])) {
      r.parallel({d, d}, d);
      continue;
    }
    FactorId f = r.add({.kind = FactorKind::kWindow,
                        .size = instr.operand(1)->shape.dim(d),
                        .window = r.keep(window[d]),
                        .scatters = true});
    r.place(f, 0, d);
    r.place(f, 1, d);
    r.place(f, r.result(), d);
  }
  return r.build();
}

constexpr Field kFields[] = {field<&WindowAttrs::window>("window", FieldKind::kWindow)};
constexpr std::string_view kCalled[] = {"select", "scatter"};

}  // namespace

extern const OpDef kSelectAndScatterDef = {
    .opcode = Opcode::kSelectAndScatter,
    .name = kName,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = AttrsKind::kWindowAttrs,
    .fields = kFields,
    .called = kCalled,
    .traits = {.shape_inferable = true},
    .infer = infer,
    .rule = rule,
    .flops_per_point = 1,
};

}  // namespace gspmd
