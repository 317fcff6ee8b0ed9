#include "gspmd/sharding/halo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gspmd {
namespace {

std::string describe(const HaloNeed& n) {
  return "size " + std::to_string(n.size) + " block " + std::to_string(n.block) + " shards " +
         std::to_string(n.shards) + " alpha " + std::to_string(n.alpha) + " beta " +
         std::to_string(n.beta) + " length " + std::to_string(n.length);
}

constexpr int64_t kNothing = -1;

// What receiver i holds after the exchange, by the arithmetic that halo.h documents: a buffer of
// `length` elements, each the global position whose value stands there, or kNothing.
std::vector<int64_t> exchange(const HaloNeed& need, const HaloPlan& plan, int64_t i) {
  int64_t margin = need.block;  // wide enough for own block and hops
  std::vector<int64_t> buffer(margin + need.length + margin, kNothing);
  auto put = [&](int64_t j, int64_t offset, int64_t width) {
    int64_t at = margin + j * need.block + offset - need.first(i);
    at = std::clamp(at, margin - width, margin + need.length);  // into a margin at the furthest
    for (int64_t k = 0; k < width; ++k) buffer[at + k] = j * need.block + offset + k;
  };
  if (plan.form != HaloPlan::Form::kStride) put(i, 0, need.block);
  for (const HaloHop& hop : plan.hops) {
    auto j = hop_source(need, hop, i);
    if (!j) continue;
    EXPECT_EQ(hop_target(need, hop, *j), i) << describe(need) << " " << to_string(plan);
    put(*j, hop_offset(need, hop, *j, i), hop.width);
  }
  return {buffer.begin() + margin, buffer.begin() + margin + need.length};
}

void expect_served(const HaloNeed& need, const HaloPlan& plan) {
  for (int64_t i = 0; i < need.shards; ++i) {
    auto got = exchange(need, plan, i);
    for (int64_t k = 0; k < need.length; ++k) {
      int64_t position = need.first(i) + k;
      if (position < 0 || position >= need.size) continue;
      ASSERT_EQ(got[k], position) << describe(need) << " shard " << i << " " << to_string(plan);
    }
  }
}

void expect_permutations(const HaloNeed& need, const HaloPlan& plan) {
  for (const HaloHop& hop : plan.hops) {
    ASSERT_LE(hop.width, need.block);
    ASSERT_GT(hop.width, 0);
    std::vector<int> received(need.shards);
    for (int64_t j = 0; j < need.shards; ++j) {
      auto i = hop_target(need, hop, j);
      if (!i) continue;
      ASSERT_EQ(received[*i]++, 0) << describe(need) << " " << to_string(plan);
      ASSERT_EQ(hop_source(need, hop, *i), j) << describe(need) << " " << to_string(plan);
    }
  }
}

void expect_reaches(const HaloNeed& need, const HaloPlan& plan) {
  int64_t left = 0, right = 0;
  for (int64_t i = 0; i < need.shards; ++i) {
    for (int64_t k = 0; k < need.length; ++k) {
      int64_t position = need.first(i) + k;
      if (position < 0 || position >= need.size) continue;
      left = std::max(left, i * need.block - position);
      right = std::max(right, position - (i + 1) * need.block + 1);
    }
  }
  EXPECT_EQ(plan.left, left) << describe(need);
  EXPECT_EQ(plan.right, right) << describe(need);
}

// The sum over shifts of the largest piece that any shard needs: what the shift form must cost.
int64_t shift_wire(const HaloNeed& need) {
  int64_t wire = 0;
  for (int64_t s = -need.shards; s <= need.shards; ++s) {
    int64_t width = 0;
    for (int64_t i = 0; i < need.shards && s != 0; ++i) {
      int64_t count = 0;
      for (int64_t k = 0; k < need.length; ++k) {
        int64_t position = need.first(i) + k;
        bool exists = position >= 0 && position < need.size;
        count += exists && position / need.block == i + s;
      }
      width = std::max(width, count);
    }
    wire += width;
  }
  return wire;
}

void expect_right(const HaloNeed& need) {
  HaloPlan plan = plan_halo(need);
  expect_reaches(need, plan);
  expect_permutations(need, plan);
  if (plan.form != HaloPlan::Form::kGather) expect_served(need, plan);
  int64_t shifts = shift_wire(need);
  if (plan.form == HaloPlan::Form::kShift) {
    EXPECT_EQ(plan.wire, shifts) << describe(need);
  }
  EXPECT_LE(plan.wire, std::min(shifts, plan.gather_wire)) << describe(need);
}

TEST(Halo, RandomNeedsAgainstBruteForce) {
  std::mt19937 random(1);
  auto pick = [&](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random() % static_cast<uint32_t>(hi - lo + 1));
  };
  for (int round = 0; round < 30000; ++round) {
    HaloNeed need;
    need.shards = pick(1, 9);
    need.block = pick(1, 8);
    need.size = pick(0, need.shards * need.block);
    need.alpha = pick(-12, 12);
    need.beta = pick(-20, 60);
    need.length = pick(0, 14);
    expect_right(need);
    if (HasFatalFailure()) return;
  }
}

TEST(Halo, EveryRealignOfSmallBlocks) {
  for (int64_t shards = 1; shards <= 8; ++shards) {
    for (int64_t size = 1; size <= 40; ++size) {
      int64_t least = (size + shards - 1) / shards;
      for (int64_t b1 = least; b1 <= least + 6; ++b1) {
        for (int64_t b2 = least; b2 <= least + 6; ++b2) {
          expect_right({size, b1, shards, b2, 0, b2});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

struct Named {
  HaloNeed need;
  const char* expected;
};

TEST(Halo, NamedPlans) {
  const Named kTable[] = {
      {{7, 6, 2, 4, 0, 4}, "shift -1: 2"},                 // realign 6 -> 4
      {{7, 4, 2, 6, 0, 6}, "shift 1: 2"},                  // realign 4 -> 6
      {{20, 5, 4, 5, 0, 5}, "local"},                      // nothing changes
      {{20, 5, 4, 5, -1, 7}, "shift -1: 1, shift 1: 1"},   // a window of 3
      {{20, 5, 4, 5, -7, 5}, "shift -2: 2, shift -1: 3"},  // two hops: the own block is not needed
      {{64, 8, 8, 8, 32, 8}, "shift 4: 8"},                // the second half of the elements
      {{16, 4, 4, -4, 12, 4}, "mirrored source 0: 4"},     // reverse
      {{1024, 16, 64, 8, 0, 8}, "target 0: 8, target 1: 8"},  // the first half, spread over all
      {{8, 2, 4, 0, 0, 8}, "gather"},                         // everybody needs everything
      {{1 << 20, 16, 1 << 16, 16, -3, 19}, "shift -1: 3"},
  };
  for (const Named& row : kTable) {
    EXPECT_EQ(to_string(plan_halo(row.need)), row.expected) << describe(row.need);
  }
}

// 100,000 elements in blocks of 512 over 256 shards, wanted in blocks of 391: the last shard's
// elements stand 61 shards away, and still no device sends more than three pieces.
TEST(Halo, FarRealignsDoNotGather) {
  HaloPlan plan = plan_halo({100000, 512, 256, 391, 0, 391});
  EXPECT_EQ(plan.form, HaloPlan::Form::kStride);
  EXPECT_EQ(plan.messages, 3);
  EXPECT_LE(plan.wire, 3 * 391);
}

}  // namespace
}  // namespace gspmd
