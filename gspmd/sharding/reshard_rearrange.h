#pragma once

#include <vector>

#include "gspmd/sharding/reshard_walk.h"

namespace gspmd {

// The permutations of devices that could help from a state, as the lists that they lead to: in each
// dimension the leading units of its target come first, then others of the right total size, those
// that leave for another dimension last. At most a few dozen; private to the library.
//
//   [{x}, {y}] on its way to [{y}, {x}], sizes equal:  [{y}, {x}]
//   [{x,y}] on its way to [{y}]:                       [{y,x}]
std::vector<UnitLists> rearrangements(const ReshardProblem& problem, const Walk& at);

}  // namespace gspmd
