#include "gspmd/report/stats.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gspmd/formats/hlo_text.h"

namespace gspmd {
namespace {

Stats stats_of(const std::string& text) {
  return compute_stats(*parse_hlo(std::make_shared<Context>(), text, "program.hlo"));
}

constexpr const char* kCollectives = R"(HloModule m, num_partitions=8
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,4] parameter(0)
  ar = f32[8,4] all-reduce(x), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add
  all = f32[8,4] all-reduce(x), channel_id=2, replica_groups={}, use_global_device_ids=true, to_apply=add
  ag = f32[8,16] all-gather(ar), channel_id=3, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={1}, use_global_device_ids=true
  rs = f32[4,4] reduce-scatter(x), channel_id=4, replica_groups=mesh['a'=4,'b'=2] {'b'}, use_global_device_ids=true, dimensions={0}, to_apply=add
  aa = f32[8,4] all-to-all(x), channel_id=5, replica_groups=[2,4]<=[8], dimensions={0}
  cp = f32[8,4] collective-permute(x), channel_id=6, source_target_pairs={{0,1},{1,0}}
  ags = (f32[8,4], f32[8,8]) all-gather-start(x), channel_id=7, replica_groups=[4,2]<=[8], dimensions={1}, use_global_device_ids=true
  agd = f32[8,8] all-gather-done(ags)
  ROOT t = (f32[8,4], f32[8,16], f32[4,4], f32[8,4], f32[8,4], f32[8,8]) tuple(all, ag, rs, aa, cp, agd)
}
)";

TEST(Stats, Collectives) {
  Stats s = stats_of(kCollectives);
  auto expect = [&](const char* kind, int64_t count, double bytes, double wire_bytes) {
    ASSERT_EQ(s.collectives.count(kind), 1u) << kind;
    const CollectiveStats& c = s.collectives.at(kind);
    EXPECT_EQ(c.count, count) << kind;
    EXPECT_EQ(c.executed, count) << kind;
    EXPECT_EQ(c.bytes, bytes) << kind;
    EXPECT_EQ(c.wire_bytes, wire_bytes) << kind;
  };
  EXPECT_EQ(s.num_partitions, 8);
  EXPECT_EQ(s.collectives.size(), 5u);
  expect("all-reduce", 2, 256, 128 * 1.5 + 128 * 1.75);  // groups of 4, of all 8
  expect("all-gather", 2, 256, 128 * 3 + 128);           // groups of 4, of 2
  expect("reduce-scatter", 1, 128, 64);
  expect("all-to-all", 1, 128, 96);
  expect("collective-permute", 1, 128, 128);
  EXPECT_EQ(s.total_bytes, 7 * 128);
  EXPECT_EQ(s.wire_bytes, 416 + 512 + 64 + 96 + 128);
  EXPECT_EQ(s.unknown_loop_wire_bytes, 0);
  EXPECT_EQ(s.bytes_touched, 0);
  EXPECT_EQ(s.instructions, 13);
}

// A loop of 3 trips around one of unknown length, which permutes 16 bytes.
constexpr const char* kLoops = R"(HloModule m, num_partitions=2
inner_condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=NE
}
inner_body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}
  ROOT t = (s32[], f32[4]) tuple(i, y)
}
outer_condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
outer_body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] collective-permute(x), channel_id=2, source_target_pairs={{0,1},{1,0}}
  zero = s32[] constant(0)
  u = (s32[], f32[4]) tuple(zero, y)
  w = (s32[], f32[4]) while(u), condition=inner_condition, body=inner_body
  z = f32[4] get-tuple-element(w), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[4]) tuple(j, z)
}
ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[4]) tuple(zero, x)
  ROOT w = (s32[], f32[4]) while(t), condition=outer_condition, body=outer_body
}
)";

TEST(Stats, LoopsAreWeighed) {
  Stats s = stats_of(kLoops);
  const CollectiveStats& c = s.collectives.at("collective-permute");
  EXPECT_EQ(c.count, 2);
  EXPECT_EQ(c.executed, 6);
  EXPECT_EQ(c.bytes, 6 * 16);
  EXPECT_EQ(s.wire_bytes, 6 * 16);
  EXPECT_EQ(s.unknown_loop_wire_bytes, 3 * 16);
  EXPECT_EQ(s.loops_known, 1);
  EXPECT_EQ(s.loops_unknown, 1);
  EXPECT_EQ(s.elementwise_flops,
            3 + 1 + 3);  // additions; one run of each condition, the inner one's three times
}

constexpr const char* kWork = R"(HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
twice {
  p = f32[8,6] parameter(0)
  ROOT q = f32[8,6] add(p, p)
}
ENTRY main {
  x = f32[8,4] parameter(0)
  w = f32[4,6] parameter(1)
  image = f32[2,8,8,4] parameter(2)
  kernel = f32[3,3,2,6] parameter(3)
  y = f32[8,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[8,6] call(y), to_apply=twice
  conv = f32[2,8,8,6] convolution(image, kernel), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2
  zero = f32[] constant(0)
  r = f32[8] reduce(z, zero), dimensions={1}, to_apply=add
  u = f32[6,8] transpose(z), dimensions={1,0}
  ROOT t = (f32[8], f32[6,8], f32[2,8,8,6]) tuple(r, u, conv)
}
)";

TEST(Stats, Work) {
  Stats s = stats_of(kWork);
  EXPECT_EQ(s.dot_flops, 2.0 * 8 * 6 * 4);
  EXPECT_EQ(s.convolution_flops, 2.0 * (2 * 8 * 8 * 6) * (3 * 3 * 2));
  EXPECT_EQ(s.elementwise_flops, 48);
  EXPECT_EQ(s.other_flops, 48);  // the reduction's operand
  double dot = 4 * (48 + 32 + 24), twice = 4 * (3 * 48), conv = 4 * (768 + 512 + 108);
  double reduce = 4 * (8 + 48 + 1), transpose = 4 * (48 + 48);
  EXPECT_EQ(s.bytes_touched, dot + twice + conv + reduce + transpose);
}

TEST(Stats, Json) {
  Stats s = stats_of(kCollectives);
  s.instructions_before = 3;
  s.ms = {{"parse", 0.5}, {"total", 0.5}};
  nlohmann::ordered_json j = to_json(s);
  EXPECT_EQ(j["schema"], 1);
  EXPECT_EQ(j["instructions"].dump(), R"({"before":3,"after":13})");
  EXPECT_EQ(j["collectives"]["all-to-all"].dump(),
            R"({"count":1,"executed":1,"bytes":128,"wire_bytes":96})");
  EXPECT_EQ(j["flops"].dump(), R"({"dot":0,"convolution":0,"elementwise":0,"other":0})");
  EXPECT_EQ(j["ms"].dump(), R"({"parse":0.5,"total":0.5})");
  EXPECT_NE(
      to_table(s).find("collective-permute           1           1         128 B         128 B"),
      std::string::npos)
      << to_table(s);
}

}  // namespace
}  // namespace gspmd
