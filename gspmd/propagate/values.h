#pragma once

#include <cstdint>
#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/propagate/propagate.h"

namespace gspmd {

// One array that completion gives a layout: all leaves that structural operators make equal (a
// tuple's element and what stands in it, a loop's state before, in and after the loop, a call's
// operands and parameters).
struct PropagatedValue {
  Shape shape;
  const Instr* instr = nullptr;  // the first of them
  int leaf = 0;
  uint32_t first_dim = 0;      // its dimensions in the state's flat arrays
  const Mesh* mesh = nullptr;  // null = the main one
  AxisSet used;                // splitting, and what may not be used
  AxisSet replicated, manual, pending;
  Combiner combiner = Combiner::kNone;
  uint64_t closed = 0;  // dimensions that may not be refined
  int64_t bytes = 0;
  bool split = false;  // along any dimension
  bool annotated = false;
  bool even = false;  // a free entry parameter or result: only whole axes that divide it
};

// Numbers the leaves of a module and joins those that must be alike, unless both are annotated
// differently.
class ValueTable {
 public:
  ValueTable(const Module& module, MeshRefinement& refinement, const PropagateOptions& options);

  std::vector<PropagatedValue> values;
  std::vector<AxisList> dims;        // of all values, flat
  std::vector<uint32_t> first_leaf;  // by Instr::id
  std::vector<uint32_t> value_of;    // by leaf number
  std::vector<std::pair<int, uint32_t>>
      later;  // (priority, index into `dims`) of dims that wait, and their axes
  std::vector<AxisList> later_axes;

  uint32_t value(const Instr& i, int leaf = 0) const {
    return value_of[first_leaf[i.id] + static_cast<uint32_t>(leaf)];
  }
  absl::Span<AxisList> dims_of(const PropagatedValue& v) {
    return absl::MakeSpan(dims).subspan(v.first_dim, v.shape.is_array() ? v.shape.rank() : 0);
  }
};

}  // namespace gspmd
