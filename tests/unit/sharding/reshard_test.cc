// What the planner says, as a table: from, to, sizes -> steps.

#include <gtest/gtest.h>

#include "gspmd/sharding/reshard.h"
#include "reshard_simulation.h"

namespace gspmd {
namespace {

constexpr AxisId X = 0, Y = 1, Z = 2;
using ListVector = std::vector<AxisList>;

struct Row {
  const char* what;
  std::vector<int64_t> mesh;
  ListVector from, to;
  std::vector<int64_t> dims;
  const char* steps;
  int64_t wire_bytes;  // of elements of 4 bytes
  AxisSet pending = {}, still_pending = {};
};

const Row kRows[] = {
    {"nothing to do", {2, 4}, {{X}, {}}, {{X}, {}}, {8, 8}, "", 0},
    {"add an axis", {2, 4}, {{X}, {}}, {{X, Y}, {}}, {16, 8}, "slice 0 {y}", 0},
    {"add two axes to two dimensions",
     {2, 4},
     {{}, {}},
     {{Y}, {X}},
     {16, 8},
     "slice 0 {y}; slice 1 {x}",
     0},
    {"drop the last axis", {2, 4}, {{X, Y}, {}}, {{X}, {}}, {16, 8}, "all-gather 0 {y}", 3 * 64},
    {"drop all",
     {2, 4},
     {{X}, {Y}},
     {{}, {}},
     {16, 8},
     "all-gather 0 {x}; all-gather 1 {y}",
     7 * 64},
    {"drop the major axis",
     {2, 4},
     {{X, Y}, {}},
     {{Y}, {}},
     {16, 8},
     "permute to [{y,x}, {}]; all-gather 0 {x}",
     128},
    {"move an axis", {2, 4}, {{X}, {}}, {{}, {X}}, {16, 8}, "all-to-all 0->1 {x}", 128},
    {"move two axes at once",
     {2, 4},
     {{X, Y}, {}},
     {{}, {X, Y}},
     {16, 8},
     "all-to-all 0->1 {x,y}",
     56},
    {"exchange axes of equal size",
     {2, 2},
     {{X}, {Y}},
     {{Y}, {X}},
     {16, 8},
     "permute to [{y}, {x}]",
     128},
    {"exchange the order", {2, 2}, {{X, Y}}, {{Y, X}}, {16}, "permute to [{y,x}]", 16},
    {"another axis of equal size", {4, 4}, {{X}}, {{Y}}, {16}, "permute to [{y}]", 16},
    {"a larger axis: slice early, gather late",
     {2, 4},
     {{X}},
     {{Y}},
     {16},
     "slice 0 {y}; permute to [{y,x}]; all-gather 0 {x}",
     16},
    {"slice before gathering",
     {2, 4},
     {{X}, {}},
     {{}, {Y}},
     {16, 8},
     "slice 1 {y}; all-gather 0 {x}",
     64},
    {"uneven: add an axis", {2, 3}, {{X}}, {{X, Y}}, {7}, "realign 0 to 6; slice 0 {y}", 8},
    {"uneven: drop an axis", {2, 3}, {{X, Y}}, {{X}}, {7}, "all-gather 0 {y}; realign 0 to 4", 24},
    {"uneven: drop all of few elements",
     {2, 3},
     {{X}},
     {{}},
     {3},
     "all-gather 0 {x}; pad-or-trim 0 to 3",
     8},
    {"uneven: from the whole",
     {2, 3},
     {{}},
     {{X, Y}},
     {7},
     "pad-or-trim 0 to 12; slice 0 {x,y}",
     0},
    {"uneven: move an axis",
     {2, 3},
     {{Y}, {}},
     {{}, {Y}},
     {7, 5},
     "pad-or-trim 1 to 6; all-to-all 0->1 {y}; pad-or-trim 0 to 7",
     48},
    {"nearly even and large: no gather",
     {2, 4},
     {{X}},
     {{Y}},
     {1001},
     "realign 0 to 504; slice 0 {y}; permute to [{y,x}]; all-gather 0 {x}; realign 0 to 251",
     4 * (3 + 126 + 126 + 3)},
    {"pending: all-reduce", {2, 4}, {{}, {}}, {{}, {}}, {16, 8}, "all-reduce {y}", 768, {Y}},
    {"pending: reduce-scatter",
     {2, 4},
     {{}, {}},
     {{Y}, {}},
     {16, 8},
     "reduce-scatter 0 {y}",
     384,
     {Y}},
    {"pending: slice first",
     {2, 4},
     {{}, {}},
     {{X}, {}},
     {16, 8},
     "slice 0 {x}; all-reduce {y}",
     384,
     {Y}},
    {"pending: scatter below a slice",
     {2, 4},
     {{}, {}},
     {{X, Y}, {}},
     {16, 8},
     "slice 0 {x}; reduce-scatter 0 {y}",
     192,
     {Y}},
    {"pending: two axes, one scattered",
     {2, 4},
     {{}, {}},
     {{Y}, {}},
     {16, 8},
     "reduce-scatter 0 {y}; all-reduce {x}",
     384 + 128,
     {X, Y}},
    {"pending: one stays", {2, 4}, {{}, {}}, {{}, {}}, {16, 8}, "all-reduce {y}", 768, {X, Y}, {X}},
    {"pending: gather what is not split any more",
     {2, 4},
     {{X}, {}},
     {{}, {}},
     {16, 8},
     "all-reduce {y}; all-gather 0 {x}",
     384 + 256,
     {Y}},
    {"three axes rotate",
     {2, 2, 2},
     {{X}, {Y}, {Z}},
     {{Y}, {Z}, {X}},
     {8, 8, 8},
     "permute to [{y}, {z}, {x}]",
     256},
};

TEST(Reshard, NamedPlans) {
  for (const Row& row : kRows) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh* mesh = pool.add_mesh(small_mesh(row.mesh));
    Sharding from = make_sharding(&pool, mesh, row.from, row.pending);
    Sharding to = make_sharding(&pool, mesh, row.to, row.still_pending);
    const ReshardPlan& plan = planner.plan(from, to, row.dims, 32);
    EXPECT_EQ(steps_text(plan, from, to), row.steps) << row.what;
    EXPECT_EQ(plan.cost.wire_bytes, row.wire_bytes) << row.what;
    EXPECT_EQ(Simulation(from, row.dims).run(plan, to), "") << row.what;
    EXPECT_FALSE(plan.full_gather) << row.what;
    EXPECT_EQ(&plan, &planner.plan(from, to, row.dims, 32)) << "not remembered: " << row.what;
  }
}

struct CrossRow {
  const char* what;
  Mesh from_mesh, to_mesh;
  ListVector from, to;
  std::vector<int64_t> dims;
  const char* steps;
  bool full_gather;
};

TEST(Reshard, NamedPlansAcrossMeshes) {
  const Mesh a = small_mesh({2, 3}), b = small_mesh({3, 2}),
             shuffled = small_mesh({2, 3}, {3, 1, 4, 0, 5, 2});
  const CrossRow kTable[] = {
      {"one device each, same order", a, b, {{X, Y}}, {{X, Y}}, {12}, "rename to [{#0,#1}]", false},
      {"slice to one shard for each device",
       a,
       b,
       {{X}},
       {{X, Y}},
       {12},
       "slice 0 {y}; rename to [{#0,#1}]",
       false},
      {"another device order",
       a,
       shuffled,
       {{X, Y}, {}},
       {{X, Y}, {}},
       {12, 2},
       "cross-mesh to [{#0,#1}, {}]",
       false},
      {"another device order, sliced first",
       a,
       shuffled,
       {{X}, {}},
       {{X, Y}, {}},
       {12, 2},
       "slice 0 {y}; cross-mesh to [{#0,#1}, {}]",
       false},
      {"2 over 6 to 3 over 6",
       a,
       b,
       {{X}},
       {{X}},
       {12},
       "slice 0 {y}; rename to [{#0,#1}]; all-gather 0 {y}",
       false},
      {"two dimensions, 2x3 to 3x2",
       a,
       b,
       {{X}, {Y}},
       {{X}, {Y}},
       {12, 12},
       "all-to-all 1->0 {y}; rename to [{#0,#1}, {}]; all-to-all 0->1 {y}",
       false},
      {"replicated stays", a, b, {{}}, {{X}}, {12}, "rename to [{}]; slice 0 {x}", false},
  };
  for (const CrossRow& row : kTable) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    Sharding from = make_sharding(&pool, pool.add_mesh(row.from_mesh), row.from);
    Sharding to = make_sharding(&pool, pool.add_mesh(row.to_mesh), row.to);
    const ReshardPlan& plan = planner.plan(from, to, row.dims, 32);
    EXPECT_EQ(steps_text(plan, from, to), row.steps) << row.what << " " << plan.cost.wire_bytes;
    EXPECT_EQ(plan.full_gather, row.full_gather) << row.what;
    EXPECT_EQ(Simulation(from, row.dims).run(plan, to), "") << row.what;
  }
}

// Of 8 elements over 3 the last shard has 2, and slices of 8 over 6 do not nest: to gather is the
// cheapest.
TEST(Reshard, FullGatherIsReported) {
  ShardingPool pool;
  ReshardPlanner planner(&pool);
  const Mesh* mesh = pool.add_mesh(small_mesh({2, 3}));
  Sharding from = make_sharding(&pool, mesh, {{Y}}), to = make_sharding(&pool, mesh, {{X}});
  const ReshardPlan& plan = planner.plan(from, to, {{8}}, 32);
  EXPECT_EQ(steps_text(plan, from, to), "all-gather 0 {y}; pad-or-trim 0 to 8; slice 0 {x}");
  EXPECT_TRUE(plan.full_gather);
  EXPECT_FALSE(planner.plan(from, to, {{1200}}, 32).full_gather);
}

// 65,536 devices: nothing in a plan is longer for it.
TEST(Reshard, LargeMeshes) {
  ShardingPool pool;
  ReshardPlanner planner(&pool);
  const Mesh* mesh = pool.add_mesh(small_mesh({256, 256}));
  Sharding from = make_sharding(&pool, mesh, {{X, Y}, {}}),
           to = make_sharding(&pool, mesh, {{X}, {Y}});
  const ReshardPlan& even = planner.plan(from, to, {{1 << 20, 1 << 10}}, 16);
  EXPECT_EQ(steps_text(even, from, to), "all-to-all 0->1 {y}");
  const ReshardPlan& uneven = planner.plan(from, to, {{100000, 1000}}, 16);
  EXPECT_EQ(steps_text(uneven, from, to),
            "pad-or-trim 1 to 1024; all-to-all 0->1 {y}; realign 0 to 391");
  EXPECT_LE(uneven.cost.wire_bytes, 2 * (512 * 4 + 3 * 391 * 4));
}

// A plan's cost is that of its steps, and steps_cost agrees with the figures of a ring.
TEST(Reshard, CostOfSteps) {
  const Mesh mesh = small_mesh({2, 4});
  std::vector<DimLayout> layouts = {{{X}, 8}, {{Y}, 4}};
  const std::vector<int64_t> dims = {16, 16};
  auto wire = [&](StepKind kind, int d, int e, AxisList axes, int64_t block = 0) {
    ReshardStep step;
    step.kind = kind;
    step.dim = d;
    step.to_dim = e;
    step.axes = axes;
    step.block = block;
    if (kind == StepKind::kPermute) step.lists_after = {{X}, {Y}};
    return step_cost(step, mesh, layouts, dims, 32).wire_bytes;
  };
  EXPECT_EQ(wire(StepKind::kAllGather, 1, -1, {Y}), 3 * 128);
  EXPECT_EQ(wire(StepKind::kAllToAll, 1, 0, {Y}), 96);
  EXPECT_EQ(wire(StepKind::kAllReduce, -1, -1, {Y}), 192);
  EXPECT_EQ(wire(StepKind::kReduceScatter, 0, -1, {Y}), 96);
  EXPECT_EQ(wire(StepKind::kPermute, -1, -1, {}), 128);
  EXPECT_EQ(wire(StepKind::kSlice, 0, -1, {X}), 0);
  EXPECT_EQ(wire(StepKind::kRealign, 0, -1, {}, 12), 4 * 4 * 4);
}

// A scalar can only be pending; a dimension without elements has blocks of none.
TEST(Reshard, ScalarsAndEmptyArrays) {
  ShardingPool pool;
  ReshardPlanner planner(&pool);
  const Mesh* mesh = pool.add_mesh(small_mesh({2, 4}));
  Sharding partial = make_sharding(&pool, mesh, {}, {X, Y}), sum = make_sharding(&pool, mesh, {});
  EXPECT_EQ(steps_text(planner.plan(partial, sum, {}, 32), partial, sum), "all-reduce {x,y}");
  EXPECT_EQ(planner.plan(partial, sum, {}, 32).cost.wire_bytes, 7);  // 2 * 7/8 of 4 bytes
  for (const auto& a : all_placements(*mesh, 2)) {
    for (const auto& b : all_placements(*mesh, 2)) {
      Sharding from = make_sharding(&pool, mesh, a), to = make_sharding(&pool, mesh, b);
      const ReshardPlan& plan = planner.plan(from, to, {{0, 5}}, 32);
      EXPECT_EQ(Simulation(from, {{0, 5}}).run(plan, to), "");
      EXPECT_EQ(plan.cost.wire_bytes, 0);
    }
  }
}

// Elements of 4 bits are counted in whole bytes of each local value.
TEST(Reshard, NarrowElements) {
  ShardingPool pool;
  ReshardPlanner planner(&pool);
  const Mesh* mesh = pool.add_mesh(small_mesh({2}));
  Sharding from = make_sharding(&pool, mesh, {{X}}), to = make_sharding(&pool, mesh, {{}});
  EXPECT_EQ(planner.plan(from, to, {{6}}, 4).cost.wire_bytes, 2);
}

// A complete value becomes pending by standing on one shard of the axes.
TEST(Reshard, MakesPending) {
  ShardingPool pool;
  ReshardPlanner planner(&pool);
  const Mesh* mesh = pool.add_mesh(small_mesh({2, 4}));
  Sharding from = make_sharding(&pool, mesh, {{X}, {}}),
           pending_x = make_sharding(&pool, mesh, {{}, {}}, {X}),
           pending_xy = make_sharding(&pool, mesh, {{}, {}}, {X, Y});
  const auto steps = [&](Sharding a, Sharding b) {
    return steps_text(planner.plan(a, b, {{16, 8}}, 32), a, b);
  };
  EXPECT_EQ(steps(from, pending_x), "all-gather 0 {x}; make pending {x}");
  EXPECT_EQ(steps(pending_x, pending_xy), "make pending {y}");
  EXPECT_EQ(planner.plan(pending_x, pending_xy, {{16, 8}}, 32).cost.wire_bytes, 0);
}

TEST(Reshard, ManualAxesAndRefusals) {
  ShardingPool pool;
  ReshardPlanner planner(&pool);
  const Mesh* mesh = pool.add_mesh(small_mesh({2, 4}));
  auto manual = [&](ListVector lists, AxisSet axes) {
    ShardingData data;
    data.mesh = mesh;
    data.dims.assign(lists.begin(), lists.end());
    data.manual = axes;
    return pool.intern(data);
  };
  Sharding from = manual({{Y}, {}}, {X}), to = manual({{}, {Y}}, {X});
  EXPECT_EQ(steps_text(planner.plan(from, to, {{8, 8}}, 32), from, to), "all-to-all 0->1 {y}");
  EXPECT_THROW(planner.plan(from, manual({{}, {Y}}, {}), {{8, 8}}, 32), InternalError);
}

}  // namespace
}  // namespace gspmd
