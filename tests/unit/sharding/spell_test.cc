#include "gspmd/sharding/refinement.h"

#include <gtest/gtest.h>

#include "tests/unit/sharding/brute_force.h"
#include "tests/unit/sharding/refined.h"

namespace gspmd {
namespace {

using brute_force::canonical;
using brute_force::tiles;
using Kind = ShardingSpelling::Kind;

TEST(Refinement, NamedMeshesGiveNames) {
  const struct {
    const char* mesh;
    const char* sharding;
    const char* refined;
    const char* expected;
    const char* hlo;
  } kCases[] = {
      {R"(<["x"=2, "y"=4]>)", R"(<@m, [{"x"}, {"y"}]>)", "x=2 y=4 ", "[{x}, {y}]",
       "{devices=[2,4]<=[8]}"},
      {R"(<["x"=2, "y"=4]>)", R"(<@m, [{"y"}, {}]>)", "x=2 y=4 ", "[{y}, {}]",
       "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"},
      {R"(<["x"=2, "one"=1, "y"=4]>)", R"(<@m, [{"y", "one", "x"}, {}]>)", "x=2 y=4 ",
       "[{y,x}, {}]", "{devices=[8,1]<=[2,4]T(1,0)}"},
      {R"(<["x"=2, "y"=4]>)", R"(<@m, [{"y":(2)2}, {"y":(1)2}]>)", "x=2 y:(1)=2 y:(2)=2 ",
       "[{y:(2)2}, {y:(1)2}]", "{devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}"},
      {R"(<["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>)", R"(<@m, [{"x"}, {}], replicated={"y"}>)",
       "y=2 x=2 ", "[{x}, {}] replicated={y}",
       "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"},
      {R"(<["x"=2, "y"=2], device_ids=[0, 1, 3, 2]>)", R"(<@m, [{"x"}, {"y"}]>)",
       "x=2 y=2 0,1,3,2,", "[{x}, {y}]", "{devices=[2,2]0,1,3,2}"},
      // One user's axis, two places in the order of devices.
      {R"(<["a"=4, "b"=2], device_ids=[0, 2, 1, 3, 4, 6, 5, 7]>)", R"(<@m, [{"a"}, {"b"}]>)",
       "a:(1)=2 b=2 a:(2)=2 ", "[{a}, {b}]", "{devices=[4,2]<=[2,2,2]T(0,2,1)}"},
      {R"(<["a"=4, "b"=2], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>)", R"(<@m, [{"a":(1)2}, {"b"}]>)",
       "a:(2)=2 b=2 a:(1)=2 ", "[{a:(1)2}, {b}]",
       "{devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}"},
      {R"(<["x"=2, "y"=4]>)", R"(<@m, [{}, {}], unreduced=max{"x"}>)", "x=2 y=4 ",
       "[{}, {}] pending=max{x}", "{mesh['x'=2,'y'=4], [{}, {}], unreduced=max{'x'}}"},
      {R"(<["x"=2, "y"=4]>)", R"(<@m, [{}, {}], unreduced={"y"}>)", "x=2 y=4 ",
       "[{}, {}] pending=sum{y}",
       "{devices=[1,1,4,2]<=[2,4]T(1,0) last_tile_dims={unreduced, replicated}}"},
  };
  for (const auto& c : kCases) {
    const ShardingSpelling s = parse(c.sharding);
    const NamedMesh named = mesh(c.mesh);
    int64_t n = 1;
    for (const auto& axis : named.axes) n *= axis.second;
    Refined refined(n, {s}, {{"m", named}});
    const Sharding sharding = refined.resolve(s, 2);
    EXPECT_EQ(print_mesh(sharding.mesh()), c.refined);
    EXPECT_EQ(to_string(sharding), c.expected);
    EXPECT_EQ(print_hlo_sharding(spell(sharding)), c.hlo);
    // By name and back.
    const ShardingSpelling again = spell_named(sharding, "m");
    EXPECT_EQ(refined.resolve(again, 2), sharding) << print_sdy_sharding(again);
    const ShardingSpelling in_place = spell_named(sharding, "");
    EXPECT_EQ(canonical(tiles(refined.resolve(in_place, 2))), canonical(tiles(sharding)))
        << print_hlo_sharding(in_place);
  }
}

TEST(Spell, Compactly) {
  for (const char* text : {
           "{replicated}",
           "{devices=[8,1]<=[8]}",
           "{devices=[1,8]<=[8]}",
           "{devices=[2,4]<=[8]}",
           "{devices=[4,2]<=[2,4]T(1,0)}",
           "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
           "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
           "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}",
           "{devices=[1,1,2,4]<=[8] last_tile_dims={manual, replicated}}",
           "{devices=[2,1,4]<=[8] last_tile_dims={manual}}",
           "{devices=[1,2,2,2]<=[8] last_tile_dims={manual, unreduced, replicated}}",
           "{manual}",
           "{unreduced}",
           "{devices=[2,4]7,1,2,3,4,5,6,0}",
           "{devices=[2,2]<=[4]}",
       }) {
    const ShardingSpelling s = parse(text);
    // However finely the mesh is cut.
    Refined refined(8, {parse("{devices=[2,2,2]<=[8]}"), s});
    const int rank = s.kind == Kind::kTiled ? rank_of(s) : 2;
    EXPECT_EQ(print_hlo_sharding(spell(refined.resolve(s, rank))), text);
  }
}

TEST(Spell, CopiesInOrder) {
  const auto full = parse("{devices=[2,4]7,1,2,0,3,4,5,6}");
  const auto copies = parse("{devices=[2,1,4]0,1,7,2,3,4,5,6 last_tile_dim_replicate}");
  const auto regular = parse("{devices=[2,1,4]7,4,5,6,3,2,1,0 last_tile_dim_replicate}");
  Refined refined(8, {full, full, copies});
  EXPECT_EQ(&refined.resolve(copies, 2).mesh(), &refined.resolve(full, 2).mesh());
  EXPECT_EQ(print_hlo_sharding(spell(refined.resolve(copies, 2))),
            "{devices=[2,1,4]0,1,2,7,3,4,5,6 last_tile_dim_replicate}");
  EXPECT_EQ(print_hlo_sharding(spell(refined.resolve(regular, 2))),
            "{devices=[2,1,4]4,5,6,7,0,1,2,3 last_tile_dim_replicate}");
}

}  // namespace
}  // namespace gspmd
