#pragma once

#include <optional>
#include <string_view>

#include "gspmd/sharding/sharding.h"

namespace gspmd {

// Reads what to_string(Sharding) prints, over a mesh: "[{x}, {y,z:(1)2}] pending=sum{w}". Nullopt
// where it is none, or names axes that the mesh does not have or names one twice.
std::optional<ShardingData> parse_layout(std::string_view text, const Mesh* mesh);

}  // namespace gspmd
