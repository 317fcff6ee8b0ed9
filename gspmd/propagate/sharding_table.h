#pragma once

#include <absl/types/span.h>

#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// The sharding of every array of a module: one per leaf of each instruction's shape, tuples depth
// first. Leaves that have no layout (tokens, opaque values) hold a rank-0 replicated sharding.
class ShardingTable {
 public:
  absl::Span<const Sharding> of(const Instr& i) const {
    return i.id < leaves_.size() ? leaves_[i.id] : absl::Span<const Sharding>();
  }
  Sharding leaf(const Instr& i, int leaf = 0) const { return leaves_[i.id][leaf]; }
  void set(const Instr& i, absl::Span<const Sharding> leaves) {
    if (i.id >= leaves_.size()) leaves_.resize(i.id + 1 + leaves_.size() / 2);
    leaves_[i.id] = arena_->copy(leaves);
  }
  void reserve(uint32_t num_ids) { leaves_.resize(std::max<size_t>(leaves_.size(), num_ids)); }
  void set(const Instr& i, Sharding s) { set(i, absl::MakeConstSpan(&s, 1)); }

 private:
  std::vector<absl::Span<const Sharding>> leaves_;  // by Instr::id
  std::unique_ptr<Arena> arena_ = std::make_unique<Arena>();
};

// Where leaf k of operand/element e of a tuple-shaped value starts: leaf offset of element `index`.
int leaf_offset(Shape tuple, int index);

}  // namespace gspmd
