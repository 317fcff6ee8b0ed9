#include "gspmd/sharding/refinement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gspmd/base/error.h"
#include "tests/unit/sharding/refined.h"

namespace gspmd {
namespace {

template <typename F>
void expect_error(const char* message, const char* hint, F f) {
  try {
    f();
    ADD_FAILURE() << "no error: " << message;
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr(message));
    EXPECT_THAT(error.hint(), testing::HasSubstr(hint));
  }
}

TEST(Refinement, ErrorsAreThrownWhereAValueUsesTheSpelling) {
  const struct {
    const char* text;
    int rank;
    const char* message;
    const char* hint;
  } kCases[] = {
      {"{devices=[4,4]<=[16]}", 2, "device 15 is used, but there are 8 devices",
       "num_partitions=16"},
      {"{devices=[2]3,8}", 1, "device 8 is used, but there are 8 devices", ""},
      {"{devices=[2,4]<=[8]}", 3, "a sharding of 2 dimensions on a value of 3", "last_tile_dims"},
      {"{devices=[2,4]<=[8] last_tile_dim_replicate}", 2,
       "a sharding of 1 dimensions on a value of 2", ""},
      {"{devices=[2,4]<=[8] last_tile_dims={maximal}}", 1, "a maximal subgroup", ""},
      {"{maximal device=8}", 1, "device 8 of 8", "0 to 7"},
      {R"(<@none, [{}]>)", 1, "there is no mesh @none", "the module's meshes are m"},
      {R"(<@m, [{"q"}]>)", 1, "the mesh has no axis \"q\"", "x, y"},
      {R"(<@m, [{"x":(1)3}]>)", 1, "no part of an axis of size 2", ""},
      {R"(<@m, [{"x"}]>)", 2, "a sharding of 1 dimensions on a value of 2", "one {}"},
  };
  for (const auto& c : kCases) {
    const ShardingSpelling s = parse(c.text);
    Refined refined(8, {s}, {{"m", mesh(R"(<["x"=2, "y"=4]>)")}});
    expect_error(c.message, c.hint, [&] { refined.resolve(s, c.rank); });
    expect_error(c.message, c.hint, [&] { refined.resolve(s, c.rank); });
  }
}

// Spellings that no text could give, as from a damaged protobuf.
TEST(Refinement, RefusesWhatNoTextCouldSay) {
  using enum SubgroupType;
  const IdList eight{.reshape = {8}, .perm = {0}, .ids = {}};
  const std::pair<ShardingSpelling, const char*> kCases[] = {
      {tiled({2, 2}, eight, {}), "4 tiles but 8 devices"},
      {tiled({}, eight, {}), "without dimensions"},
      {tiled({8, 0}, eight, {}), "a size of 0"},
      {tiled({8}, eight, {kManual, kReplicated}), "2 last_tile_dims"},
      {tiled({8}, {.reshape = {2, 4}, .perm = {1, 1}, .ids = {}}, {}), "no permutation"},
      {tiled({8}, {.reshape = {2, 4}, .perm = {0}, .ids = {}}, {}), "no permutation"},
      {tiled({8}, {.reshape = {-2, -4}, .perm = {0, 1}, .ids = {}}, {}), "a size of -2"},
      {tiled({2}, {.reshape = {}, .perm = {}, .ids = {1, 1}}, {}), "device 1 stands twice"},
      {tiled({2}, {.reshape = {}, .perm = {}, .ids = {1, -1}}, {}), "device -1 does not exist"},
      {tiled({2}, {}, {}), "2 tiles but 0 devices"},
  };
  for (const auto& [s, message] : kCases) {
    Refined refined(8, {s});
    expect_error(message, "", [&] { refined.resolve(s, 1); });
    expect_error(message, "", [&] {
      ShardingSpelling copy = s;
      normalize(&copy);
    });
  }
  // And what is merely not in normal form is understood.
  const auto s = tiled({4, 1, 2}, {.reshape = {2, 1, 4}, .perm = {2, 1, 0}, .ids = {}}, {kManual});
  Refined refined(8, {s});
  EXPECT_EQ(to_string(refined.resolve(s, 2)), "[{axis_1}, {}] manual={axis_0}");
  const auto whole = tiled({1, 8}, eight, {kManual});
  EXPECT_EQ(to_string(refined.resolve(whole, 1)), "[{}] manual={axis_0,axis_1}");
  ShardingSpelling normal = whole;
  normalize(&normal);
  EXPECT_EQ(print_hlo_sharding(normal), "{manual}");
}

}  // namespace
}  // namespace gspmd
