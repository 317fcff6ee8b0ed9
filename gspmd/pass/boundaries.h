#pragma once

#include <utility>
#include <vector>

#include "gspmd/engine/device.h"
#include "gspmd/ir/module.h"

namespace gspmd {

// Entries to and exits from manual regions of a program that is not partitioned yet, with the
// layouts that completion gives them: what a reference run on N devices needs (engine/device.h).
std::vector<std::pair<const Instr*, ManualBoundary>> manual_boundaries(const Module& module,
                                                                       int64_t num_partitions);

}  // namespace gspmd
