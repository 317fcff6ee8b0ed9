#include "gspmd/sharding/sharding.h"

#include <gtest/gtest.h>

#include "gspmd/base/check.h"
#include "tests/unit/sharding/brute_force.h"

namespace gspmd {
namespace {

Mesh mesh_of(const std::vector<int64_t>& sizes) {
  std::vector<Mesh::Axis> axes;
  for (size_t a = 0; a < sizes.size(); ++a) {
    axes.push_back({std::string(1, static_cast<char>('x' + a)), sizes[a], 1, sizes[a]});
  }
  return Mesh(std::move(axes));
}

Sharding make(ShardingPool* pool, const Mesh* mesh, std::vector<AxisList> dims) {
  ShardingData data;
  data.mesh = mesh;
  data.dims.assign(dims.begin(), dims.end());
  return pool->intern(data);
}

TEST(Mesh, StridesArePositions) {
  const Mesh mesh = mesh_of({2, 3, 4});
  EXPECT_EQ(mesh.num_devices(), 24);
  for (int64_t position = 0; position < 24; ++position) {
    for (AxisId a = 0; a < 3; ++a) {
      EXPECT_EQ(position / mesh.stride(a) % mesh.size(a),
                brute_force::coordinate(mesh, position, a));
    }
  }
  EXPECT_EQ(Mesh().num_devices(), 1);
}

TEST(ShardingPool, EqualShardingsAreOnePointer) {
  ShardingPool pool;
  const Mesh* mesh = pool.add_mesh(mesh_of({2, 4}));
  EXPECT_EQ(pool.add_mesh(mesh_of({2, 4})), mesh);
  EXPECT_NE(pool.add_mesh(mesh_of({4, 2})), mesh);
  const Sharding a = make(&pool, mesh, {{0}, {1}});
  EXPECT_EQ(make(&pool, mesh, {{0}, {1}}), a);
  EXPECT_NE(make(&pool, mesh, {{1}, {0}}), a);
  EXPECT_EQ(pool.replicated(mesh, 2), make(&pool, mesh, {{}, {}}));
  EXPECT_NE(pool.replicated(mesh, 2), pool.replicated(mesh, 3));
  for (int i = 0; i < 1000; ++i) pool.replicated(mesh, i % 50);  // earlier ones stay where they are
  EXPECT_EQ(make(&pool, mesh, {{0}, {1}}), a);
  ShardingPool moved = std::move(pool);
  EXPECT_EQ(make(&moved, mesh, {{0}, {1}}), a);
}

TEST(ShardingPool, RefusesWhatIsNoSharding) {
  ShardingPool pool;
  const Mesh* mesh = pool.add_mesh(mesh_of({2, 4}));
  EXPECT_THROW(make(&pool, mesh, {{0}, {0}}), InternalError);
  EXPECT_THROW(make(&pool, mesh, {{0, 0}}), InternalError);
  EXPECT_THROW(make(&pool, mesh, {{2}}), InternalError);
  ShardingData data;
  data.mesh = mesh;
  data.dims = {{0}};
  data.pending = {1};
  EXPECT_THROW(pool.intern(data), InternalError);  // without a combiner
  data.combiner = Combiner::kSum;
  EXPECT_TRUE(pool.intern(data));
  data.manual = {1};
  EXPECT_THROW(pool.intern(data), InternalError);
}

TEST(Sharding, Prints) {
  ShardingPool pool;
  const Mesh* mesh =
      pool.add_mesh(Mesh({{"x", 2, 1, 2}, {"y", 2, 1, 4}, {"y", 2, 2, 4}, {"z", 3, 1, 3}}));
  EXPECT_EQ(to_string(Sharding()), "none");
  EXPECT_EQ(to_string(make(&pool, mesh, {{0}, {}, {1, 2}})), "[{x}, {}, {y}]");
  EXPECT_EQ(to_string(make(&pool, mesh, {{2, 1}, {3, 0}})), "[{y:(2)2,y:(1)2}, {z,x}]");
  ShardingData data;
  data.mesh = mesh;
  data.dims = {{1}};
  data.manual = {0};
  data.replicated = {2};
  data.pending = {3};
  data.combiner = Combiner::kMax;
  EXPECT_EQ(to_string(pool.intern(data)),
            "[{y:(1)2}] replicated={y:(2)2} manual={x} pending=max{z}");
}

TEST(Sharding, Refines) {
  ShardingPool pool;
  const Mesh* mesh = pool.add_mesh(mesh_of({2, 4, 3}));
  const Mesh* other = pool.add_mesh(mesh_of({4, 2, 3}));
  const Sharding none = pool.replicated(mesh, 2), x = make(&pool, mesh, {{0}, {}}),
                 xy = make(&pool, mesh, {{0, 1}, {}}), yx = make(&pool, mesh, {{1, 0}, {}}),
                 x_z = make(&pool, mesh, {{0}, {2}});
  EXPECT_TRUE(refines(x, none) && refines(xy, x) && refines(x_z, x) && refines(x, x));
  EXPECT_FALSE(refines(none, x) || refines(x, xy) || refines(yx, x) || refines(x_z, xy));
  EXPECT_TRUE(refines(x, pool.replicated(other, 2)));
  EXPECT_FALSE(refines(make(&pool, other, {{0, 1}, {}}), x));
  EXPECT_FALSE(refines(x, pool.replicated(mesh, 3)));
  ShardingData pending = *x;
  pending.pending = {2};
  pending.combiner = Combiner::kSum;
  EXPECT_FALSE(refines(pool.intern(pending), x) || refines(x, pool.intern(pending)));
}

// All sizes 1-40 over up to three axes in any order: every element has exactly one owner among the
// devices that differ only in the axes of its dimension, each local block is as long as the longest
// shard, and the offsets are 0, b, 2b, ...
TEST(Sharding, BlocksCoverEachDimensionOnce) {
  for (const auto& sizes : std::vector<std::vector<int64_t>>{
           {2}, {3}, {8}, {2, 3}, {3, 2}, {2, 4}, {2, 2, 2}, {4, 3, 2}}) {
    ShardingPool pool;
    const Mesh* mesh = pool.add_mesh(mesh_of(sizes));
    std::vector<AxisId> order(sizes.size());
    for (size_t a = 0; a < order.size(); ++a) order[a] = static_cast<AxisId>(a);
    do {
      for (size_t used = 0; used <= order.size(); ++used) {
        AxisList axes;
        for (size_t i = 0; i < used; ++i) axes.push_back(order[i]);
        const Sharding s = make(&pool, mesh, {axes, {}});
        const auto tiles = brute_force::tiles(s);
        for (int64_t size = 1; size <= 40; ++size) {
          const DimVector local = s.local_dims({size, 5});
          std::vector<int64_t> owners(size, 0);
          int64_t longest = 0;
          for (const auto& [device, tile] : tiles) {
            int64_t length = 0;
            for (int64_t i = 0; i < local[0]; ++i) {
              const int64_t element = tile.index[0] * local[0] + i;
              if (element < size) ++owners[element], ++length;
            }
            longest = std::max(longest, length);
          }
          const int64_t copies = mesh->num_devices() / s.shards(0);
          ASSERT_EQ(owners, std::vector<int64_t>(size, copies)) << to_string(s) << " of " << size;
          ASSERT_EQ(longest, local[0]);
          ASSERT_EQ(local[1], 5);
          ASSERT_EQ(s.splits_evenly({size, 5}), local[0] * s.shards(0) == size);
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(Sharding, IsReplicated) {
  ShardingPool pool;
  const Mesh* mesh = pool.add_mesh(mesh_of({2, 4}));
  EXPECT_TRUE(pool.replicated(mesh, 2).is_replicated());
  EXPECT_FALSE(make(&pool, mesh, {{1}}).is_replicated());
  ShardingData data = *pool.replicated(mesh, 1);
  data.replicated = {0};
  EXPECT_TRUE(pool.intern(data).is_replicated());
  data.manual = {1};
  EXPECT_FALSE(pool.intern(data).is_replicated());
}

}  // namespace
}  // namespace gspmd
