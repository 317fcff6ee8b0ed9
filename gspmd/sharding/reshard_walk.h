#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <utility>

#include "gspmd/sharding/reshard_search.h"

namespace gspmd {

using UnitLists = absl::InlinedVector<AxisList, 4>;

// Where a value stands in the middle of a reshard, in units.
struct ReshardState {
  absl::InlinedVector<DimLayout, 4> dims;
  AxisSet pending;
  friend bool operator==(const ReshardState&, const ReshardState&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ReshardState& s) {
    for (const DimLayout& d : s.dims) h = H::combine(std::move(h), d.axes, d.block);
    return H::combine(std::move(h), s.pending.bits());
  }
};

// A state that moves, and what that has cost. Each action is one decision; it does the padding and
// realigning that the decision needs. Private to the library.
class Walk {
 public:
  explicit Walk(const ReshardProblem& problem);
  Walk(const ReshardProblem& problem, ReshardState state, const ReshardCost& cost)
      : problem_(&problem), state_(std::move(state)), cost_(cost) {}

  const ReshardState& state() const { return state_; }
  const ReshardCost& cost() const { return cost_; }
  const absl::InlinedVector<Move, 4>& moves() const { return moves_; }
  const AxisList& list(int d) const { return state_.dims[d].axes; }
  int64_t product(const AxisList& units) const;
  int64_t shards(int d) const { return product(list(d)); }
  int64_t bytes() const { return local_bytes(state_.dims, problem_->element_bits); }
  // The block of an interface with the dimension's present shards.
  int64_t interface_block(int d) const { return ceil_div(problem_->sizes[d], shards(d)); }
  // The block that splits evenly into the target's blocks; the present one where no block does.
  int64_t aimed_block(int d) const;
  // Units that neither split a dimension nor are pending.
  AxisSet free_units() const;
  AxisSet to_reduce() const { return state_.pending - problem_->pending_after; }

  // Actions.
  void slice(int d, const AxisList& units);
  void gather(int d, int count);             // the last `count` units
  void all_to_all(int d, int count, int e);  // the last `count` units, to dimension e
  void reduce_scatter(const AxisList& units, int d);
  void all_reduce(const AxisList& units);
  void permute(const UnitLists& lists);
  // Changes the block of a dimension: locally where it is not split, else by a halo exchange, or by
  // gather and slice where that sends less.
  void realign(int d, int64_t block);

 private:
  AxisList suffix(int d, int count) const;
  void make_divisible(int d, int64_t n);
  void trim(int d);
  void exchange(int d, int64_t block, const HaloPlan& halo);
  void take(Move move, int64_t halo_bytes = 0, int64_t halo_messages = 0);
  LinkRate rate(const Move& move) const;  // of the links that it uses, before it is made
  void change(const Move& move, int64_t n);
  void append(int d, const AxisList& units, int64_t n);
  void remove(int d, const AxisList& units, int64_t n);

  const ReshardProblem* problem_;
  ReshardState state_;
  ReshardCost cost_;
  absl::InlinedVector<Move, 4> moves_;
};

}  // namespace gspmd
