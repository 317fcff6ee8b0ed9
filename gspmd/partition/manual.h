#pragma once

#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// SPMDFullToShardShape and SPMDShardToFullShape: the entry to and the exit from a manual region.
bool is_manual_boundary(const Instr& i);

// The layouts under which a boundary moves nothing: outside, each dimension is split first by the
// manual axes and then by the automatic ones; inside, by the automatic ones alone.
struct Boundary {
  Sharding operand, result;
};
Boundary boundary_layouts(const Instr& i, Sharding operand, Sharding result, ShardingPool& pool);

// Computations that are partitioned: entry, loop bodies and conditions, branches, callees; not the
// scalar functions that reducers and comparators are. Callees first.
std::vector<Computation*> partitioned_computations(const Module& module);

}  // namespace gspmd
