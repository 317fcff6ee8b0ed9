// Custom-calls whose target has a rule: the call runs on shards. Padding never enters one that is
// not known to bear it.
#include <string>

#include "gspmd/ops/custom_call.h"
#include "gspmd/partition/handler.h"

namespace gspmd {
namespace {

std::optional<bool> splits_custom_call(const Iteration& it, FactorId f, const AxisList& axes) {
  const bool even = it.rule.factor(f).size % it.mesh->product(axes) == 0;
  if (!even && !bears_padding(it.instr)) return false;
  return std::nullopt;
}

// operand_layout_constraints={f32[8,4]{1,0}, s32[8]{0}} with the operands' local sizes.
std::string_view local_constraints(const LocalOp& op, std::string_view text) {
  std::string out;
  for (Instr* operand : op.operands) {
    size_t open = text.find('['), close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    const Dims& dims = operand->shape.dims();
    out += text.substr(0, open);
    out += '[';
    for (size_t d = 0; d < dims.size(); ++d) out += (d == 0 ? "" : ",") + std::to_string(dims[d]);
    out += ']';
    text.remove_prefix(close + 1);
  }
  out += text;
  return op.e.context().name(out);
}

Instr* localize_custom_call(LocalOp& op) {
  Instr* r = localize_by_rule(op);
  CustomCallAttrs a = op.instr().attrs<CustomCallAttrs>();
  if (a.operand_layout_constraints.empty()) return r;
  a.operand_layout_constraints = local_constraints(op, a.operand_layout_constraints);
  r->attributes = op.e.context().attrs(a);
  return r;
}

}  // namespace

extern const Handler kCustomCallHandler = {.can_split = splits_custom_call,
                                           .localize = localize_custom_call};

}  // namespace gspmd
