#pragma once

#include "gspmd/partition/emitter.h"
#include "gspmd/sharding/reshard.h"

namespace gspmd {

// Emits the steps of a plan on a local value: `local` is laid out as `from` (interface blocks); the
// result as `to`. `dims` are the value's global sizes. Each axis dropped from a dimension is an
// all-gather, added a slice at the partition's offset, moved an all-to-all, exchanged a
// collective-permute; pending values are all-reduced or reduce-scattered (design, section 2).
Instr* lower_reshard(Emitter& e, Instr* local, Sharding from, Sharding to,
                     absl::Span<const int64_t> dims, const ReshardPlan& plan);

}  // namespace gspmd
