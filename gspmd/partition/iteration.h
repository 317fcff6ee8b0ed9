#pragma once

#include <absl/types/span.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/propagate/projection.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// One operator's iteration space laid over a mesh: what its factors' axes mean for each of its
// tensors.
struct Iteration {
  const Instr& instr;
  const Rule& rule;
  const Mesh* mesh;
  ShardingPool& pool;
  AxisSet manual;  // of the region that the operator stands in

  // Shape of tensor t: operands, then result leaves.
  Shape shape(int tensor) const;
  // How tensor t must be laid out (operand) or comes out (result): split as its factors are;
  // results are pending along the axes of reduction factors. *complete is set to false where a
  // factor's axes can not be said on the tensor. `likely`: what it may well be, found faster.
  Sharding layout(int tensor, const FactorAxes& factors, bool* complete,
                  Sharding likely = {}) const;
  // Axes along which results are partial, those of factors with a combiner (reductions; indices
  // that are masked and combined), and their one combiner.
  AxisSet reduced(const FactorAxes& factors, Combiner* combiner) const;
  bool is_result(int tensor) const { return tensor >= rule.num_operands(); }
};

// A value that every device makes in any layout for nothing: a number spread out, a count. It is
// made again where it is wanted otherwise, not moved.
bool is_made_anywhere(const Instr& value);

// Whether the partitioner can compute the operator with these axes on this factor; the fallback for
// those that it can not is to gather the factor. `handlers` false: only what the rule alone allows.
bool can_split(const Iteration& it, FactorId f, const AxisList& axes, bool handlers);

}  // namespace gspmd
