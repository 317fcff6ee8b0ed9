#pragma once

// The search behind ReshardPlanner; private to the library.

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>
#include <absl/types/span.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "gspmd/sharding/reshard.h"

namespace gspmd {

// What decides the price of a step: the product of its axes, the local bytes on either side, and of
// a realign what its halo exchange sends.
struct StepSize {
  StepKind kind;
  int64_t group = 1;
  int64_t bytes_before = 0, bytes_after = 0;
  int64_t halo_bytes = 0, halo_messages = 0;
  LinkRate rate;
};
ReshardCost price(const StepSize& step);
int64_t local_bytes(absl::Span<const DimLayout> layouts, int64_t element_bits);
HaloNeed realign_need(int64_t size, int64_t block, int64_t shards, int64_t new_block);

inline void add(ReshardCost* sum, const ReshardCost& c) {
  sum->wire_bytes += c.wire_bytes;
  sum->messages += c.messages;
  sum->far_bytes += c.far_bytes;
  sum->far_messages += c.far_messages;
  sum->local_bytes += c.local_bytes;
  sum->peak_bytes = std::max(sum->peak_bytes, c.peak_bytes);
}

// The order of costs: wire bytes with a collective counted as `message_bytes` more, then messages,
// then local bytes.
using ReshardRank = std::array<int64_t, 3>;
inline ReshardRank rank(const ReshardCost& c, int64_t message_bytes) {
  return {c.wire_bytes + c.far_bytes + c.messages * message_bytes, c.messages, c.local_bytes};
}
// What a collective weighs in a reshard between local values of these sizes: enough that none is
// added to spare a few elements of padding, little against what a better sequence saves.
inline int64_t message_weight(int64_t bytes_before, int64_t bytes_after) {
  return ceil_div(std::max(bytes_before, bytes_after), 32);
}

inline AxisList list_of(AxisSet set) {
  AxisList list;
  set.for_each([&](AxisId a) { list.push_back(a); });
  return list;
}

// A reshard over one mesh, reduced to the dimensions that change (the others' local sizes are
// counted into `element_bits`) and to *units*: axes that stay together all the way. Lists and sets
// hold unit numbers.
struct ReshardProblem {
  absl::InlinedVector<int64_t, 8> unit_sizes;
  absl::InlinedVector<LinkRate, 4> unit_rates;  // empty: all links are alike
  absl::InlinedVector<int64_t, 4> sizes;        // of the dimensions
  absl::InlinedVector<AxisList, 4> from, to;
  AxisSet pending, pending_after;
  int64_t element_bits = 0;
  int num_dims() const { return static_cast<int>(sizes.size()); }

  friend bool operator==(const ReshardProblem&, const ReshardProblem&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ReshardProblem& p) {
    return H::combine(std::move(h), p.unit_sizes, p.unit_rates, p.sizes, p.from, p.to,
                      p.pending.bits(), p.pending_after.bits(), p.element_bits);
  }
};

// A step in units.
struct Move {
  StepKind kind;
  int dim = -1;
  int to_dim = -1;
  AxisList axes;
  int64_t block = 0;
  absl::InlinedVector<AxisList, 4> lists_after;  // kPermute
};

// The cheapest sequence from interface blocks to interface blocks by `rank`. Where the search looks
// at more than `max_expansions` states: the best that was found till then, at worst "reduce,
// gather, slice", which is always right.
struct FoundMoves {
  std::vector<Move> moves;
  bool is_cheapest = false;  // the search came to its end
};
FoundMoves search_reshard(const ReshardProblem& problem, int max_expansions);

// The same, found once for problems whose costs are in proportion: those that differ in the sizes
// of elements or of dimensions that divide by whatever may split them.
class ReshardSearches {
 public:
  // `thorough` for a sequence that is to be taken; else enough to say what it costs.
  const std::vector<Move>& search(const ReshardProblem& problem, bool thorough);

 private:
  struct Found {
    FoundMoves found;
    bool thorough = false;
  };
  absl::flat_hash_map<ReshardProblem, Found> found_;
};

}  // namespace gspmd
