#include "gspmd/pass/boundaries.h"

#include "gspmd/partition/manual.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd {

std::vector<std::pair<const Instr*, ManualBoundary>> manual_boundaries(const Module& module,
                                                                       int64_t num_partitions) {
  std::vector<const Instr*> found;
  for (const auto& c : module.computations()) {
    for (const Instr* i : c->instrs()) {
      if (is_manual_boundary(*i)) found.push_back(i);
    }
  }
  std::vector<std::pair<const Instr*, ManualBoundary>> out;
  if (found.empty()) return out;
  MeshRefinement refinement(&module.context().shardings(),
                            num_partitions_of(module, num_partitions), named_meshes_of(module));
  RuleCache rules;
  note_annotations(module, rules, &refinement);
  Propagation completed = propagate(module, refinement, rules, {});
  for (const Instr* i : found) {
    Sharding operand = completed.shardings.leaf(*i->operand(0)),
             result = completed.shardings.leaf(*i);
    bool entry = i->attrs<CustomCallAttrs>().target == "SPMDFullToShardShape";
    Sharding inside = entry ? result : operand, outside = entry ? operand : result;
    out.emplace_back(i, ManualBoundary{outside, inside->manual - outside->manual});
  }
  return out;
}

}  // namespace gspmd
