#pragma once

#include <absl/container/inlined_vector.h>
#include <absl/types/span.h>

#include <utility>
#include <vector>

#include "gspmd/sharding/reshard.h"

namespace gspmd {

// Where a value passes from one mesh to another; private to the library.
//
// It can pass wherever both meshes split each dimension into as many shards: devices permute, or
// stay where each has the same shard on both. From [{x}, {y}] over x=2,y=3 to [{p}, {q}] over
// p=3,q=2 that is [{x,y}, {}] = [{p,q}, {}]: one all-to-all on either side.
using AxisLists = absl::InlinedVector<AxisList, 4>;

// Lists over the mesh of `s` at which a value on its way between `s` and `other` may cross: in each
// dimension some leading axes of s and then any axes that are left, in the mesh's order. Those with
// the most shards first, at most a hundred.
std::vector<AxisLists> crossing_lists(Sharding s, Sharding other);

struct CrossingSide {
  Sharding sharding;
  ReshardCost cost;  // from here to the end on this side
};
std::pair<Sharding, Sharding> cheapest_crossing(absl::Span<const CrossingSide> before,
                                                absl::Span<const CrossingSide> after,
                                                absl::Span<const int64_t> dims,
                                                int64_t element_bits, int64_t message_bytes);

// The step between two shardings with as many shards in each dimension.
ReshardStep crossing_step(Sharding from, Sharding to);

}  // namespace gspmd
