#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/propagate/sharding_table.h"
#include "gspmd/sharding/refinement.h"

namespace gspmd {

struct PropagateOptions {
  // Overrides the header's allow_spmd_sharding_propagation_to_* where set.
  bool propagate_to_parameters = false, propagate_to_output = false;
};

// Where an axis on a dimension came from: the operator whose rule carried it and the value that had
// it. Both null: it was annotated there.
struct AxisOrigin {
  const Instr* via = nullptr;
  const Instr* from = nullptr;
};

// What lost when two shardings wanted the same axis or the same dimension.
struct PropagationConflict {
  const Instr* instr = nullptr;  // the value that stayed as it was
  int leaf = 0;
  int dim = 0;
  AxisList wanted;
  const Instr* via = nullptr;
};

struct Propagation {
  ShardingTable shardings;
  std::vector<PropagationConflict> conflicts;

  // Origin of axis `a` on dimension `dim` of a leaf.
  AxisOrigin origin(const Instr& i, int leaf, int dim, AxisId a) const;

  struct Placement {  // in the order of placing
    uint32_t value;
    uint8_t dim;
    AxisId axis;
    AxisOrigin origin;
  };
  std::vector<Placement> placements;
  std::vector<uint32_t> first_value;    // by Instr::id: number of its first leaf
  std::vector<uint32_t> value_of_leaf;  // leaves that must be laid out alike share a value
};

// Completion: from the annotations of a module to a sharding of every value (the paper's
// section 3.5, "sharding completion"). Needs a verified module whose annotations `refinement` has
// been told of (finish() called). Guarantees: user annotations are kept (only open dimensions are
// refined); an axis once placed is never withdrawn; while bodies, conditions and results agree leaf
// by leaf; the result does not depend on the order in which instructions are visited.
//
//   x = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]};  y = tanh(x)   ->   y is split as x
Propagation propagate(const Module& module, MeshRefinement& refinement, RuleCache& rules,
                      const PropagateOptions& options);

// The annotation of an instruction's leaves in effect: its own `sharding=` or its
// `xla.sdy.sharding` frontend attribute (which also says which dimensions are open); empty where
// there is none. Custom calls `Sharding` with `unspecified_dims=[0,1]` leave those dimensions open.
std::vector<Annotation> annotations_of(const Instr& i, MeshRefinement& refinement);

// Tells `refinement` of every annotation of the module, and of reshape boundaries, then finishes
// it.
void note_annotations(const Module& module, RuleCache& rules, MeshRefinement* refinement);

// The module's sdy meshes (`xla.sdy.meshes`), by name.
std::vector<std::pair<std::string, NamedMesh>> named_meshes_of(const Module& module);

// Gives annotations that only sdy attributes spell (`xla.sdy.sharding`) HLO's own spelling as well,
// for readers that know no sdy. Open dimensions and priorities have none there.
void spell_annotations_in_hlo(Module* module);

// Writes every sharding into Instr::annotation, for printing (`gspmd propagate`, stage dumps).
void write_annotations(Module* module, const ShardingTable& shardings);

}  // namespace gspmd
