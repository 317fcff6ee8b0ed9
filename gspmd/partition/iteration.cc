#include "gspmd/partition/iteration.h"

#include "gspmd/partition/handler.h"

namespace gspmd {

Shape Iteration::shape(int tensor) const {
  if (!is_result(tensor)) return instr.operand(tensor)->shape;
  if (!instr.shape.is_tuple()) return instr.shape;
  Shape found;
  for_each_leaf(instr.shape, [&](Shape s, int leaf) {
    if (leaf == tensor - rule.num_operands()) found = s;
  });
  return found;
}

AxisSet Iteration::reduced(const FactorAxes& factors, Combiner* combiner) const {
  AxisSet axes;
  for (int f = 0; f < rule.num_factors(); ++f) {
    const Factor& factor = rule.factor(static_cast<FactorId>(f));
    if (factors[f].empty() || factor.combiner == Combiner::kNone) continue;
    axes |= factors[f].set();
    *combiner = factor.combiner;
  }
  return axes;
}

Sharding Iteration::layout(int tensor, const FactorAxes& factors, bool* complete,
                           Sharding likely) const {
  ShardingData data;
  data.mesh = mesh;
  data.manual = manual;
  Shape s = shape(tensor);
  int rank = s.is_array() ? rule.rank(tensor) : 0;
  for (int d = 0; d < rank; ++d) {
    data.dims.push_back(dim_axes(*mesh, rule, rule.dim(tensor, d), s.dim(d), factors, complete));
  }
  if (is_result(tensor)) data.pending = reduced(factors, &data.combiner);
  return likely && *likely == data ? likely : pool.intern(data);
}

bool is_made_anywhere(const Instr& value) {
  if (value.opcode == Opcode::kIota) return true;
  return value.opcode == Opcode::kBroadcast && value.operand(0)->shape.is_scalar();
}

bool can_split(const Iteration& it, FactorId f, const AxisList& axes, bool handlers) {
  const Factor& factor = it.rule.factor(f);
  if (axes.empty()) return true;
  const Handler* handler = handlers ? handler_of(it.instr) : nullptr;
  if (handler != nullptr && handler->can_split != nullptr) {
    std::optional<bool> answer = handler->can_split(it, f, axes);
    if (answer) return *answer;
  }
  if (factor.needs_handler) return false;
  return factor.kind == FactorKind::kParallel ||
         (factor.kind == FactorKind::kReduce && factor.combiner != Combiner::kNone);
}

}  // namespace gspmd
