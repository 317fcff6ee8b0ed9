#pragma once

#include <cstdint>
#include <optional>

#include "gspmd/ir/instr.h"

namespace gspmd {

// How often the body of a `while` runs, where the program says it: `known_trip_count` in its
// backend configuration, or a condition `element < constant` (also <= and the mirrored >, and a
// limit that the state carries) on a counter that goes up by one. The counter's start is taken as 0
// where it is not a constant. Nullopt where nothing is known.
std::optional<int64_t> trip_count(const Instr& loop);

}  // namespace gspmd
