#pragma once

#include <absl/container/inlined_vector.h>

#include "gspmd/ir/instr.h"

namespace gspmd {

// Leaves of a result that are the same memory as a leaf of an operand (leaves depth first).
struct LeafAlias {
  int result_leaf = 0;
  int operand = 0;
  int operand_leaf = 0;
};
using LeafAliases = absl::InlinedVector<LeafAlias, 4>;

// Where an instruction names memory that exists already: tuple, get-tuple-element, bitcast,
// reshape, opt-barrier, the halves of asynchronous operators, ... Loops and calls are not listed:
// it depends on what they call.
LeafAliases aliases_of(const Instr& instr);

// Whether the result may overwrite an operand of the same size that nobody reads later
// (element-wise operators, updates in place, ...).
bool may_overwrite_operand(const Instr& instr);

}  // namespace gspmd
