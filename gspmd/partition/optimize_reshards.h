#pragma once

#include "gspmd/partition/reconcile.h"

namespace gspmd {

// Rewrites reshards of a reconciled module so that less is moved: chains become one where that is
// no dearer, equal ones are shared, those that nothing uses go. Keeps the invariants of reconcile.
//
//   y = dot(...) pending sum{x};  a = copy(y) [{},{}];  b = copy(a) [{x},{}]   ->   b = copy(y)
//   [{x},{}]: a reduce-scatter
void optimize_reshards(PartitionState& state);

}  // namespace gspmd
