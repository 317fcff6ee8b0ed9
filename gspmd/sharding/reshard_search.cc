#include "gspmd/sharding/reshard_search.h"

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "gspmd/base/check.h"
#include "gspmd/sharding/reshard_rearrange.h"
#include "gspmd/sharding/reshard_walk.h"

namespace gspmd {
namespace {

// States whose successors are looked at: to take a sequence, and to price one.
constexpr int kThorough = 200, kQuick = 5;

// A* over states.
class Search {
 public:
  explicit Search(const ReshardProblem& problem);
  FoundMoves run(int max_expansions);

 private:
  struct Node {
    ReshardState state;
    ReshardCost cost;
    int parent;
    bool after_permute;
  };

  const AxisList& target(int d) const { return p_.to[d]; }
  bool cheaper(const ReshardCost& a, const ReshardCost& b) const {
    return rank(a, message_bytes_) < rank(b, message_bytes_);
  }
  ReshardCost estimate(const Walk& at) const;
  bool is_goal(const Walk& at) const;
  void slice_into_place(Walk* at) const;
  std::optional<Walk> finish_directly(Walk at) const;
  Walk finish_canonically(Walk at) const;
  AxisList next_run(const Walk& at, int d, AxisSet from) const;

  template <typename F>
  void expand(const Walk& at, bool after_permute, F emit) const;
  template <typename F>
  void expand_removals(const Walk& at, int d, F& emit) const;
  template <typename F>
  void expand_additions(const Walk& at, int d, F& emit) const;
  template <typename F>
  void expand_reductions(const Walk& at, F& emit) const;

  void push(const Walk& at, int parent, bool permuted);
  std::vector<Move> path_to(int node);

  const ReshardProblem& p_;
  int64_t final_bytes_ = 0, message_bytes_ = 0;
  AxisSet targeted_;
  std::vector<Move> first_moves_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<ReshardState, int> node_of_;
  using Entry = std::tuple<ReshardRank, int>;  // estimate of the whole, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
  ReshardCost bound_;  // of the best complete sequence known
  int best_ = -1;      // its node; -1: the fallback
};

Search::Search(const ReshardProblem& problem) : p_(problem) {
  Walk start(p_);
  ReshardState end = start.state();
  for (int d = 0; d < p_.num_dims(); ++d) {
    end.dims[d] = {p_.to[d], ceil_div(p_.sizes[d], start.product(p_.to[d]))};
    targeted_ |= p_.to[d].set();
  }
  final_bytes_ = local_bytes(end.dims, p_.element_bits);
  message_bytes_ = message_weight(start.bytes(), final_bytes_);
}

// What must still be sent and received at least: a device holds of its final shard no more than the
// shorter of the two blocks in each dimension. [{x}, {}] on its way to [{}, {x}]: all but 1/x. A
// reduction over g devices, scattered as far as it can be, sends (g-1)/g of what is left when all
// slices are made, and leaves 1/g on each device.
ReshardCost Search::estimate(const Walk& at) const {
  absl::InlinedVector<DimLayout, 4> held_dims = at.state().dims;
  for (int d = 0; d < p_.num_dims(); ++d) {
    held_dims[d].block = std::min(held_dims[d].block, ceil_div(p_.sizes[d], at.product(p_.to[d])));
  }
  int64_t held = local_bytes(held_dims, p_.element_bits);
  ReshardCost total = at.cost();
  if (!at.to_reduce().empty()) {
    int64_t group = at.product(list_of(at.to_reduce()));
    int64_t bytes = at.bytes(), slices = at.product(list_of(at.free_units() & targeted_));
    total.wire_bytes += bytes / slices / group * (group - 1);
    held = std::min(held, bytes / group);
  }
  total.wire_bytes += std::max<int64_t>(final_bytes_ - held, 0);
  if (held < final_bytes_ || !at.to_reduce().empty()) total.messages += 1;
  return total;
}

bool Search::is_goal(const Walk& at) const {
  if (!at.to_reduce().empty()) return false;
  for (int d = 0; d < p_.num_dims(); ++d) {
    if (!(at.list(d) == target(d)) || at.state().dims[d].block != at.interface_block(d))
      return false;
  }
  return true;
}

// The units of `from` that come next in a dimension whose list leads to its target.
AxisList Search::next_run(const Walk& at, int d, AxisSet from) const {
  AxisList run;
  if (!target(d).starts_with(at.list(d))) return run;
  for (int i = at.list(d).size(); i < target(d).size() && from.contains(target(d)[i]); ++i) {
    run.push_back(target(d)[i]);
  }
  return run;
}

// Slices that cost no communication and put units where they belong are always right, and right at
// once: all that follows is smaller.
void Search::slice_into_place(Walk* at) const {
  for (int d = 0; d < p_.num_dims(); ++d) {
    AxisList run = next_run(*at, d, at->free_units());
    if (run.empty()) continue;
    int64_t aimed = at->aimed_block(d), block = at->state().dims[d].block;
    int64_t n = at->product(run), shards = at->shards(d);
    // Blocks for the run alone may be shorter than those for all that is to come: then both are
    // tried.
    bool unique = aimed == ceil_div(p_.sizes[d], shards * n) * n;
    if (!unique || (shards > 1 && block != aimed)) continue;
    at->realign(d, aimed);
    at->slice(d, run);
  }
}

// Where only gathers of last axes, or only a reduction, are left there is nothing to search for.
std::optional<Walk> Search::finish_directly(Walk at) const {
  if (!p_.unit_rates.empty()) return std::nullopt;  // slow links had better move less: in parts
  bool lists_differ = false;
  for (int d = 0; d < p_.num_dims(); ++d) {
    int extra = at.list(d).size() - target(d).size();
    if (!at.list(d).starts_with(target(d))) return std::nullopt;
    if (extra > 0 && p_.sizes[d] % at.shards(d) != 0)
      return std::nullopt;  // padding may be worth dropping on the way
    lists_differ |= extra > 0;
  }
  if (lists_differ && !at.to_reduce().empty()) return std::nullopt;
  if (!at.to_reduce().empty()) at.all_reduce(list_of(at.to_reduce()));
  for (int d = 0; d < p_.num_dims(); ++d) {
    int extra = at.list(d).size() - target(d).size();
    if (extra > 0) at.gather(d, extra);
  }
  if (!is_goal(at)) return std::nullopt;
  return at;
}

// The sequence that is always possible: reduce, gather what is wrong, slice.
Walk Search::finish_canonically(Walk at) const {
  if (!at.to_reduce().empty()) at.all_reduce(list_of(at.to_reduce()));
  for (int d = 0; d < p_.num_dims(); ++d) {
    int extra = at.list(d).size() - at.list(d).common_prefix(target(d));
    if (extra > 0) at.gather(d, extra);
  }
  for (int d = 0; d < p_.num_dims(); ++d) {
    AxisList rest = target(d).slice(at.list(d).size(), target(d).size());
    if (!rest.empty()) at.slice(d, rest);
    at.realign(d, at.interface_block(d));
  }
  GSPMD_CHECK(is_goal(at), "reduce, gather and slice do not reach the target");
  return at;
}

template <typename F>
void Search::expand_removals(const Walk& at, int d, F& emit) const {
  int removable = at.list(d).size() - at.list(d).common_prefix(target(d));
  for (int count = 1; count <= removable; ++count) {
    Walk gathered = at;
    gathered.gather(d, count);
    emit(gathered, false);
    for (int e = 0; e < p_.num_dims(); ++e) {
      if (e == d) continue;
      Walk moved = at;
      moved.all_to_all(d, count, e);
      emit(moved, false);
    }
  }
}

template <typename F>
void Search::expand_additions(const Walk& at, int d, F& emit) const {
  AxisSet free = at.free_units() & targeted_, pending = at.to_reduce();
  auto slice = [&](const AxisList& units) {
    Walk next = at;
    next.slice(d, units);
    emit(next, false);
  };
  auto scatter = [&](const AxisList& units) {
    Walk next = at;
    next.reduce_scatter(units, d);
    emit(next, false);
  };
  for (AxisList run = next_run(at, d, free); run.size() > 1; run.pop_back()) slice(run);
  free.for_each([&](AxisId u) { slice({u}); });
  for (AxisList run = next_run(at, d, pending); run.size() > 1; run.pop_back()) scatter(run);
  pending.for_each([&](AxisId u) { scatter({u}); });
  AxisSet useless = pending - targeted_;
  if (useless.size() > 1) scatter(list_of(useless));
}

template <typename F>
void Search::expand_reductions(const Walk& at, F& emit) const {
  AxisSet all = at.to_reduce(), useless = all - targeted_;
  for (AxisSet set : {all, useless}) {
    if (set.empty()) continue;
    Walk next = at;
    next.all_reduce(list_of(set));
    emit(next, false);
    if (useless == all) return;
  }
}

template <typename F>
void Search::expand(const Walk& at, bool after_permute, F emit) const {
  expand_reductions(at, emit);
  for (int d = 0; d < p_.num_dims(); ++d) {
    for (int64_t block : {at.interface_block(d), at.aimed_block(d)}) {
      if (at.state().dims[d].block == block) continue;
      Walk next = at;
      next.realign(d, block);
      emit(next, false);
    }
    expand_removals(at, d, emit);
    expand_additions(at, d, emit);
  }
  if (after_permute || rank(at.cost(), 0)[0] + at.bytes() >= rank(bound_, message_bytes_)[0])
    return;
  for (const UnitLists& lists : rearrangements(p_, at)) {
    Walk next = at;
    next.permute(lists);
    emit(next, true);
  }
}

void Search::push(const Walk& at, int parent, bool permuted) {
  ReshardCost total = estimate(at);
  if (!cheaper(total, bound_)) return;
  auto [slot, is_new] = node_of_.try_emplace(at.state(), static_cast<int>(nodes_.size()));
  if (!is_new && !cheaper(at.cost(), nodes_[slot->second].cost)) return;
  slot->second = static_cast<int>(nodes_.size());
  nodes_.push_back({at.state(), at.cost(), parent, permuted});
  open_.emplace(rank(total, message_bytes_), slot->second);
  if (!is_goal(at)) return;
  bound_ = at.cost();
  best_ = slot->second;
}

// Nodes hold no moves: they are found again by expanding the parents.
std::vector<Move> Search::path_to(int node) {
  absl::InlinedVector<int, 8> chain;
  for (int n = node; n >= 0; n = nodes_[n].parent) chain.push_back(n);
  std::vector<Move> moves = first_moves_;
  bound_.wire_bytes = std::numeric_limits<int64_t>::max() / 2;
  for (size_t i = chain.size() - 1; i > 0; --i) {
    const Node& from = nodes_[chain[i]];
    const Node& to = nodes_[chain[i - 1]];
    bool found = false;
    expand(Walk(p_, from.state, from.cost), from.after_permute, [&](Walk& next, bool) {
      if (found) return;
      slice_into_place(&next);
      found = next.state() == to.state && next.cost() == to.cost;
      if (found) moves.insert(moves.end(), next.moves().begin(), next.moves().end());
    });
    GSPMD_CHECK(found, "a step of the search is lost");
  }
  return moves;
}

FoundMoves Search::run(int max_expansions) {
  auto moves_of = [](const Walk& w) {
    return std::vector<Move>(w.moves().begin(), w.moves().end());
  };
  Walk start(p_);
  slice_into_place(&start);
  if (is_goal(start)) return {moves_of(start), true};
  if (auto direct = finish_directly(start)) return {moves_of(*direct), true};

  Walk fallback = finish_canonically(start);
  bound_ = fallback.cost();
  first_moves_ = moves_of(start);
  push(start, -1, false);
  for (int count = 0; !open_.empty() && count < max_expansions; ++count) {
    int id = std::get<1>(open_.top());
    open_.pop();
    Walk at(p_, nodes_[id].state, nodes_[id].cost);
    if (node_of_.at(at.state()) != id) continue;
    if (is_goal(at)) return {path_to(id), true};
    expand(at, nodes_[id].after_permute, [&](Walk& next, bool permuted) {
      slice_into_place(&next);
      push(next, id, permuted);
    });
  }
  bool ended = open_.empty();
  return {best_ >= 0 ? path_to(best_) : moves_of(fallback), ended};
}

}  // namespace

FoundMoves search_reshard(const ReshardProblem& problem, int max_expansions) {
  return Search(problem).run(max_expansions);
}

const std::vector<Move>& ReshardSearches::search(const ReshardProblem& problem, bool thorough) {
  int64_t shards = 1;
  for (int64_t n : problem.unit_sizes) shards *= n;
  ReshardProblem smallest = problem;
  for (int64_t& size : smallest.sizes) {
    if (size % shards == 0) size = shards;
  }
  smallest.element_bits = int64_t{1} << 16;  // so that roundings decide nothing
  auto [at, is_new] = found_.try_emplace(smallest);
  Found& f = at->second;
  if (is_new || (thorough && !f.thorough && !f.found.is_cheapest))
    f = {search_reshard(smallest, thorough ? kThorough : kQuick), thorough};
  return f.found.moves;
}

}  // namespace gspmd
