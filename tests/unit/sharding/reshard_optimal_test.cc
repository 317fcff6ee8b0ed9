// Plans against an exhaustive search over every single step that there is, on tiny cases.

#include <absl/container/flat_hash_map.h>
#include <gtest/gtest.h>

#include <functional>
#include <queue>
#include <random>

#include "reshard_simulation.h"

namespace gspmd {
namespace {

constexpr int64_t kBits = 8 * 840;  // divides by every group: no rounding

// The cheapest wire bytes from `from` to `to` by any sequence of single steps with any block
// lengths up to `slack` over the least. One restriction, which the planner has by design: nothing
// is sliced by an axis that `to` does not use (it would turn every all-reduce into slice,
// all-reduce, all-gather over idle replicas).
class Exhaustive {
 public:
  Exhaustive(Sharding from, Sharding to, std::vector<int64_t> dims, int64_t slack)
      : mesh_(from.mesh()), to_(to), dims_(std::move(dims)), slack_(slack) {
    int64_t before = 1, after = 1;
    for (size_t d = 0; d < dims_.size(); ++d) {
      before *= from.local_size(d, dims_[d]);
      after *= to.local_size(d, dims_[d]);
    }
    weight_ = ceil_div(std::max(before, after) * kBits / 8, 32);
    placements_ = all_placements(mesh_, static_cast<int>(dims_.size()));
    push({interface_layouts(from, dims_), from->pending}, 0);
  }

  // Wire bytes and the weight of a collective, as reshard.h states it.
  int64_t weighed(const ReshardCost& c) const { return c.wire_bytes + c.messages * weight_; }

  int64_t run() {
    while (!open_.empty()) {
      auto [cost, number] = open_.top();
      open_.pop();
      if (cost > best_[number]) continue;
      const State state = states_[number];
      if (state.layouts == interface_layouts(to_, dims_) && state.pending == to_->pending)
        return cost;
      expand(state, cost);
    }
    return -1;
  }

 private:
  struct State {
    std::vector<DimLayout> layouts;
    AxisSet pending;
    friend bool operator==(const State&, const State&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const State& s) {
      for (const DimLayout& l : s.layouts) h = H::combine(std::move(h), l.axes, l.block);
      return H::combine(std::move(h), s.pending.bits());
    }
  };

  void push(const State& state, int64_t cost) {
    auto [slot, is_new] = number_.try_emplace(state, static_cast<int>(states_.size()));
    if (is_new) {
      states_.push_back(state);
      best_.push_back(cost);
    } else if (best_[slot->second] <= cost) {
      return;
    }
    best_[slot->second] = cost;
    open_.emplace(cost, slot->second);
  }

  void take(const State& state, int64_t cost, const ReshardStep& step, AxisSet resolved = {}) {
    State next = state;
    cost += weighed(step_cost(step, mesh_, state.layouts, dims_, kBits));
    apply(step, mesh_, &next.layouts);
    next.pending -= resolved;
    push(next, cost);
  }

  static ReshardStep make(StepKind kind, int d, int e, AxisList axes, int64_t block = 0) {
    ReshardStep step;
    step.kind = kind;
    step.dim = d;
    step.to_dim = e;
    step.axes = axes;
    step.block = block;
    return step;
  }

  void expand(const State& s, int64_t cost) {
    for (int d = 0; d < static_cast<int>(dims_.size()); ++d) {
      change_block(s, cost, d);
      remove(s, cost, d);
      add(s, cost, d);
    }
    (s.pending - to_->pending).for_each([&](AxisId a) {
      take(s, cost, make(StepKind::kAllReduce, -1, -1, {a}), {a});
    });
    if ((s.pending - to_->pending).size() > 1) {
      AxisList all;
      (s.pending - to_->pending).for_each([&](AxisId a) { all.push_back(a); });
      take(s, cost, make(StepKind::kAllReduce, -1, -1, all), all.set());
    }
    permute(s, cost);
  }

  void change_block(const State& s, int64_t cost, int d) {
    const DimLayout& l = s.layouts[d];
    int64_t n = mesh_.product(l.axes), least = ceil_div(dims_[d], n);
    for (int64_t block = least; block <= least + slack_; ++block) {
      if (block == l.block) continue;
      if (n == 1) {
        take(s, cost, make(StepKind::kPadOrTrim, d, -1, {}, block));
      } else if (plan_halo(realign_need(l, mesh_, dims_[d], block)).form !=
                 HaloPlan::Form::kGather) {
        take(s, cost, make(StepKind::kRealign, d, -1, {}, block));
      }
    }
  }

  void remove(const State& s, int64_t cost, int d) {
    const AxisList& list = s.layouts[d].axes;
    for (int n = 0; n < list.size(); ++n) {
      AxisList suffix = list.slice(n, list.size());
      take(s, cost, make(StepKind::kAllGather, d, -1, suffix));
      for (int e = 0; e < static_cast<int>(dims_.size()); ++e) {
        if (e == d || s.layouts[e].block % mesh_.product(suffix) != 0) continue;
        take(s, cost, make(StepKind::kAllToAll, d, e, suffix));
      }
    }
  }

  void add(const State& s, int64_t cost, int d) {
    AxisSet used = s.pending | to_->pending;
    for (const DimLayout& l : s.layouts) used |= l.axes.set();
    ((mesh_.all_axes() - used) & to_->splitting()).for_each([&](AxisId a) {
      if (s.layouts[d].block % mesh_.size(a) == 0)
        take(s, cost, make(StepKind::kSlice, d, -1, {a}));
    });
    (s.pending - to_->pending).for_each([&](AxisId a) {
      if (s.layouts[d].block % mesh_.size(a) == 0)
        take(s, cost, make(StepKind::kReduceScatter, d, -1, {a}), {a});
    });
  }

  void permute(const State& s, int64_t cost) {
    std::vector<AxisList> before;
    for (const DimLayout& l : s.layouts) before.push_back(l.axes);
    for (const auto& lists : placements_) {
      bool fits = lists != before;
      for (size_t d = 0; d < lists.size(); ++d) {
        fits = fits && mesh_.product(lists[d]) == mesh_.product(before[d]) &&
               !lists[d].set().intersects(s.pending);
      }
      if (!fits) continue;
      ReshardStep step = make(StepKind::kPermute, -1, -1, {});
      step.lists_after = lists;
      take(s, cost, step);
    }
  }

  const Mesh& mesh_;
  Sharding to_;
  std::vector<int64_t> dims_;
  int64_t slack_, weight_;
  std::vector<std::vector<AxisList>> placements_;
  absl::flat_hash_map<State, int> number_;
  std::vector<State> states_;
  std::vector<int64_t> best_;  // of each state, so far
  using Entry = std::pair<int64_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
};

struct Tally {
  int cases = 0, worse = 0;
  double worst = 1;
};

void compare(ReshardPlanner* planner, Sharding from, Sharding to, std::vector<int64_t> dims,
             int64_t slack, Tally* tally) {
  const ReshardPlan& plan = planner->plan(from, to, dims, kBits);
  Exhaustive search(from, to, dims, slack);
  int64_t least = search.run(), ours = search.weighed(plan.cost);
  ++tally->cases;
  if (ours <= least) return;  // less: a block beyond the slack
  ++tally->worse;
  double ratio = static_cast<double>(ours) / static_cast<double>(least);
  tally->worst = std::max(tally->worst, ratio);
}

TEST(ReshardOptimal, EvenTwoDimensions) {
  Tally t;
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{2, 3}, {2, 2, 2}, {2, 4}}) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh* mesh = pool.add_mesh(small_mesh(sizes));
    auto placements = all_placements(*mesh, 2);
    std::mt19937 random(1);
    for (int round = 0; round < 150; ++round) {
      const auto& a = placements[random() % placements.size()];
      const auto& b = placements[random() % placements.size()];
      AxisSet pending = (mesh->all_axes() - a[0].set() - a[1].set()) & AxisSet::from_bits(random());
      Sharding from = make_sharding(&pool, mesh, a, pending), to = make_sharding(&pool, mesh, b);
      compare(&planner, from, to, {24, 24}, 0, &t);
    }
  }
  EXPECT_EQ(t.worse, 0) << "of " << t.cases << ", worst ratio " << t.worst;
}

// One dimension of up to 40 elements, where no other can help.
TEST(ReshardOptimal, UnevenOneDimension) {
  Tally t;
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{2, 3}, {2, 4}}) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh* mesh = pool.add_mesh(small_mesh(sizes));
    auto placements = all_placements(*mesh, 1);
    for (const auto& a : placements) {
      for (const auto& b : placements) {
        Sharding from = make_sharding(&pool, mesh, a), to = make_sharding(&pool, mesh, b);
        for (int64_t size = 1; size <= 40; size += 1 + size / 20)
          compare(&planner, from, to, {size}, 4, &t);
      }
    }
  }
  EXPECT_LE(t.worse, t.cases / 500) << "worst ratio " << t.worst;
  EXPECT_LE(t.worst, 1.02);
}

TEST(ReshardOptimal, UnevenTwoDimensions) {
  Tally t;
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{2, 3}, {2, 2, 2}, {2, 4}}) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh* mesh = pool.add_mesh(small_mesh(sizes));
    auto placements = all_placements(*mesh, 2);
    std::mt19937 random(1);
    for (int round = 0; round < 150; ++round) {
      Sharding from = make_sharding(&pool, mesh, placements[random() % placements.size()]);
      Sharding to = make_sharding(&pool, mesh, placements[random() % placements.size()]);
      std::vector<int64_t> dims = {1 + static_cast<int64_t>(random() % 14),
                                   1 + static_cast<int64_t>(random() % 14)};
      compare(&planner, from, to, dims, 4, &t);
    }
  }
  // What is left are dimensions of one or two elements, where most shards are empty.
  EXPECT_LE(t.worse, t.cases * 3 / 100) << "worst ratio " << t.worst;
  EXPECT_LE(t.worst, 1.5);
}

}  // namespace
}  // namespace gspmd
