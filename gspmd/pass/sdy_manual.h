#pragma once

#include "gspmd/ir/module.h"

namespace gspmd {

// Rewrites the borders of manual computations as JAX lowers `shard_map` with Shardy,
// `xla.sdy.GlobalToLocalShape` and `xla.sdy.LocalToGlobalShape` (all operands at once, axes by
// name), to what the stages know: for each operand an annotated copy and `SPMDFullToShardShape` or
// `SPMDShardToFullShape`. In a computation nested in a manual one the outer axes stay manual.
//
//   custom-call(x), target="xla.sdy.GlobalToLocalShape", in_shardings=[<@mesh, [{"x"}, {"y"}]>],
//       manual_axes={"x"}
// becomes
//   copy(x), sharding [{"x"}, {"y"}];  SPMDFullToShardShape, sharding [{}, {"y"}] manual {"x"}
//
// Needs a verified module whose calls are not inlined yet. Throws Error where the attributes do not
// parse or do not fit the operands.
void lower_sdy_manual(Module* module);

}  // namespace gspmd
