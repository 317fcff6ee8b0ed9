#pragma once

#include "gspmd/partition/handler.h"
#include "gspmd/partition/window.h"

namespace gspmd {

// A reduce-window whose one split window (of `dims`) reaches over all elements before or after its
// own, with a known combiner; null for any other.
Instr* localize_cumulative(LocalOp& op, absl::Span<const WindowedDim> dims);

}  // namespace gspmd
