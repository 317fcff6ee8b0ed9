#include "gspmd/partition/manual.h"

#include <absl/container/flat_hash_set.h>

#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

bool is_entry(const Instr& i) {
  return i.attrs<CustomCallAttrs>().target == "SPMDFullToShardShape";
}

// `outer` with, in each dimension, the axes of `manual` that it had and then those of `inner`.
Sharding outside(Sharding outer, Sharding inner, AxisSet manual, ShardingPool& pool) {
  ShardingData data = *outer;
  for (int d = 0; d < outer.rank(); ++d) {
    AxisList axes;
    for (AxisId a : outer.dim(d)) {
      if (manual.contains(a)) axes.push_back(a);
    }
    axes.append(inner.dim(d));
    data.dims[d] = axes;
  }
  data.manual = outer->manual;
  return pool.intern(data);
}

}  // namespace

bool is_manual_boundary(const Instr& i) {
  if (i.opcode != Opcode::kCustomCall) return false;
  std::string_view target = i.attrs<CustomCallAttrs>().target;
  return target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape";
}

Boundary boundary_layouts(const Instr& i, Sharding operand, Sharding result, ShardingPool& pool) {
  Sharding inner = is_entry(i) ? result : operand, outer = is_entry(i) ? operand : result;
  AxisSet manual = inner->manual - outer->manual;
  Sharding laid = outside(outer, inner, manual, pool);
  return is_entry(i) ? Boundary{laid, result} : Boundary{operand, laid};
}

std::vector<Computation*> partitioned_computations(const Module& module) {
  absl::flat_hash_set<const Computation*> wanted{module.entry()};
  const auto& all = module.computations();
  for (auto c = all.rbegin(); c != all.rend(); ++c) {  // callers before callees
    if (!wanted.contains(c->get())) continue;
    for (const Instr* i : (*c)->instrs()) {
      if (!def(*i).traits.structural) continue;
      for (Computation* callee : i->called) wanted.insert(callee);
    }
  }
  std::vector<Computation*> out;
  for (const auto& c : all) {
    if (wanted.contains(c.get())) out.push_back(c.get());
  }
  return out;
}

}  // namespace gspmd
