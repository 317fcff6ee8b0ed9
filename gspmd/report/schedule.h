#pragma once

#include <vector>

#include "gspmd/ir/module.h"

namespace gspmd {

// Orders in which a computation's instructions may run, each behind its operands and control
// predecessors, and in which little memory may be needed: as they stand; as the root asks for them
// (what an instruction needs right before it); and by a greedy choice among those that are ready of
// the one that frees most. Which one is best differs by program.
//
//   a = big(p); b = big(q); c = small(a); d = small(b); r = add(c, d)    ->   a, c, b, d, r
std::vector<std::vector<Instr*>> memory_orders(const Computation& c);

}  // namespace gspmd
