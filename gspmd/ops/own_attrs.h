#pragma once

#include "gspmd/ops/op_def.h"

namespace gspmd {

// A copy of an operator's attributes in the context's memory, with the lists and texts that they
// point to, so that the original may go. Literals, device groups and permutations are shared.
// Absent attributes become default ones. Throws Error where they are another operator's.
Attrs own_attrs(const OpDef& op, Attrs attrs, Context& context);

}  // namespace gspmd
