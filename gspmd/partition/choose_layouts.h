#pragma once

#include "gspmd/partition/reconcile.h"

namespace gspmd {

// Moves values inside the program to layouts under which they and their neighbours cost less than
// under completion's, which follows annotations and looks at no price. Needs a sharding of every
// value; changes only those that nobody sees or asked for: not parameters, results, loop states,
// nor annotated values (but an annotation that only stands between an operator and its one user,
// and that two reshards would pass through without stopping).
//
// A search by growth from the operators that communicate, or compute the same on several devices:
// an operator's result is tried in other layouts, the neighbour that suffers most follows, and so
// on; what was cheapest on the way is kept, if it is cheaper than before (the paper decides such
// things operator by operator, section 4.5; here the price of the neighbourhood decides).
//
//   rows = gather(table [{x},{}], ids [{x}])          table gathered: 7/8 of it n times
//   sums = scatter(zeros, ids, rows [{x},{}])    ->   rows [{},{x}]: two small all-to-alls
void choose_layouts(PartitionState& state);

}  // namespace gspmd
