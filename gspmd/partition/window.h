#pragma once

#include "gspmd/partition/handler.h"

namespace gspmd {

// How one split dimension of a windowed operator is computed: what every shard fetches, the window
// it then applies to what it fetched, and the block of results that comes out (larger than the
// interface's where a dilation's phase would otherwise differ from shard to shard; the surplus is
// realigned afterwards).
struct WindowPlan {
  HaloNeed need;
  WindowDim local;    // pads are the local ones
  int64_t block = 0;  // results per shard
};

// For an operand dimension of size `in` in blocks of ceil(in/n) and a result dimension of size
// `out` in blocks of ceil(out/n).
//
//   window 3, stride 1, padding 1_1 over 20 elements, 4 shards:  fetch 7 from 5i-1, no local
//   padding
WindowPlan plan_window(int64_t in, int64_t out, int64_t n, const WindowDim& w);

// One dimension of operand k that is read through a window by dimension `result_dim` of the result.
struct WindowedDim {
  int operand_dim = 0, result_dim = 0;
  WindowPlan plan;
  SplitDim split;  // of the operand
};

// Fetches all halos of an operand: returns it with local sizes `need.length` in windowed dims.
Instr* fetch_windows(LocalOp& op, int operand, absl::Span<const WindowedDim> dims, Instr* fill);
// Brings a result computed in blocks of plan.block to interface blocks.
Instr* realign_windows(LocalOp& op, Instr* result, absl::Span<const WindowedDim> dims);

// All window factors of the rule with axes, between operand 0 and result 0.
std::vector<WindowedDim> windowed_dims(const LocalOp& op);

}  // namespace gspmd
