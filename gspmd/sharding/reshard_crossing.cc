#include "gspmd/sharding/reshard_crossing.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "gspmd/base/check.h"
#include "gspmd/sharding/reshard_search.h"

namespace gspmd {
namespace {

constexpr size_t kMaxCrossings = 100;

AxisLists with_manual(Sharding s) {
  AxisLists lists(s->dims.begin(), s->dims.end());
  lists.push_back(list_of(s->manual));  // a device keeps its coordinates along manual axes
  return lists;
}

class CrossingLists {
 public:
  CrossingLists(Sharding s, Sharding other) : s_(s) {
    for (int d = 0; d < s.rank(); ++d) {
      if (!s.dim(d).empty() || !other.dim(d).empty()) active_.push_back(d);
    }
  }
  std::vector<AxisLists> find() {
    choose_prefix(0, AxisLists(s_.rank()));
    return std::move(found_);
  }

 private:
  bool full() const { return found_.size() >= kMaxCrossings; }

  void choose_prefix(size_t i, AxisLists lists) {
    if (full()) return;
    if (i == active_.size()) {
      AxisSet rest = s_.mesh().all_axes() - s_->manual;
      for (const AxisList& list : lists) rest -= list.set();
      return place_rest(list_of(rest), 0, lists);
    }
    int d = active_[i];
    for (int n = s_.dim(d).size(); n >= 0; --n) {
      lists[d] = s_.dim(d).prefix(n);
      choose_prefix(i + 1, lists);
    }
  }

  void place_rest(const AxisList& rest, int k, const AxisLists& lists) {
    if (full()) return;
    if (k == rest.size()) {
      if (std::find(found_.begin(), found_.end(), lists) == found_.end()) found_.push_back(lists);
      return;
    }
    for (int d : active_) {
      AxisLists more = lists;
      more[d].push_back(rest[k]);
      place_rest(rest, k + 1, more);
    }
    place_rest(rest, k + 1, lists);
  }

  Sharding s_;
  absl::InlinedVector<int, 4> active_;
  std::vector<AxisLists> found_;
};

bool can_cross(Sharding a, Sharding b) {
  for (int d = 0; d < a.rank(); ++d) {
    if (a.shards(d) != b.shards(d)) return false;
  }
  return true;
}

bool stays(Sharding from, Sharding to) {
  return same_placement(from.mesh(), with_manual(from), to.mesh(), with_manual(to));
}

}  // namespace

std::vector<AxisLists> crossing_lists(Sharding s, Sharding other) {
  std::vector<AxisLists> found = CrossingLists(s, other).find();
  AxisLists nowhere(s.rank());  // always possible: the whole value on each device
  if (std::find(found.begin(), found.end(), nowhere) == found.end()) found.push_back(nowhere);
  return found;
}

ReshardStep crossing_step(Sharding from, Sharding to) {
  ReshardStep step;
  step.kind = StepKind::kCrossMesh;
  step.lists_after.assign(to->dims.begin(), to->dims.end());
  step.stays = stays(from, to);
  return step;
}

std::pair<Sharding, Sharding> cheapest_crossing(absl::Span<const CrossingSide> before,
                                                absl::Span<const CrossingSide> after,
                                                absl::Span<const int64_t> dims,
                                                int64_t element_bits, int64_t message_bytes) {
  const CrossingSide *best_before = nullptr, *best_after = nullptr;
  std::optional<ReshardRank> best;
  for (const CrossingSide& a : before) {
    for (const CrossingSide& b : after) {
      if (!can_cross(a.sharding, b.sharding)) continue;
      ReshardCost cost = a.cost;
      add(&cost, b.cost);
      if (!stays(a.sharding, b.sharding)) {
        cost.wire_bytes += local_bytes(interface_layouts(a.sharding, dims), element_bits);
        cost.messages += 1;
      }
      if (best && rank(cost, message_bytes) >= *best) continue;
      best = rank(cost, message_bytes);
      best_before = &a;
      best_after = &b;
    }
  }
  GSPMD_CHECK(best.has_value(), "no way between two meshes");
  return {best_before->sharding, best_after->sharding};
}

}  // namespace gspmd
