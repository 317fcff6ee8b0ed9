#pragma once

#include <memory>

#include "gspmd/partition/reconcile.h"

namespace gspmd {

// The program that every device runs: per-device shapes, halos, masks, offsets from the partition
// id, and the collectives that each reshard is lowered to. Needs a reconciled module. The output's
// parameters and results are the local blocks (ceil-divided) in the same order and tuple structure;
// names and metadata are kept; nothing loops over devices.
std::unique_ptr<Module> localize(PartitionState& state);

// `shape` with every leaf cut to its local block.
Shape local_shape(Context& context, Shape shape, absl::Span<const Sharding> leaves);

}  // namespace gspmd
