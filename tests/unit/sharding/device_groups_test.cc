#include "gspmd/sharding/device_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "gspmd/base/check.h"
#include "tests/unit/sharding/brute_force.h"

namespace gspmd {
namespace {

Mesh mesh_of(const std::vector<int64_t>& sizes, std::vector<int64_t> table = {}) {
  std::vector<Mesh::Axis> axes;
  for (size_t a = 0; a < sizes.size(); ++a) {
    axes.push_back({std::string(1, static_cast<char>('u' + a)), sizes[a], 1, sizes[a]});
  }
  return Mesh(std::move(axes), std::move(table));
}

// Calls f(axes) for every ordered choice of axes.
template <typename F>
void for_each_axis_list(const Mesh& mesh, F f) {
  std::vector<int> order(mesh.num_axes());
  std::iota(order.begin(), order.end(), 0);
  do {
    for (int used = 0; used <= mesh.num_axes(); ++used) {
      AxisList axes;
      for (int i = 0; i < used; ++i) axes.push_back(static_cast<AxisId>(order[i]));
      f(axes);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

std::vector<std::vector<int64_t>> groups_by_definition(const Mesh& mesh, const AxisList& axes) {
  std::map<int64_t, std::map<int64_t, int64_t>> groups;  // rest -> number along axes -> device
  for (int64_t position = 0; position < mesh.num_devices(); ++position) {
    int64_t number = 0;
    for (AxisId a : axes)
      number = number * mesh.size(a) + brute_force::coordinate(mesh, position, a);
    const int64_t rest = brute_force::number_along(mesh, position, mesh.all_axes() - axes.set());
    groups[rest][number] = brute_force::device(mesh, position);
  }
  std::vector<std::vector<int64_t>> rows;
  for (const auto& [rest, row] : groups) {
    rows.emplace_back();
    for (const auto& [number, device] : row) rows.back().push_back(device);
  }
  return rows;
}

TEST(DeviceGroups, EveryAxisListByDefinition) {
  const std::vector<Mesh> meshes = {mesh_of({2}),
                                    mesh_of({2, 4}),
                                    mesh_of({3, 2}),
                                    mesh_of({2, 2, 2}),
                                    mesh_of({4, 3, 2}),
                                    mesh_of({2, 3, 2, 2}),
                                    mesh_of({2, 2}, {0, 1, 3, 2}),
                                    mesh_of({2, 3}, {5, 0, 4, 1, 3, 2}),
                                    mesh_of({2, 2}, {7, 5, 4, 6})};
  for (const Mesh& mesh : meshes) {
    for_each_axis_list(mesh, [&](const AxisList& axes) {
      const DeviceGroups groups = groups_along(mesh, axes);
      const auto expected = groups_by_definition(mesh, axes);
      EXPECT_EQ(expand(groups, mesh.num_devices()), expected) << print_replica_groups(groups);
      EXPECT_EQ(groups.group_size, mesh.product(axes));
      // No more dimensions than it takes: no two that stay neighbours, no ones.
      for (size_t i = 0; i + 1 < groups.ids.perm.size(); ++i) {
        EXPECT_NE(groups.ids.perm[i] + 1, groups.ids.perm[i + 1]) << print_replica_groups(groups);
      }
      EXPECT_TRUE(mesh.has_device_table() || groups.ids.is_iota());
      const std::string text = print_replica_groups(groups);
      size_t position = 0;
      EXPECT_EQ(parse_replica_groups(text, &position), groups) << text;
      EXPECT_EQ(position, text.size());
    });
  }
}

TEST(DeviceGroups, Prints) {
  const Mesh x2y4 = mesh_of({2, 4}), x2y2z2 = mesh_of({2, 2, 2});
  EXPECT_EQ(print_replica_groups(groups_along(x2y4, {0})), "[4,2]<=[2,4]T(1,0)");
  EXPECT_EQ(print_replica_groups(groups_along(x2y4, {1})), "[2,4]<=[8]");
  EXPECT_EQ(print_replica_groups(groups_along(x2y4, {0, 1})), "[1,8]<=[8]");
  EXPECT_EQ(print_replica_groups(groups_along(x2y4, {1, 0})), "[1,8]<=[2,4]T(1,0)");
  EXPECT_EQ(print_replica_groups(groups_along(x2y4, {})), "[8,1]<=[8]");
  EXPECT_EQ(print_replica_groups(groups_along(x2y2z2, {1, 2})), "[2,4]<=[8]");
  EXPECT_EQ(print_replica_groups(groups_along(x2y2z2, {0, 2})), "[2,4]<=[2,2,2]T(1,0,2)");
  EXPECT_EQ(print_replica_groups(groups_along(mesh_of({2, 2}, {0, 1, 3, 2}), {0})),
            "{{0,3},{1,2}}");
  // A table may still give regular groups.
  EXPECT_EQ(print_replica_groups(groups_along(mesh_of({2, 2}, {0, 1, 3, 2}), {})),
            "{{0},{1},{3},{2}}");
}

TEST(DeviceGroups, ReadsEveryForm) {
  const struct {
    const char* text;
    std::vector<std::vector<int64_t>> rows;
  } kCases[] = {
      {"{}", {{0, 1, 2, 3, 4, 5, 6, 7}}},
      {"{{0,1},{2,3}}", {{0, 1}, {2, 3}}},
      {"{{0,1,2,3},{4,5,6,7}}", {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {"[2,4]<=[8]", {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {"[2,4]<=[4,2]T(1,0)", {{0, 2, 4, 6}, {1, 3, 5, 7}}},
      {"mesh['a'=4,'b'=2] {'a'}", {{0, 2, 4, 6}, {1, 3, 5, 7}}},
      {"mesh['a'=4,'b'=2] {'b'}", {{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
      {"mesh['a'=4,'b'=2] {'b','a'}", {{0, 2, 4, 6, 1, 3, 5, 7}}},
      {"mesh['a'=4,'b'=2] {'a':(2)2,'b'}", {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {"mesh['a'=4,'b'=2] {'a':(1)2}", {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
      {"mesh['a'=8] {'a':(2)2}", {{0, 2}, {1, 3}, {4, 6}, {5, 7}}},
      {"mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}", {{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
      {"mesh['axis_0'=4,'axis_1'=2], device_ids=([2,4]T(1,0)) {'axis_0'}",
       {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {"mesh['a'=2,'b'=2], device_ids=(0,1,3,2) {'a'}", {{0, 3}, {1, 2}}},
      {"mesh['a'=4,'b'=2] {}", {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}},
  };
  for (const auto& c : kCases) {
    size_t position = 0;
    const DeviceGroups groups = parse_replica_groups(c.text, &position);
    EXPECT_EQ(position, std::string_view(c.text).size());
    EXPECT_EQ(expand(groups, 8), c.rows) << c.text;
    EXPECT_EQ(print_replica_groups(groups), c.text);
  }
}

TEST(DeviceGroups, ErrorsSayWhereAndWhat) {
  const struct {
    const char* text;
    const char* at;
    const char* message;
  } kCases[] = {
      {"{{0,1},{2}}", "{2}", "a group of 1 devices after groups of 2"},
      {"{{0,1},{}}", "{}", "a group of 0 devices"},
      {"{{}}", "{}}", "an empty group"},
      {"{{0,1},{1,2}}", "1,2", "device 1 stands twice"},
      {"[2,4]<=[16]", "[2,4]", "2 groups of 4 for 16 devices"},
      {"[2]<=[2]", "[2]", "expected the number of groups"},
      {"[4294967296,4294967296]<=[2]", "[42", "for 2 devices"},
      {"mesh['a'=2] {'b'}", "'b'", "no axis"},
      {"mesh['a'=2] {'a','a'}", "'a'}", "used twice"},
      {"foo", "foo", "expected replica groups"},
  };
  for (const auto& c : kCases) {
    size_t position = 0;
    try {
      parse_replica_groups(c.text, &position);
      ADD_FAILURE() << "accepted: " << c.text;
    } catch (const SpellingError& error) {
      EXPECT_THAT(error.message, testing::HasSubstr(c.message));
      EXPECT_THAT(std::string(c.text + error.offset), testing::StartsWith(c.at)) << c.text;
    }
  }
}

// The place of a position in the row of its group, by the definition.
std::map<int64_t, std::pair<int64_t, int64_t>> place_in_group(
    const std::vector<std::vector<int64_t>>& rows) {
  std::map<int64_t, std::pair<int64_t, int64_t>> places;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < rows[row].size(); ++i) places[rows[row][i]] = {row, i};
  }
  return places;
}

TEST(DevicePermutation, ShiftsMoveWithinTheirGroup) {
  for (const Mesh& mesh :
       {mesh_of({2, 4}), mesh_of({3, 2, 2}), mesh_of({2, 3}, {5, 0, 4, 1, 3, 2})}) {
    for_each_axis_list(mesh, [&](const AxisList& axes) {
      const auto rows = groups_by_definition(mesh, axes);
      const int64_t n = mesh.product(axes);
      for (int64_t shift = -n; shift <= n; ++shift) {
        for (bool wrap : {false, true}) {
          DevicePermutation p;
          p.axes = axes;
          p.shift = shift;
          p.wrap = wrap;
          std::vector<std::pair<int64_t, int64_t>> expected;
          for (const auto& row : rows) {
            for (int64_t i = 0; i < n; ++i) {
              int64_t target = i + shift;
              if (wrap) target = (target + 2 * n) % n;
              if (target >= 0 && target < n) expected.emplace_back(row[i], row[target]);
            }
          }
          EXPECT_THAT(expand(p, mesh), testing::UnorderedElementsAreArray(expected));
        }
      }
    });
  }
}

TEST(DevicePermutation, ReversesCountFromTheEnd) {
  for (const Mesh& mesh : {mesh_of({2, 4}), mesh_of({3, 2}, {5, 0, 4, 1, 3, 2})}) {
    for_each_axis_list(mesh, [&](const AxisList& axes) {
      DevicePermutation p;
      p.kind = DevicePermutation::Kind::kReverse;
      p.axes = axes;
      std::vector<std::pair<int64_t, int64_t>> expected;
      for (auto row : groups_by_definition(mesh, axes)) {
        for (size_t i = 0; i < row.size(); ++i)
          expected.emplace_back(row[i], row[row.size() - 1 - i]);
      }
      EXPECT_THAT(expand(p, mesh), testing::UnorderedElementsAreArray(expected));
    });
  }
}

TEST(DevicePermutation, RemapsTakeTheDigitsAlong) {
  for (const Mesh& mesh : {mesh_of({2, 2}), mesh_of({2, 3, 2}), mesh_of({2, 2}, {0, 1, 3, 2})}) {
    for_each_axis_list(mesh, [&](const AxisList& from) {
      for_each_axis_list(mesh, [&](const AxisList& to) {
        DevicePermutation p;
        p.kind = DevicePermutation::Kind::kRemap;
        p.from = from;
        p.to = to;
        if (from.set() != to.set()) {
          EXPECT_THROW(expand(p, mesh), InternalError);
          return;
        }
        // A device goes to where the group along `to` has it at its place along `from`.
        const auto sources = place_in_group(groups_by_definition(mesh, from));
        const auto targets = groups_by_definition(mesh, to);
        const auto pairs = expand(p, mesh);
        EXPECT_EQ(pairs.size(), static_cast<size_t>(mesh.num_devices()));
        for (auto [source, target] : pairs) {
          const auto [row, i] = sources.at(source);
          EXPECT_EQ(targets[row][i], target);
        }
      });
    });
  }
}

}  // namespace
}  // namespace gspmd
