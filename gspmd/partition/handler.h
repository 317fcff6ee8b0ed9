#pragma once

#include <optional>
#include <vector>

#include "gspmd/partition/emitter.h"
#include "gspmd/partition/halo_exchange.h"
#include "gspmd/partition/iteration.h"

namespace gspmd {

// One operator being localised: per-device operands laid out as Iteration::layout says for
// `factors`.
struct LocalOp {
  Emitter& e;
  const Iteration& it;
  const FactorAxes& factors;
  absl::InlinedVector<Instr*, 4> operands;   // local values
  absl::InlinedVector<Sharding, 4> layouts;  // of the operands
  absl::Span<const Sharding> results;  // of the result leaves, as the handler must produce them

  const Instr& instr() const { return it.instr; }
  const Rule& rule() const { return it.rule; }
  // The axes that split dimension d of tensor t (operands, then results) and the number of shards.
  const AxisList& axes(int tensor, int d) const;
  int64_t shards(int tensor, int d) const { return it.mesh->product(axes(tensor, d)); }
  // Local sizes of result leaf r.
  DimVector local_result_dims(int r = 0) const;
  Shape local_result_shape() const;  // the whole result, tuples included
  SplitDim split(int tensor, int d) const { return {d, it.mesh, axes(tensor, d)}; }
  // True where the last shards of tensor t's dimension d hold padding.
  bool is_uneven(int tensor, int d) const {
    return it.shape(tensor).dim(d) % shards(tensor, d) != 0;
  }
  // Local operand k with the padding of dimension d replaced by `fill`; as it is where the
  // dimension is even.
  Instr* masked(int operand, int d, Instr* value, Instr* fill) const;
};

// What code beyond the rule knows of an operator. It makes things faster and is never needed for
// correctness: whatever it refuses is gathered. One file per family in handlers/.
struct Handler {
  // Whether it can split a factor; nullopt: no opinion, the rule decides (parallel yes, reduction
  // with a combiner yes).
  std::optional<bool> (*can_split)(const Iteration& it, FactorId f, const AxisList& axes) = nullptr;
  // Computes the local result; null: the operator itself on local operands (localize_by_rule).
  Instr* (*localize)(LocalOp& op) = nullptr;
};

const Handler* handler_of(const Instr& instr);

// `value` on the first device along `reduced`, and the combiner's identity on the others: what
// enters a pending result must enter once, however the partial results are combined later.
Instr* once(LocalOp& op, Instr* value, Combiner combiner, AxisSet reduced);

// The operator on local operands with local attributes; padding along reduced dimensions is masked
// first.
Instr* localize_by_rule(LocalOp& op);
// Its two halves, for handlers that change operands in between.
void mask_reduced(LocalOp& op);
Instr* emit_by_rule(LocalOp& op);

}  // namespace gspmd
