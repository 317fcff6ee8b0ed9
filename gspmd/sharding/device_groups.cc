#include "gspmd/sharding/device_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gspmd/base/check.h"
#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {
namespace {

// {{0,1},{2,3}}: rows of equal length.
DeviceGroups read_lists(SpellingReader* reader) {
  DeviceGroups groups;
  std::vector<size_t> offsets;
  reader->list("{", "}", [&] {
    const size_t at = reader->position();
    const size_t before = groups.ids.ids.size();
    reader->list("{", "}", [&] {
      offsets.push_back(reader->position());
      groups.ids.ids.push_back(reader->integer());
    });
    const int64_t size = static_cast<int64_t>(groups.ids.ids.size() - before);
    if (groups.num_groups == 0) groups.group_size = size;
    if (size != groups.group_size) {
      reader->fail(at,
                   fmt::format("a group of {} devices after groups of {}", size, groups.group_size),
                   "all groups of a collective have the same number of devices");
    }
    if (size == 0) reader->fail(at, "an empty group", "write {} for one group of all devices");
    ++groups.num_groups;
  });
  check_ids(*reader, groups.ids.ids, offsets);
  return groups;
}

// [2,4]<=[4,2]T(1,0)
DeviceGroups read_iota_groups(SpellingReader* reader) {
  const size_t at = reader->position();
  const std::vector<int64_t> sizes = reader->integers("[", "]");
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1) {
    reader->fail(at, "expected the number of groups and their size", "as in [2,4]<=[8]");
  }
  DeviceGroups groups{.num_groups = sizes[0], .group_size = sizes[1], .ids = {}, .mesh_form = ""};
  reader->take("<=");
  groups.ids = read_iota(reader);
  const auto product = checked_product(sizes);
  if (!product || *product != groups.ids.size()) {
    reader->fail(
        at, fmt::format("{} groups of {} for {} devices", sizes[0], sizes[1], groups.ids.size()),
        "the two numbers multiply to the number of devices");
  }
  return groups;
}

// The digits of all places of the mesh: first what `axes` leave out, major to minor, then `axes` in
// their order.
std::vector<Piece> digits_of_axes(const SpellingReader& reader, size_t at, const NamedMesh& mesh,
                                  const std::vector<NamedAxis>& axes) {
  std::vector<Piece> rest, chosen(axes.size());
  int64_t stride = 1;
  for (size_t m = mesh.axes.size(); m-- > 0;) {
    const auto& [name, size] = mesh.axes[m];
    // Parts of this axis, minor to major, with what lies between them.
    std::vector<size_t> parts;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].name == name) parts.push_back(i);
    }
    std::sort(parts.begin(), parts.end(),
              [&](size_t a, size_t b) { return axes[a].pre > axes[b].pre; });
    int64_t open_end = size;  // pre*size of what is not yet assigned
    for (size_t i : parts) {
      const int64_t part = axes[i].size == 0 ? size : axes[i].size;
      const int64_t end = axes[i].pre * part;
      if (open_end % end != 0) reader.fail(at, "parts of an axis that do not nest");
      if (open_end > end) rest.push_back({stride * (size / open_end), open_end / end});
      chosen[i] = {stride * (size / end), part};
      open_end = axes[i].pre;
    }
    if (open_end > 1) rest.push_back({stride * (size / open_end), open_end});
    stride *= size;
  }
  std::vector<Piece> digits(rest.rbegin(), rest.rend());
  digits.insert(digits.end(), chosen.begin(), chosen.end());
  return digits;
}

// mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a':(2)2,'b'}
DeviceGroups read_mesh_groups(SpellingReader* reader, std::string_view text, size_t begin) {
  const NamedMesh mesh = read_hlo_mesh(reader);
  reader->try_take(",");
  const size_t at = reader->position();
  AxisOffsets offsets;
  ShardingSpelling axes;  // its checks are those of a sharding's axes
  axes.replicated_axes = read_axes(reader, &mesh, &offsets.replicated);
  check_axes(*reader, axes, &mesh, offsets);

  int64_t n = 1;
  for (const auto& axis : mesh.axes) n *= axis.second;
  const std::vector<Piece> digits = digits_of_axes(*reader, at, mesh, axes.replicated_axes);
  DeviceGroups groups;
  groups.group_size = 1;
  const size_t chosen = axes.replicated_axes.size();
  for (size_t i = digits.size() - chosen; i < digits.size(); ++i)
    groups.group_size *= digits[i].size;
  groups.num_groups = n / groups.group_size;
  groups.ids = reorder(mesh.device_ids, n, digits);
  groups.mesh_form = text.substr(begin, reader->end() - begin);
  return groups;
}

// Calls f(position, number of the position's digits along `axes`).
template <typename F>
void for_each_position(const Mesh& mesh, const AxisList& axes, F f) {
  for (int64_t position = 0; position < mesh.num_devices(); ++position) {
    int64_t number = 0;
    for (AxisId a : axes) {
      number = number * mesh.size(a) + position / mesh.stride(a) % mesh.size(a);
    }
    f(position, number);
  }
}

// The position with its digits along `axes` replaced by those of `number`.
int64_t with_digits(const Mesh& mesh, const AxisList& axes, int64_t position, int64_t number) {
  for (int i = axes.size(); i-- > 0;) {
    const AxisId a = axes[i];
    const int64_t digit = position / mesh.stride(a) % mesh.size(a);
    position += (number % mesh.size(a) - digit) * mesh.stride(a);
    number /= mesh.size(a);
  }
  return position;
}

}  // namespace

DeviceGroups groups_along(const Mesh& mesh, const AxisList& axes) {
  std::vector<Piece> digits;
  (mesh.all_axes() - axes.set()).for_each([&](AxisId a) {
    digits.push_back({mesh.stride(a), mesh.size(a)});
  });
  for (AxisId a : axes) digits.push_back({mesh.stride(a), mesh.size(a)});
  DeviceGroups groups;
  groups.group_size = mesh.product(axes);
  groups.num_groups = mesh.num_devices() / groups.group_size;
  const IdList table{.reshape = {}, .perm = {}, .ids = mesh.device_of_position()};
  groups.ids = reorder(table, mesh.num_devices(), digits);
  return groups;
}

std::string print_replica_groups(const DeviceGroups& groups) {
  if (!groups.mesh_form.empty()) return groups.mesh_form;
  if (groups.num_groups == 0) return "{}";
  if (groups.ids.is_iota()) {
    return fmt::format("[{},{}]{}", groups.num_groups, groups.group_size, print_iota(groups.ids));
  }
  std::string out = "{";
  for (int64_t g = 0; g < groups.num_groups; ++g) {
    const auto row = groups.ids.ids.begin() + g * groups.group_size;
    fmt::format_to(std::back_inserter(out), "{}{{{}}}", g > 0 ? "," : "",
                   fmt::join(row, row + groups.group_size, ","));
  }
  return out + "}";
}

DeviceGroups parse_replica_groups(std::string_view text, size_t* position) {
  SpellingReader reader(text, *position);
  DeviceGroups groups;
  const size_t begin = reader.position();
  if (reader.peek('{')) {
    groups = read_lists(&reader);
  } else if (reader.peek('[')) {
    groups = read_iota_groups(&reader);
  } else if (reader.try_word("mesh")) {
    groups = read_mesh_groups(&reader, text, begin);
  } else {
    reader.fail_here("expected replica groups",
                     "write {{0,1},{2,3}}, [2,2]<=[4] or mesh['x'=4] {'x'}");
  }
  *position = reader.end();
  return groups;
}

std::vector<std::vector<int64_t>> expand(const DeviceGroups& groups, int64_t num_devices) {
  const bool all = groups.num_groups == 0;
  const std::vector<int64_t> ids = expand_ids(all ? plain_iota(num_devices) : groups.ids);
  const int64_t size = all ? num_devices : groups.group_size;
  std::vector<std::vector<int64_t>> rows;
  for (auto row = ids.begin(); row != ids.end(); row += size) rows.emplace_back(row, row + size);
  return rows;
}

// Where shard `number` of the n along a joined axis sends to.
static std::optional<int64_t> joined_target(const DevicePermutation& p, int64_t n, int64_t number) {
  using Kind = DevicePermutation::Kind;
  if (p.kind == Kind::kReverse) return n - 1 - number;
  if (p.kind == Kind::kHop) return hop_target(p.need, p.hop, number);
  int64_t target = number + p.shift;
  if (p.wrap) target = (target % n + n) % n;
  if (target < 0 || target >= n) return std::nullopt;
  return target;
}

void for_each_pair(const DevicePermutation& p, const Mesh& mesh,
                   const std::function<void(int64_t, int64_t)>& visit) {
  const auto device = [&](int64_t position) {
    return mesh.has_device_table() ? mesh.device_of_position()[position] : position;
  };
  if (p.kind == DevicePermutation::Kind::kRemap) {
    GSPMD_CHECK(p.from.set() == p.to.set(), "a permutation takes the digits that it gives");
    for_each_position(mesh, p.from, [&](int64_t position, int64_t number) {
      visit(device(position), device(with_digits(mesh, p.to, position, number)));
    });
    return;
  }
  const int64_t n = mesh.product(p.axes);
  for_each_position(mesh, p.axes, [&](int64_t position, int64_t number) {
    std::optional<int64_t> target = joined_target(p, n, number);
    if (!target) return;
    visit(device(position), device(with_digits(mesh, p.axes, position, *target)));
  });
}

std::vector<std::pair<int64_t, int64_t>> expand(const DevicePermutation& p, const Mesh& mesh) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for_each_pair(p, mesh,
                [&](int64_t source, int64_t target) { pairs.emplace_back(source, target); });
  return pairs;
}

}  // namespace gspmd
