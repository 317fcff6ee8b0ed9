#include "gspmd/sharding/refinement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "gspmd/base/error.h"
#include "tests/unit/sharding/brute_force.h"
#include "tests/unit/sharding/refined.h"

namespace gspmd {
namespace {

using brute_force::canonical;
using brute_force::factorizations;
using brute_force::Random;
using brute_force::tiles;
using Kind = ShardingSpelling::Kind;

// That the sharding puts the same tiles on the same devices as the spelling, and so does its own
// spelling.
void expect_same_tiles(const ShardingSpelling& s, Sharding sharding, Refined* refined) {
  const auto expected = canonical(tiles(s));
  auto actual = canonical(tiles(sharding));
  if (expected.size() == actual.size()) {
    ASSERT_EQ(expected, actual) << print_hlo_sharding(s) << " as " << to_string(sharding);
  }
  const ShardingSpelling again = spell(sharding);
  if (again.kind != Kind::kTiled) return;
  ASSERT_EQ(canonical(tiles(again)), actual) << print_hlo_sharding(again);
  const Sharding back = refined->resolve(again, rank_of(again));
  if (&sharding.mesh() == refined->refinement.mesh()) {
    ASSERT_EQ(back, sharding) << print_hlo_sharding(again);
  }
  ASSERT_EQ(canonical(tiles(back)), actual) << print_hlo_sharding(again);
}

// Every way to give the last tile dimensions a meaning, up to two of them.
std::vector<std::vector<SubgroupType>> subgroup_choices(size_t tile_dims) {
  using enum SubgroupType;
  std::vector<std::vector<SubgroupType>> out{{}};
  if (tile_dims >= 1) out.insert(out.end(), {{kReplicated}, {kManual}, {kUnreduced}});
  if (tile_dims >= 2) out.insert(out.end(), {{kManual, kReplicated}, {kReplicated, kUnreduced}});
  return out;
}

TEST(Refinement, EveryIotaFormMeansItsTiles) {
  int64_t cases = 0;
  for (int64_t n : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    for (const auto& reshape : factorizations(n)) {
      std::vector<int> perm(reshape.size());
      std::iota(perm.begin(), perm.end(), 0);
      do {
        IdList devices{.reshape = reshape, .perm = perm, .ids = {}};
        if (reshape.empty()) devices = {.reshape = {1}, .perm = {0}, .ids = {}};
        for (auto tile_dims : factorizations(n)) {
          if (n == 1) tile_dims = {1};
          for (const auto& subgroups : subgroup_choices(tile_dims.size())) {
            const ShardingSpelling s = tiled(tile_dims, devices, subgroups);
            Refined refined(n, {s});
            expect_same_tiles(s, refined.resolve(s, rank_of(s)), &refined);
            ++cases;
          }
        }
      } while (std::next_permutation(perm.begin(), perm.end()));
    }
  }
  EXPECT_GT(cases, 10000);
}

std::vector<int64_t> pick_factorization(int64_t n, Random* random) {
  const auto all = factorizations(n);
  return all[random->below(static_cast<int64_t>(all.size()))];
}

ShardingSpelling random_spelling(int64_t n, const std::vector<int64_t>& order, Random* random) {
  std::vector<int64_t> tile_dims = pick_factorization(n, random);
  const auto choices = subgroup_choices(tile_dims.size());
  const auto subgroups = choices[random->below(static_cast<int64_t>(choices.size()))];
  // An unsplit dimension somewhere.
  const int64_t rank = static_cast<int64_t>(tile_dims.size() - subgroups.size());
  tile_dims.insert(tile_dims.begin() + random->below(rank + 1), 1);

  IdList devices;
  devices.reshape = pick_factorization(n, random);
  devices.perm.resize(devices.reshape.size());
  std::iota(devices.perm.begin(), devices.perm.end(), 0);
  random->shuffle(&devices.perm);
  if (n == 1) devices = {.reshape = {1}, .perm = {0}, .ids = {}};
  const int64_t kind = random->below(3);
  if (kind > 0) {  // as a list: of the ids, or of the devices in `order` at these places
    devices.ids = brute_force::ids(devices);
    devices.reshape.clear();
    devices.perm.clear();
  }
  if (kind == 2) {
    for (int64_t& id : devices.ids) id = order[id];
  }
  return tiled(tile_dims, devices, subgroups);
}

// Modules with several annotations: iota, lists, a second device order, meshes that do not nest.
TEST(Refinement, SpellingsOfOneModuleKeepTheirTiles) {
  Random random(7);
  for (int64_t n : {2, 3, 4, 6, 8, 12, 16, 24}) {
    for (int module = 0; module < 150; ++module) {
      std::vector<int64_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      random.shuffle(&order);
      std::vector<ShardingSpelling> spellings;
      for (int i = 0; i < 5; ++i) spellings.push_back(random_spelling(n, order, &random));
      const std::vector<ShardingSpelling> noted(spellings.begin(), spellings.begin() + 4);
      Refined refined(n, noted);  // the last one is new to resolve()
      for (const ShardingSpelling& s : spellings) {
        expect_same_tiles(s, refined.resolve(s, rank_of(s)), &refined);
        ASSERT_FALSE(testing::Test::HasFatalFailure());
      }
    }
  }
}

// A list of some of the devices only.
TEST(Refinement, ListsShorterThanTheModule) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    std::vector<int64_t> order(16);
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(&order);
    const int64_t n = std::vector<int64_t>{2, 3, 4, 6, 8}[random.below(5)];
    order.resize(n);
    const ShardingSpelling part = random_spelling(n, order, &random);
    const ShardingSpelling full = parse("{devices=[4,4]<=[16]}");
    Refined refined(16, {part, full});
    expect_same_tiles(full, refined.resolve(full, 2), &refined);
    expect_same_tiles(part, refined.resolve(part, rank_of(part)), &refined);
    EXPECT_EQ(refined.refinement.mesh()->num_devices(), 16);
  }
}

TEST(Refinement, CommonMeshes) {
  const struct {
    int64_t num_devices;
    std::vector<const char*> spellings;
    const char* mesh;
    std::vector<const char*> shardings;
  } kCases[] = {
      {8, {"{replicated}"}, "axis_0=8 ", {}},
      {8, {"{devices=[8,1]<=[8]}"}, "axis_0=8 ", {"[{axis_0}, {}]"}},
      {8,
       {"{devices=[2,4]<=[8]}", "{devices=[4,2]<=[8]}"},
       "axis_0=2 axis_1=2 axis_2=2 ",
       {"[{axis_0}, {axis_1,axis_2}]", "[{axis_0,axis_1}, {axis_2}]"}},
      {8, {"{devices=[4,2]<=[2,4]T(1,0)}"}, "axis_0=2 axis_1=4 ", {"[{axis_1}, {axis_0}]"}},
      // A list that is an iota form is one.
      {4, {"{devices=[2,2]0,2,1,3}"}, "axis_0=2 axis_1=2 ", {"[{axis_1}, {axis_0}]"}},
      // Copies may stand in any order; their axes are not cut.
      {8,
       {"{devices=[2,1,4]3,1,2,0,7,6,5,4 last_tile_dim_replicate}"},
       "axis_0=2 axis_1=4 ",
       {"[{axis_0}, {}]"}},
      {8,
       {"{devices=[1,1,2,4]<=[8] last_tile_dims={manual, replicated}}"},
       "axis_0=2 axis_1=4 ",
       {"[{}, {}] manual={axis_0}"}},
      {8,
       {"{devices=[2,2,2]<=[8] last_tile_dims={unreduced}}"},
       "axis_0=2 axis_1=2 axis_2=2 ",
       {"[{axis_0}, {axis_1}] pending=sum{axis_2}"}},
      // No common refinement: the more frequent one makes the module's mesh.
      {6,
       {"{devices=[3,2]<=[6]}", "{devices=[2,3]<=[6]}", "{devices=[2,3]<=[6]}"},
       "axis_0=2 axis_1=3 ",
       {"[{axis_0}, {axis_1}]", "[{axis_0}, {axis_1}]", "[{axis_0}, {axis_1}]"}},
      // One irregular order for all: the module's mesh has it.
      {4,
       {"{devices=[2,2]0,1,3,2}", "{devices=[2,2]0,3,1,2}", "{devices=[4,1]0,1,3,2}"},
       "axis_0=2 axis_1=2 0,1,3,2,",
       {"[{axis_0}, {axis_1}]", "[{axis_1}, {axis_0}]", "[{axis_0,axis_1}, {}]"}},
      // Copies are read in the order that the full lists make, not in one of their own.
      {4,
       {"{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}",
        "{devices=[2,1,2]1,0,2,3 last_tile_dim_replicate}",
        "{devices=[2,1,2]1,0,2,3 last_tile_dim_replicate}", "{devices=[2,2]0,1,3,2}"},
       "axis_0=2 axis_1=2 0,1,3,2,",
       {"[{axis_0}, {}]", "[{axis_0}, {}]", "[{axis_0}, {}]", "[{axis_0}, {axis_1}]"}},
      {1, {"{devices=[1,1]<=[1]}"}, "", {"[{}, {}]"}},
  };
  for (const auto& c : kCases) {
    std::vector<ShardingSpelling> spellings;
    for (const char* text : c.spellings) spellings.push_back(parse(text));
    Refined refined(c.num_devices, spellings);
    EXPECT_EQ(print_mesh(*refined.refinement.mesh()), c.mesh) << c.spellings[0];
    for (size_t i = 0; i < c.shardings.size(); ++i) {
      EXPECT_EQ(to_string(refined.resolve(spellings[i], rank_of(spellings[i]))), c.shardings[i]);
    }
  }
}

// Two orders of the same devices: axes of equal sizes, so that one permutation leads from one to
// the other.
TEST(Refinement, AnIrregularOrderSharesTheCuts) {
  const auto regular = parse("{devices=[2,2,2]<=[8]}");
  const auto irregular = parse("{devices=[2,4]0,1,3,2,4,5,6,7}");
  Refined refined(8, {regular, regular, irregular});
  EXPECT_EQ(print_mesh(refined.resolve(regular, 3).mesh()), "axis_0=2 axis_1=2 axis_2=2 ");
  EXPECT_EQ(print_mesh(refined.resolve(irregular, 2).mesh()),
            "axis_0=2 axis_1=2 axis_2=2 0,1,3,2,4,5,6,7,");
}

// A mesh of the module that does not nest with another one, and one that does.
TEST(Refinement, SeveralNamedMeshes) {
  const auto a = parse(R"(<@a, [{"x"}, {"y"}]>)"), b = parse(R"(<@b, [{"u"}, {"v"}]>)"),
             c = parse(R"(<@c, [{"p"}, {"q"}]>)");
  Refined refined(12, {a, b, c},
                  {{"a", mesh(R"(<["x"=3, "y"=4]>)")},
                   {"b", mesh(R"(<["u"=6, "v"=2]>)")},
                   {"c", mesh(R"(<["p"=4, "q"=3]>)")}});
  EXPECT_EQ(to_string(refined.resolve(a, 2)), "[{x}, {y}]");
  EXPECT_EQ(to_string(refined.resolve(b, 2)), "[{x,y:(1)2}, {y:(2)2}]");
  EXPECT_EQ(print_mesh(*refined.refinement.mesh()), "x=3 y:(1)=2 y:(2)=2 ");
  EXPECT_EQ(to_string(refined.resolve(c, 2)), "[{p}, {q}]");
  EXPECT_NE(&refined.resolve(c, 2).mesh(), refined.refinement.mesh());
}

TEST(Refinement, AnnotationsKeepWhatStandsBesideTheAxes) {
  const auto s = parse(R"(<@m, [{"x"}p1, {?}, {}]>)");
  const auto grouped = parse("{devices=[2,1,1,4]<=[8] last_tile_dim_replicate shard_like 5}");
  Refined refined(8, {s, grouped}, {{"m", mesh(R"(<["x"=2, "y"=4]>)")}});
  const Annotation a = refined.refinement.resolve(s, 3);
  EXPECT_EQ(a.open_dims, 2u);
  EXPECT_EQ(a.dim_priority, (std::vector<int>{1, 0, 0}));
  const Annotation g = refined.refinement.resolve(grouped, 3);
  EXPECT_EQ(g.sharding, a.sharding);
  EXPECT_EQ(g.open_dims, 0u);
  EXPECT_EQ(g.group, ShardingSpelling::Group::kShardLike);
  EXPECT_EQ(g.group_id, 5);
  EXPECT_EQ(refined.refinement.resolve(s, 3).group, ShardingSpelling::Group::kNone);

  const Annotation unknown = refined.refinement.resolve(parse("{unknown}"), 2);
  EXPECT_TRUE(unknown.unknown);
  EXPECT_EQ(unknown.open_dims, 3u);
  for (const char* text : {"{maximal device=3}", "{maximal_mesh[device_id=3]}"}) {
    const Annotation maximal = refined.refinement.resolve(parse(text), 2);
    EXPECT_EQ(maximal.maximal_device, 3);
    EXPECT_TRUE(maximal.sharding.is_replicated());
  }
  for (const char* text : {"{manual}", "{mesh['a'=8], manual}"}) {
    EXPECT_EQ(to_string(refined.resolve(parse(text), 1)), "[{}] manual={x,y}");
  }
  EXPECT_EQ(to_string(refined.resolve(parse("{unreduced}"), 1)), "[{}] pending=sum{x,y}");
  EXPECT_EQ(to_string(refined.resolve(parse("{mesh['a'=8], replicated}"), 0)), "[]");
}

TEST(Refinement, AMaximalMeshByName) {
  const auto s = parse("<@one, [{}]>");
  Refined refined(8, {s}, {{"one", mesh("<[], device_ids=[3]>")}});
  EXPECT_EQ(refined.refinement.resolve(s, 1).maximal_device, 3);
}

TEST(Refinement, FactorBoundariesCutAxes) {
  const struct {
    const char* mesh;
    std::vector<std::pair<int64_t, int64_t>> boundaries;
    const char* refined;
  } kCases[] = {
      {R"(<["x"=8]>)", {{4, 2}}, "x:(1)=4 x:(4)=2 "},
      {R"(<["x"=8]>)", {{16, 3}}, "x=8 "},
      {R"(<["x"=8]>)", {{1, 8}, {8, 1}, {3, 8}}, "x=8 "},
      {R"(<["x"=6]>)", {{4, 9}}, "x:(1)=2 x:(2)=3 "},
      {R"(<["x"=12]>)", {{4, 9}, {6, 2}}, "x:(1)=2 x:(2)=2 x:(4)=3 "},
      {R"(<["x"=2, "y"=8]>)", {{16, 4}}, "x=2 y=8 "},
      {R"(<["x"=2, "y"=8]>)", {{8, 4}}, "x=2 y:(1)=4 y:(4)=2 "},
      {R"(<["x"=3, "y"=8]>)", {{12, 4}}, "x=3 y:(1)=4 y:(4)=2 "},
  };
  for (const auto& c : kCases) {
    ShardingPool pool;
    const NamedMesh named = mesh(c.mesh);
    int64_t n = 1;
    for (const auto& axis : named.axes) n *= axis.second;
    MeshRefinement refinement(&pool, n, {{"m", named}});
    for (auto [major, minor] : c.boundaries) refinement.note_factor_boundary(major, minor);
    refinement.finish();
    EXPECT_EQ(print_mesh(*refinement.mesh()), c.refined);
  }
}

TEST(Refinement, UnevenSizesCutAxes) {
  const struct {
    const char* sharding;
    std::vector<int64_t> sizes;
    const char* refined;
  } kCases[] = {
      {"{devices=[4,2]<=[8]}", {8, 2}, "axis_0=4 axis_1=2 "},
      {"{devices=[4,2]<=[8]}", {6, 2}, "axis_0=2 axis_1=2 axis_2=2 "},
      {"{devices=[4,2]<=[8]}", {5, 7}, "axis_0=4 axis_1=2 "},
      {"{devices=[12]<=[12]}", {9}, "axis_0=3 axis_1=4 "},
      {"{replicated}", {6}, ""},
  };
  for (const auto& c : kCases) {
    ShardingPool pool;
    const ShardingSpelling s = parse(c.sharding);
    int64_t n = 1;
    for (int64_t tiles : s.tile_dims) n *= tiles;
    MeshRefinement refinement(&pool, n);
    refinement.note(s);
    refinement.note_sizes(s, c.sizes);
    refinement.finish();
    EXPECT_EQ(print_mesh(*refinement.mesh()), c.refined) << c.sharding;
  }
}

// Huge meshes cost nothing: no list of devices is ever made.
TEST(Refinement, AMillionDevices) {
  const auto s = parse("{devices=[1024,1024]<=[1024,1024]T(1,0)}");
  Refined refined(int64_t{1} << 20, {s});
  EXPECT_EQ(print_hlo_sharding(spell(refined.resolve(s, 2))), print_hlo_sharding(s));
  const auto far = parse("{devices=[1099511627776]<=[1099511627776]}");
  Refined huge(int64_t{1} << 40, {far});
  EXPECT_EQ(to_string(huge.resolve(far, 1)), "[{axis_0}]");
}

}  // namespace
}  // namespace gspmd
