#include "gspmd/sharding/reshard_walk.h"

#include <algorithm>
#include <utility>

#include "gspmd/base/check.h"

namespace gspmd {

Walk::Walk(const ReshardProblem& problem) : problem_(&problem) {
  state_.pending = problem.pending;
  for (int d = 0; d < problem.num_dims(); ++d) {
    state_.dims.push_back({problem.from[d], ceil_div(problem.sizes[d], product(problem.from[d]))});
  }
}

int64_t Walk::product(const AxisList& units) const {
  int64_t n = 1;
  for (AxisId u : units) n *= problem_->unit_sizes[u];
  return n;
}

int64_t Walk::aimed_block(int d) const {
  int64_t n = shards(d), all = product(problem_->to[d]);
  return all % n == 0 ? ceil_div(problem_->sizes[d], all) * (all / n) : state_.dims[d].block;
}

AxisSet Walk::free_units() const {
  AxisSet used = state_.pending | problem_->pending_after;
  for (const DimLayout& d : state_.dims) used |= d.axes.set();
  return AxisSet::first(static_cast<int>(problem_->unit_sizes.size())) - used;
}

AxisList Walk::suffix(int d, int count) const {
  return list(d).slice(list(d).size() - count, list(d).size());
}

void Walk::slice(int d, const AxisList& units) {
  make_divisible(d, product(units));
  take({StepKind::kSlice, d, -1, units, 0, {}});
}

void Walk::gather(int d, int count) {
  take({StepKind::kAllGather, d, -1, suffix(d, count), 0, {}});
  trim(d);
}

void Walk::all_to_all(int d, int count, int e) {
  AxisList units = suffix(d, count);
  make_divisible(e, product(units));
  take({StepKind::kAllToAll, d, e, units, 0, {}});
  trim(d);
}

void Walk::reduce_scatter(const AxisList& units, int d) {
  make_divisible(d, product(units));
  take({StepKind::kReduceScatter, d, -1, units, 0, {}});
}

void Walk::all_reduce(const AxisList& units) { take({StepKind::kAllReduce, -1, -1, units, 0, {}}); }

void Walk::permute(const UnitLists& lists) { take({StepKind::kPermute, -1, -1, {}, 0, lists}); }

void Walk::realign(int d, int64_t block) {
  int64_t n = shards(d), before = state_.dims[d].block;
  if (before == block) return;
  if (n == 1) return take({StepKind::kPadOrTrim, d, -1, {}, block, {}});
  HaloPlan halo = plan_halo(realign_need(problem_->sizes[d], before, n, block));
  if (halo.form != HaloPlan::Form::kGather) return exchange(d, block, halo);
  AxisList all = list(d);
  take({StepKind::kAllGather, d, -1, all, 0, {}});
  realign(d, block * n);
  take({StepKind::kSlice, d, -1, all, 0, {}});
}

// Makes the block divide by `n`: the smallest that does, where it must change.
void Walk::make_divisible(int d, int64_t n) {
  if (state_.dims[d].block % n == 0) return;
  realign(d, ceil_div(problem_->sizes[d], shards(d) * n) * n);
}

void Walk::trim(int d) {
  if (list(d).empty()) realign(d, problem_->sizes[d]);
}

void Walk::exchange(int d, int64_t block, const HaloPlan& halo) {
  ReshardState sent = state_;
  sent.dims[d].block = halo.wire;
  take({StepKind::kRealign, d, -1, {}, block, {}}, local_bytes(sent.dims, problem_->element_bits),
       halo.messages);
}

void Walk::take(Move move, int64_t halo_bytes, int64_t halo_messages) {
  StepSize size{move.kind, product(move.axes), bytes(), 0, halo_bytes, halo_messages, rate(move)};
  change(move, size.group);
  size.bytes_after = bytes();
  add(&cost_, price(size));
  moves_.push_back(std::move(move));
}

LinkRate Walk::rate(const Move& move) const {
  LinkRate slowest;
  if (problem_->unit_rates.empty()) return slowest;
  auto add = [&](AxisSet units) {
    units.for_each([&](AxisId u) { slowest = slowest.slower_of(problem_->unit_rates[u]); });
  };
  add(move.axes.set());
  if (move.kind == StepKind::kRealign) add(list(move.dim).set());
  for (size_t d = 0; d < move.lists_after.size(); ++d) {
    const AxisList &before = state_.dims[d].axes, &after = move.lists_after[d];
    add(before.slice(before.common_prefix(after), before.size()).set());
  }
  return slowest;
}

void Walk::change(const Move& move, int64_t n) {
  switch (move.kind) {
    case StepKind::kSlice:
      return append(move.dim, move.axes, n);
    case StepKind::kAllGather:
      return remove(move.dim, move.axes, n);
    case StepKind::kAllToAll:
      remove(move.dim, move.axes, n);
      return append(move.to_dim, move.axes, n);
    case StepKind::kReduceScatter:
      state_.pending -= move.axes.set();
      return append(move.dim, move.axes, n);
    case StepKind::kAllReduce:
      state_.pending -= move.axes.set();
      return;
    case StepKind::kPermute:
      for (size_t d = 0; d < state_.dims.size(); ++d) state_.dims[d].axes = move.lists_after[d];
      return;
    case StepKind::kPadOrTrim:
    case StepKind::kRealign:
      state_.dims[move.dim].block = move.block;
      return;
    case StepKind::kMakePending:
    case StepKind::kCrossMesh:
      GSPMD_CHECK(false, "a step inside a walk that only stands behind one");
  }
}

void Walk::append(int d, const AxisList& units, int64_t n) {
  GSPMD_CHECK(state_.dims[d].block % n == 0, "a walk splits a block that does not divide");
  state_.dims[d].axes.append(units);
  state_.dims[d].block /= n;
}

void Walk::remove(int d, const AxisList& units, int64_t n) {
  state_.dims[d].axes.resize_down(state_.dims[d].axes.size() - units.size());
  state_.dims[d].block *= n;
}

}  // namespace gspmd
