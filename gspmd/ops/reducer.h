#pragma once

#include <string_view>

#include "gspmd/ops/op_def.h"

namespace gspmd {

// Operands of reduce and reduce-window: n arrays of equal sizes, then n initial scalars whose types
// they accumulate in; the reducer (args.called[0], where known) takes n accumulators and n
// elements. Returns n; throws Error.
int check_reduction_operands(const InferArgs& args, std::string_view op);

}  // namespace gspmd
