// Reduction over split dimensions: partial results, the initial value once.
#include <algorithm>
#include <vector>

#include "gspmd/partition/handler.h"

namespace gspmd {
namespace {

bool is_constant_identity(const Instr& init, Combiner c) {
  return init.opcode == Opcode::kConstant && is_identity(*init.attrs<ConstantAttrs>().literal, c);
}

Instr* localize_reduce(LocalOp& op) {
  Sharding made = op.results[0];
  int n = op.rule().num_operands() / 2;
  for (int k = n; k < 2 * n && !made->pending.empty(); ++k) {
    if (is_constant_identity(*op.instr().operand(k), made->combiner)) continue;
    op.operands[k] = once(op, op.operands[k], made->combiner, made->pending);
  }
  return localize_by_rule(op);
}

std::optional<bool> splits_reduce(const Iteration& it, FactorId f, const AxisList&) {
  const Factor& factor = it.rule.factor(f);
  return factor.kind == FactorKind::kParallel || factor.combiner != Combiner::kNone;
}

}  // namespace

extern const Handler kReduceHandler = {.can_split = splits_reduce, .localize = localize_reduce};

}  // namespace gspmd
