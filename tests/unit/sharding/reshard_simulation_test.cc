// Plans run on real data: every device must end with the right elements, whatever stands in the
// padding.

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "reshard_simulation.h"

namespace gspmd {
namespace {

void expect_right(ReshardPlanner* planner, Sharding from, Sharding to, std::vector<int64_t> dims) {
  const ReshardPlan& plan = planner->plan(from, to, dims, 32);
  std::string fault = Simulation(from, dims).run(plan, to);
  ASSERT_EQ(fault, "") << to_string(from) << " to " << to_string(to) << " of ["
                       << testing::PrintToString(dims) << "]: " << steps_text(plan, from, to);
}

int64_t size_up_to(int64_t n, std::mt19937& random) {
  return 1 + static_cast<int64_t>(random() % n);
}

const std::vector<std::vector<int64_t>> kMeshes = {{2, 3}, {3, 2}, {2, 2, 2}, {4, 3}, {2, 4}, {8}};

std::vector<int64_t> shuffled_devices(int64_t n, uint32_t seed) {
  std::vector<int64_t> devices(n);
  std::iota(devices.begin(), devices.end(), 0);
  std::shuffle(devices.begin(), devices.end(), std::mt19937(seed));
  return devices;
}

TEST(ReshardSimulation, OneDimensionOfEverySize) {
  for (const auto& sizes : kMeshes) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh* mesh = pool.add_mesh(small_mesh(sizes));
    auto placements = all_placements(*mesh, 1);
    for (const auto& a : placements) {
      for (const auto& b : placements) {
        Sharding from = make_sharding(&pool, mesh, a), to = make_sharding(&pool, mesh, b);
        for (int64_t size = 1; size <= 40; ++size) {
          expect_right(&planner, from, to, {size});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Every pair of placements on two dimensions; sizes taken in turn so that all are met.
TEST(ReshardSimulation, TwoDimensions) {
  for (const auto& sizes : kMeshes) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    int64_t devices = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    const Mesh* mesh = pool.add_mesh(small_mesh(sizes, shuffled_devices(devices, 7)));
    auto placements = all_placements(*mesh, 2);
    int64_t turn = 0;
    for (const auto& a : placements) {
      for (const auto& b : placements) {
        Sharding from = make_sharding(&pool, mesh, a), to = make_sharding(&pool, mesh, b);
        for (int k = 0; k < 4; ++k, ++turn) {
          expect_right(&planner, from, to, {1 + turn % 40, 1 + (turn / 7) % 13});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(ReshardSimulation, ThreeDimensionsSampled) {
  std::mt19937 random(3);
  for (const auto& sizes : kMeshes) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh* mesh = pool.add_mesh(small_mesh(sizes));
    auto placements = all_placements(*mesh, 3);
    for (int round = 0; round < 1500; ++round) {
      Sharding from = make_sharding(&pool, mesh, placements[random() % placements.size()]);
      Sharding to = make_sharding(&pool, mesh, placements[random() % placements.size()]);
      expect_right(&planner, from, to,
                   {size_up_to(9, random), size_up_to(8, random), size_up_to(7, random)});
      if (HasFatalFailure()) return;
    }
  }
}

// So many axes that the search takes neighbours together, or stops early.
TEST(ReshardSimulation, ManyAxes) {
  std::mt19937 random(6);
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{2, 2, 2, 2, 2}, {2, 3, 2, 2, 2}}) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh* mesh = pool.add_mesh(small_mesh(sizes));
    auto placements = all_placements(*mesh, 2);
    for (int round = 0; round < 500; ++round) {
      const auto& a = placements[random() % placements.size()];
      AxisSet unused = mesh->all_axes() - a[0].set() - a[1].set();
      Sharding from = make_sharding(&pool, mesh, a, unused & AxisSet::from_bits(random()));
      Sharding to = make_sharding(&pool, mesh, placements[random() % placements.size()]);
      expect_right(&planner, from, to, {size_up_to(40, random), size_up_to(9, random)});
      if (HasFatalFailure()) return;
    }
  }
}

// Pending axes are resolved, all or some, into any placement.
TEST(ReshardSimulation, PendingValues) {
  std::mt19937 random(4);
  for (const auto& sizes : kMeshes) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh* mesh = pool.add_mesh(small_mesh(sizes));
    auto placements = all_placements(*mesh, 2);
    for (int round = 0; round < 3000; ++round) {
      const auto& a = placements[random() % placements.size()];
      const auto& b = placements[random() % placements.size()];
      AxisSet unused = mesh->all_axes() - a[0].set() - a[1].set();
      AxisSet pending = unused & AxisSet::from_bits(random());
      AxisSet stays = (pending & AxisSet::from_bits(random())) - b[0].set() - b[1].set();
      Sharding from = make_sharding(&pool, mesh, a, pending),
               to = make_sharding(&pool, mesh, b, stays);
      expect_right(&planner, from, to, {size_up_to(40, random), size_up_to(9, random)});
      if (HasFatalFailure()) return;
    }
  }
}

// Meshes without a common refinement, and one mesh with two device orders.
TEST(ReshardSimulation, BetweenMeshes) {
  std::mt19937 random(5);
  const std::vector<std::pair<Mesh, Mesh>> kPairs = {
      {small_mesh({2, 3}), small_mesh({3, 2})},
      {small_mesh({2, 3}), small_mesh({2, 3}, {3, 1, 4, 0, 5, 2})},
      {small_mesh({2, 3}, {5, 1, 0, 4, 2, 3}), small_mesh({3, 2}, {3, 1, 4, 0, 5, 2})},
      {small_mesh({4, 3}), small_mesh({2, 3, 2})},
      {small_mesh({12}), small_mesh({3, 4})},
      {small_mesh({2, 2, 2}), small_mesh({8}, {7, 0, 3, 4, 5, 1, 2, 6})},
  };
  for (const auto& [a, b] : kPairs) {
    ShardingPool pool;
    ReshardPlanner planner(&pool);
    const Mesh *mesh_a = pool.add_mesh(a), *mesh_b = pool.add_mesh(b);
    auto placements_a = all_placements(a, 2), placements_b = all_placements(b, 2);
    for (int round = 0; round < 400; ++round) {
      const auto& lists = placements_a[random() % placements_a.size()];
      AxisSet unused = mesh_a->all_axes() - lists[0].set() - lists[1].set();
      AxisSet pending = unused & AxisSet::from_bits(random() & random());
      Sharding from = make_sharding(&pool, mesh_a, lists, pending);
      Sharding to = make_sharding(&pool, mesh_b, placements_b[random() % placements_b.size()]);
      std::vector<int64_t> dims = {size_up_to(40, random), size_up_to(9, random)};
      expect_right(&planner, from, to, dims);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace gspmd
