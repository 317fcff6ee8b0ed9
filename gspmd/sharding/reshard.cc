#include "gspmd/sharding/reshard.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "gspmd/base/check.h"
#include "gspmd/sharding/reshard_crossing.h"
#include "gspmd/sharding/reshard_search.h"

namespace gspmd {
namespace {

// Up to this many axes that change place, each is a unit of its own: the search then sees every
// way. Above, axes that stay side by side are one unit.
constexpr int kMaxLooseAxes = 4;

// From axes to units and back.
class Units {
 public:
  Units(Sharding from, Sharding to) : from_(from), to_(to) {
    neighbour_.fill(kAbsent);
    unit_of_.fill(kAbsent);
    reduced_ = from->pending - to->pending;
    for (int d = 0; d < from.rank(); ++d) note_dim(d);
    note_pending();
    for (int d = 0; d < from.rank(); ++d) {
      if (!(from.dim(d) == to.dim(d))) add_from(d);
    }
    for (int d = 0; d < from.rank(); ++d) {
      if (!(from.dim(d) == to.dim(d))) add_new(to.dim(d));
    }
    add_useless_pending();
  }

  int count() const { return static_cast<int>(axes_.size()); }
  const AxisList& axes(int unit) const { return axes_[unit]; }
  AxisSet reduced() const { return units_of(reduced_); }

  AxisList in_units(const AxisList& axes) const {
    AxisList units;
    for (AxisId a : axes) {
      if (units.empty() || units.back() != unit_of_[a]) units.push_back(unit_of_[a]);
    }
    return units;
  }
  AxisList in_axes(const AxisList& units) const {
    AxisList out;
    for (AxisId u : units) out.append(axes_[u]);
    return out;
  }

 private:
  static constexpr uint8_t kAbsent = 0xff, kLast = 0xfe;

  AxisSet units_of(AxisSet axes) const {
    AxisSet units;
    axes.for_each([&](AxisId a) { units.insert(unit_of_[a]); });
    return units;
  }

  void note_dim(int d) {
    const AxisList &a = from_.dim(d), &b = to_.dim(d);
    if (a == b) return;
    int same = a.common_prefix(b);
    loose_ |= a.slice(same, a.size()).set() | b.slice(same, b.size()).set();
    for (int i = 0; i < b.size(); ++i) neighbour_[b[i]] = i + 1 < b.size() ? b[i + 1] : kLast;
  }
  void note_pending() {
    loose_ |= reduced_;
    bundle_ = loose_.size() > kMaxLooseAxes;
  }

  void start(AxisId a) {
    unit_of_[a] = static_cast<uint8_t>(axes_.size());
    axes_.push_back({a});
  }
  void join(AxisId a) {
    unit_of_[a] = static_cast<uint8_t>(axes_.size() - 1);
    axes_.back().push_back(a);
  }
  // True where `b`, which follows `a` now, follows it in the target too, or neither has a place
  // there.
  bool stays_beside(AxisId a, AxisId b) const {
    return neighbour_[a] == b || (neighbour_[a] == kAbsent && neighbour_[b] == kAbsent);
  }

  // The leading axes that both sides share never move: one unit.
  void add_from(int d) {
    const AxisList& list = from_.dim(d);
    int same = list.common_prefix(to_.dim(d));
    for (int i = 0; i < list.size(); ++i) {
      bool joins =
          i > 0 && i != same && (i < same || (bundle_ && stays_beside(list[i - 1], list[i])));
      joins ? join(list[i]) : start(list[i]);
    }
  }
  // Axes that split nothing before: free ones, and pending ones that a reduce-scatter brings.
  void add_new(const AxisList& list) {
    for (int i = 0; i < list.size(); ++i) {
      if (unit_of_[list[i]] != kAbsent) continue;
      bool joins = bundle_ && i > 0 && unit_of_[list[i - 1]] + 1 == count() &&
                   is_new_.contains(list[i - 1]) &&
                   reduced_.contains(list[i - 1]) == reduced_.contains(list[i]);
      joins ? join(list[i]) : start(list[i]);
      is_new_.insert(list[i]);
    }
  }
  void add_useless_pending() {
    bool first = true;
    reduced_.for_each([&](AxisId a) {
      if (unit_of_[a] != kAbsent) return;
      bundle_ && !first ? join(a) : start(a);
      first = false;
    });
  }

  Sharding from_, to_;
  AxisSet reduced_, loose_, is_new_;
  bool bundle_ = false;
  std::array<uint8_t, kMaxAxes> neighbour_, unit_of_;
  absl::InlinedVector<AxisList, 8> axes_;
};

// Joins a slice with the slice before it and a pad with the pad before it; drops pads that change
// nothing.
void append_step(ReshardStep step, const Mesh& mesh, std::vector<DimLayout>* layouts,
                 std::vector<ReshardStep>* steps) {
  auto joins = [&](StepKind kind) {
    return step.kind == kind && !steps->empty() && steps->back().kind == kind &&
           steps->back().dim == step.dim;
  };
  apply(step, mesh, layouts);
  if (joins(StepKind::kSlice)) {
    steps->back().axes.append(step.axes);
  } else if (joins(StepKind::kPadOrTrim)) {
    steps->back().block = step.block;
  } else {
    steps->push_back(std::move(step));
  }
}

bool is_unsplit(absl::Span<const DimLayout> layouts) {
  return std::all_of(layouts.begin(), layouts.end(),
                     [](const DimLayout& l) { return l.axes.empty(); });
}

// Follows the steps to find their cost and whether the whole value stood on each device in between.
void price_plan(const Mesh& before, const Mesh& after, std::vector<DimLayout> layouts,
                absl::Span<const int64_t> dims, int64_t element_bits, const Links& links,
                ReshardPlan* plan) {
  const Mesh* mesh = &before;
  bool unsplit = false, starts_unsplit = is_unsplit(layouts);
  plan->cost = {};
  plan->cost.peak_bytes = local_bytes(layouts, element_bits);
  for (const ReshardStep& step : plan->steps) {
    add(&plan->cost, step_cost(step, *mesh, layouts, dims, element_bits, links));
    apply(step, *mesh, &layouts);
    unsplit |= is_unsplit(layouts);
    if (step.kind == StepKind::kCrossMesh) mesh = &after;
  }
  plan->full_gather = unsplit && !starts_unsplit && !is_unsplit(layouts);
}

// A dimension that is split on neither side, but through which axes may pass: the longest one,
// where some other dimension is uneven. ([{x,y}, {}] to [{x}, {}] of [4, 9], x=2, y=3: moving y
// first leaves less to realign.) Or where some links are slow: a reduction is scattered for them.
// -1: none.
int host_dim(Sharding from, Sharding to, absl::Span<const int64_t> dims, const Links& links) {
  int host = -1;
  bool needed = !links.are_alike() && from->pending != to->pending;
  for (int d = 0; d < from.rank(); ++d) {
    needed |= dims[d] % from.mesh().product(from.dim(d).set() | to.dim(d).set()) != 0;
    bool idle = from.dim(d).empty() && to.dim(d).empty() && dims[d] > 1;
    if (idle && (host < 0 || dims[d] > dims[host])) host = d;
  }
  return needed ? host : -1;
}

ReshardProblem problem_in_units(const Units& units, Sharding from, Sharding to,
                                absl::Span<const int64_t> dims, int64_t element_bits,
                                const Links& links, absl::InlinedVector<int, 4>* active) {
  ReshardProblem p;
  p.element_bits = element_bits;
  int host = host_dim(from, to, dims, links);
  for (int u = 0; u < units.count(); ++u)
    p.unit_sizes.push_back(from.mesh().product(units.axes(u)));
  for (int u = 0; u < units.count() && !links.are_alike(); ++u)
    p.unit_rates.push_back(links.slowest(from.mesh(), units.axes(u)));
  for (int d = 0; d < from.rank(); ++d) {
    if (from.dim(d) == to.dim(d) && d != host) {
      p.element_bits *= from.local_size(d, dims[d]);
      continue;
    }
    active->push_back(d);
    p.sizes.push_back(dims[d]);
    p.from.push_back(units.in_units(from.dim(d)));
    p.to.push_back(units.in_units(to.dim(d)));
  }
  p.pending = units.reduced();
  return p;
}

ReshardStep step_of(const Move& move, const Units& units, absl::Span<const int> active,
                    absl::Span<const DimLayout> layouts) {
  ReshardStep step;
  step.kind = move.kind;
  step.dim = move.dim < 0 ? -1 : active[move.dim];
  step.to_dim = move.to_dim < 0 ? -1 : active[move.to_dim];
  step.axes = units.in_axes(move.axes);
  step.block = move.block;
  if (move.kind != StepKind::kPermute) return step;
  std::vector<AxisList> before;
  for (const DimLayout& l : layouts) before.push_back(l.axes);
  step.lists_after = before;
  for (size_t i = 0; i < active.size(); ++i)
    step.lists_after[active[i]] = units.in_axes(move.lists_after[i]);
  step.permutation = permutation_between(before, step.lists_after);
  return step;
}

ReshardPlan plan_on_one_mesh(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                             int64_t element_bits, bool thorough, const Links& links,
                             ReshardSearches* searches) {
  ReshardPlan plan;
  Units units(from, to);
  absl::InlinedVector<int, 4> active;
  ReshardProblem problem = problem_in_units(units, from, to, dims, element_bits, links, &active);
  std::vector<DimLayout> start = interface_layouts(from, dims), layouts = start;
  for (const Move& move : searches->search(problem, thorough)) {
    append_step(step_of(move, units, active, layouts), from.mesh(), &layouts, &plan.steps);
  }
  GSPMD_CHECK(layouts == interface_layouts(to, dims), "a reshard that does not arrive");
  price_plan(from.mesh(), to.mesh(), start, dims, element_bits, links, &plan);
  return plan;
}

void check_ends(Sharding from, Sharding to, absl::Span<const int64_t> dims) {
  auto text = [&] { return to_string(from) + " to " + to_string(to); };
  GSPMD_CHECK(from.rank() == to.rank() && from.rank() == static_cast<int>(dims.size()),
              "reshard of another rank: " + text());
  if (from->mesh != to->mesh) return;
  GSPMD_CHECK(from->manual == to->manual, "a reshard cannot change manual axes: " + text());
}

}  // namespace

ReshardCost least_cost(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                       int64_t element_bits) {
  ReshardCost cost;
  if (from->mesh != to->mesh || !from->pending.contains_all(to->pending)) return cost;
  const Mesh& mesh = from.mesh();
  int64_t bytes = element_bits, wanted = element_bits, held = element_bits;
  for (int d = 0; d < from.rank(); ++d) {
    int64_t a = from.local_size(d, dims[d]), b = to.local_size(d, dims[d]);
    bytes *= a;
    wanted *= b;
    held *= std::min(a, b);
  }
  bytes = ceil_div(bytes, 8), wanted = ceil_div(wanted, 8), held = ceil_div(held, 8);
  AxisSet reduced = from->pending - to->pending;
  if (!reduced.empty()) {
    int64_t group = mesh.product(reduced);
    int64_t slices = mesh.product(to->splitting() - from->splitting() - reduced);
    cost.wire_bytes += bytes / slices / group * (group - 1);
    held = std::min(held, bytes / group);
  }
  cost.wire_bytes += std::max<int64_t>(wanted - held, 0);
  if (held < wanted || !reduced.empty()) cost.messages = 1;
  return cost;
}

struct ReshardPlanner::Impl {
  struct Key {
    Sharding from, to;
    DimVector dims;
    int64_t element_bits;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      h = H::combine(std::move(h), k.from, k.to, k.element_bits);
      return H::combine_contiguous(std::move(h), k.dims.data(), k.dims.size());
    }
  };

  ShardingPool* pool;
  Links links;
  absl::flat_hash_map<Key, std::unique_ptr<ReshardPlan>> plans;
  absl::flat_hash_map<Key, ReshardCost> costs;
  ReshardSearches searches;

  const ReshardPlan& plan(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                          int64_t element_bits);
  const ReshardCost& cost(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                          int64_t element_bits);
  ReshardPlan plan_across_meshes(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                                 int64_t element_bits);
  ReshardPlan plan_to_pending(Sharding from, Sharding before, Sharding to,
                              absl::Span<const int64_t> dims, int64_t element_bits);
  Sharding with_lists(Sharding like, const AxisLists& lists);
  Sharding before_pending(Sharding from, Sharding to);
};

// The sharding of a mesh with these lists, complete, with the manual axes of `like`.
Sharding ReshardPlanner::Impl::with_lists(Sharding like, const AxisLists& lists) {
  ShardingData data;
  data.mesh = like->mesh;
  data.dims.assign(lists.begin(), lists.end());
  data.manual = like->manual;
  return pool->intern(data);
}

// `to` without the pending axes that `from` does not bring.
Sharding ReshardPlanner::Impl::before_pending(Sharding from, Sharding to) {
  bool brings = from->mesh == to->mesh && from->combiner == to->combiner;
  ShardingData data = *to;
  data.pending = brings ? to->pending & from->pending : AxisSet();
  if (data.pending.empty()) data.combiner = Combiner::kNone;
  return pool->intern(data);
}

ReshardPlan ReshardPlanner::Impl::plan_to_pending(Sharding from, Sharding before, Sharding to,
                                                  absl::Span<const int64_t> dims,
                                                  int64_t element_bits) {
  ReshardPlan result = plan(from, before, dims, element_bits);
  ReshardStep step;
  step.kind = StepKind::kMakePending;
  (to->pending - before->pending).for_each([&](AxisId a) { step.axes.push_back(a); });
  result.steps.push_back(std::move(step));
  price_plan(from.mesh(), to.mesh(), interface_layouts(from, dims), dims, element_bits, links,
             &result);
  return result;
}

// Reshard on the first mesh, permute devices, reshard on the second: the cheapest place to cross.
ReshardPlan ReshardPlanner::Impl::plan_across_meshes(Sharding from, Sharding to,
                                                     absl::Span<const int64_t> dims,
                                                     int64_t element_bits) {
  GSPMD_CHECK(from.mesh().num_devices() == to.mesh().num_devices(),
              "two meshes of one program have different sizes");
  GSPMD_CHECK(to->pending.empty(), "a pending value cannot change its mesh");
  std::vector<CrossingSide> before, after;
  for (const AxisLists& lists : crossing_lists(from, to)) {
    Sharding here = with_lists(from, lists);
    before.push_back({here, plan(from, here, dims, element_bits).cost});
  }
  for (const AxisLists& lists : crossing_lists(to, from)) {
    Sharding there = with_lists(to, lists);
    after.push_back({there, plan(there, to, dims, element_bits).cost});
  }
  int64_t weight = message_weight(local_bytes(interface_layouts(from, dims), element_bits),
                                  local_bytes(interface_layouts(to, dims), element_bits));
  auto [here, there] = cheapest_crossing(before, after, dims, element_bits, weight);
  ReshardPlan result = plan(from, here, dims, element_bits);
  result.steps.push_back(crossing_step(here, there));
  const ReshardPlan& rest = plan(there, to, dims, element_bits);
  result.steps.insert(result.steps.end(), rest.steps.begin(), rest.steps.end());
  price_plan(from.mesh(), to.mesh(), interface_layouts(from, dims), dims, element_bits, links,
             &result);
  return result;
}

const ReshardPlan& ReshardPlanner::Impl::plan(Sharding from, Sharding to,
                                              absl::Span<const int64_t> dims,
                                              int64_t element_bits) {
  Key key{from, to, DimVector(dims.begin(), dims.end()), element_bits};
  auto found = plans.find(key);
  if (found != plans.end()) return *found->second;
  check_ends(from, to, dims);
  Sharding before = before_pending(from, to);
  auto plan = std::make_unique<ReshardPlan>(
      before != to ? plan_to_pending(from, before, to, dims, element_bits)
      : from->mesh == to->mesh
          ? plan_on_one_mesh(from, to, dims, element_bits, true, links, &searches)
          : plan_across_meshes(from, to, dims, element_bits));
  return *plans.emplace(std::move(key), std::move(plan)).first->second;
}

const ReshardCost& ReshardPlanner::Impl::cost(Sharding from, Sharding to,
                                              absl::Span<const int64_t> dims,
                                              int64_t element_bits) {
  if (from->mesh != to->mesh || (!to->pending.empty() && before_pending(from, to) != to))
    return plan(from, to, dims, element_bits).cost;
  Key key{from, to, DimVector(dims.begin(), dims.end()), element_bits};
  auto [at, is_new] = costs.try_emplace(std::move(key));
  if (!is_new) return at->second;
  check_ends(from, to, dims);
  return at->second = plan_on_one_mesh(from, to, dims, element_bits, false, links, &searches).cost;
}

ReshardPlanner::ReshardPlanner(ShardingPool* pool, Links links) : impl_(std::make_unique<Impl>()) {
  impl_->pool = pool;
  impl_->links = std::move(links);
}
ReshardPlanner::~ReshardPlanner() = default;

const ReshardPlan& ReshardPlanner::plan(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                                        int64_t element_bits) {
  return impl_->plan(from, to, dims, element_bits);
}

const ReshardCost& ReshardPlanner::cost(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                                        int64_t element_bits) {
  return impl_->cost(from, to, dims, element_bits);
}

}  // namespace gspmd
