#include "gspmd/sharding/halo.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "gspmd/base/check.h"
#include "gspmd/base/dims.h"

namespace gspmd {
namespace {

// More collectives than this are never better than one all-gather in practice.
constexpr int64_t kMaxHops = 16;

struct Range {
  int64_t lo, hi;  // inclusive
};

// The same need with shards numbered from the end.
HaloNeed mirror(HaloNeed need) {
  need.beta += need.alpha * (need.shards - 1);
  need.alpha = -need.alpha;
  return need;
}

// The shards that need anything that exists.
std::optional<Range> receivers(const HaloNeed& need) {
  if (need.alpha < 0) {
    auto r = receivers(mirror(need));
    if (r) r = Range{need.shards - 1 - r->hi, need.shards - 1 - r->lo};
    return r;
  }
  Range r{0, need.shards - 1};
  if (need.alpha == 0) {
    if (need.beta >= need.size || need.beta + need.length <= 0) return std::nullopt;
  } else {
    r.lo = std::max(r.lo, floor_div(-need.beta - need.length, need.alpha) + 1);
    r.hi = std::min(r.hi, floor_div(need.size - 1 - need.beta, need.alpha));
  }
  if (need.length <= 0 || need.size <= 0 || r.lo > r.hi) return std::nullopt;
  return r;
}

// The largest value of a concave function over a range of integers, by bisection of its slope.
template <typename F>
int64_t max_concave(Range r, F f) {
  while (r.lo < r.hi) {
    int64_t mid = r.lo + (r.hi - r.lo) / 2;
    if (f(mid + 1) > f(mid)) {
      r.lo = mid + 1;
    } else {
      r.hi = mid;
    }
  }
  return f(r.lo);
}

using Hops = std::optional<std::vector<HaloHop>>;  // nullopt: too many

// Hops by shift: shift s carries the largest piece of block i+s that any shard i needs.
Hops shift_hops(const HaloNeed& need, Range who, int64_t first_shift, int64_t last_shift) {
  if (last_shift - first_shift > kMaxHops) return std::nullopt;
  std::vector<HaloHop> hops;
  for (int64_t s = first_shift; s <= last_shift; ++s) {
    if (s == 0) continue;
    int64_t width = max_concave(who, [&](int64_t i) {
      int64_t a = need.first(i), b = (i + s) * need.block;
      return std::min({a + need.length, b + need.block, need.size}) - std::max({a, b, int64_t{0}});
    });
    if (width > 0) hops.push_back({HaloHop::Kind::kShift, false, s, width});
  }
  return hops;
}

int64_t modulo(int64_t a, int64_t m) { return a - floor_div(a, m) * m; }

// Hops for alpha >= block: the k-th block that shard i needs differs for every i. The place where
// an interval starts in its first block is congruent to beta modulo gcd(alpha, block).
Hops source_hops(const HaloNeed& need, int64_t gcd) {
  std::vector<HaloHop> hops;
  int64_t low = modulo(need.beta, gcd), high = need.block - gcd + low;
  for (int64_t k = 0;; ++k) {
    int64_t width = k == 0 ? std::min(need.length, need.block - low)
                           : std::min(need.block, high + need.length - k * need.block);
    if (width <= 0) return hops;
    if (k == kMaxHops) return std::nullopt;
    hops.push_back({HaloHop::Kind::kBySource, false, k, width});
  }
}

// Hops for 0 < alpha < block: the m-th shard that needs block j differs for every j. The first
// interval that reaches into a block ends `e` elements behind its start, 1 <= e <= alpha, e
// congruent to beta + length modulo gcd.
Hops target_hops(const HaloNeed& need, int64_t gcd) {
  std::vector<HaloHop> hops;
  int64_t low = modulo(need.beta + need.length - 1, gcd) + 1, high = need.alpha - gcd + low;
  int64_t steps = (high - low) / gcd;
  for (int64_t m = 0; low + m * need.alpha - need.length < need.block; ++m) {
    if (m == kMaxHops) return std::nullopt;
    int64_t width = max_concave({0, steps}, [&](int64_t k) {
      int64_t end = low + k * gcd + m * need.alpha;
      return std::min(end, need.block) - std::max(end - need.length, int64_t{0});
    });
    if (width > 0) hops.push_back({HaloHop::Kind::kByTarget, false, m, width});
  }
  return hops;
}

Hops stride_hops(const HaloNeed& need) {
  if (need.alpha == 0) return std::nullopt;
  HaloNeed up = need.alpha > 0 ? need : mirror(need);
  int64_t gcd = std::gcd(up.alpha, up.block);
  Hops hops = up.alpha >= up.block ? source_hops(up, gcd) : target_hops(up, gcd);
  if (hops && need.alpha < 0) {
    for (HaloHop& hop : *hops) hop.mirrored = true;
  }
  return hops;
}

void offer(HaloPlan* plan, HaloPlan::Form form, Hops hops) {
  if (!hops) return;
  int64_t wire = 0, messages = static_cast<int64_t>(hops->size());
  for (const HaloHop& hop : *hops) wire += hop.width;
  if (std::pair(wire, messages) > std::pair(plan->wire, plan->messages)) return;
  plan->form = form;
  plan->wire = wire;
  plan->messages = messages;
  plan->hops = std::move(*hops);
}

// The first shard whose interval reaches into block j or behind it (may lie outside the shards).
int64_t first_target(const HaloNeed& need, int64_t j) {
  return floor_div(j * need.block - need.beta - need.length, need.alpha) + 1;
}

std::optional<int64_t> inside(const HaloNeed& need, int64_t shard) {
  if (shard < 0 || shard >= need.shards) return std::nullopt;
  return shard;
}

std::optional<int64_t> source_of(const HaloNeed& need, const HaloHop& hop, int64_t i) {
  switch (hop.kind) {
    case HaloHop::Kind::kShift:
      return inside(need, i + hop.step);
    case HaloHop::Kind::kBySource:
      return inside(need, floor_div(need.first(i), need.block) + hop.step);
    case HaloHop::Kind::kByTarget:
      break;
  }
  // The last block that shard i - step reaches into; it must be that shard that reaches into it
  // first.
  int64_t j = floor_div(need.first(i - hop.step) + need.length - 1, need.block);
  if (need.first(i - hop.step - 1) + need.length > j * need.block) return std::nullopt;
  return inside(need, j);
}

std::optional<int64_t> target_of(const HaloNeed& need, const HaloHop& hop, int64_t j) {
  if (hop.kind == HaloHop::Kind::kShift) return inside(need, j - hop.step);
  if (hop.kind == HaloHop::Kind::kByTarget) return inside(need, first_target(need, j) + hop.step);
  // The only i with floor(first(i) / block) = j - step, if there is one.
  int64_t i = floor_div((j - hop.step) * need.block - need.beta - 1, need.alpha) + 1;
  if (floor_div(need.first(i), need.block) != j - hop.step) return std::nullopt;
  return inside(need, i);
}

}  // namespace

HaloPlan plan_halo(const HaloNeed& need) {
  HaloPlan plan;
  plan.gather_wire = (need.shards - 1) * need.block;
  GSPMD_CHECK(need.size <= need.shards * need.block,
              "a halo over blocks that do not hold the dimension");
  auto who = receivers(need);
  if (!who) return plan;
  int64_t low = max_concave(
      *who, [&](int64_t i) { return i * need.block - std::max(need.first(i), int64_t{0}); });
  int64_t high = max_concave(*who, [&](int64_t i) {
    return std::min(need.first(i) + need.length, need.size) - (i + 1) * need.block;
  });
  plan.left = std::max(low, int64_t{0});
  plan.right = std::max(high, int64_t{0});
  if (plan.left == 0 && plan.right == 0) return plan;

  // Later offers win ties: own blocks need not be sent and a gather needs the most memory, so
  // shifts come last.
  plan.form = HaloPlan::Form::kGather;
  plan.wire = plan.gather_wire;
  plan.messages = 1;
  offer(&plan, HaloPlan::Form::kStride, stride_hops(need));
  offer(&plan, HaloPlan::Form::kShift,
        shift_hops(need, *who, floor_div(-low, need.block),
                   floor_div(high + need.block - 1, need.block)));
  return plan;
}

std::optional<int64_t> hop_source(const HaloNeed& need, const HaloHop& hop, int64_t receiver) {
  if (!hop.mirrored) return source_of(need, hop, receiver);
  return source_of(mirror(need), hop, need.shards - 1 - receiver);
}

std::optional<int64_t> hop_target(const HaloNeed& need, const HaloHop& hop, int64_t sender) {
  if (!hop.mirrored) return target_of(need, hop, sender);
  auto target = target_of(mirror(need), hop, sender);
  if (target) target = need.shards - 1 - *target;
  return target;
}

int64_t hop_offset(const HaloNeed& need, const HaloHop& hop, int64_t sender, int64_t receiver) {
  return std::clamp(need.first(receiver) - sender * need.block, int64_t{0}, need.block - hop.width);
}

std::string to_string(const HaloPlan& plan) {
  if (plan.form == HaloPlan::Form::kLocal) return "local";
  if (plan.form == HaloPlan::Form::kGather) return "gather";
  return absl::StrJoin(plan.hops, ", ", [](std::string* out, const HaloHop& hop) {
    constexpr const char* kNames[] = {"shift", "source", "target"};
    absl::StrAppend(out, hop.mirrored ? "mirrored " : "", kNames[static_cast<int>(hop.kind)], " ",
                    hop.step, ": ", hop.width);
  });
}

}  // namespace gspmd
