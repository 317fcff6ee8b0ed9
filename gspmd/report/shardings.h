#pragma once

#include <string>

#include "gspmd/propagate/propagate.h"

namespace gspmd {

// The completed shardings of the entry's parameters and of the `most` largest other values, largest
// first: name, shape, sharding, bytes on each device.
std::string sharding_table(const Module& module, const ShardingTable& shardings, size_t most);

}  // namespace gspmd
