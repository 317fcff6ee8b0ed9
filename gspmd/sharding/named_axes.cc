// Axes and meshes by name: what HLO's named form and sdy's attributes share.

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {
namespace {

// Names are looked up one by one; real meshes have about ten.
constexpr size_t kMaxNamedAxes = 1024;
constexpr size_t kFewAxes = 16;

const std::pair<std::string, int64_t>* find_axis(const NamedMesh& mesh, std::string_view name) {
  for (const auto& axis : mesh.axes) {
    if (axis.first == name) return &axis;
  }
  return nullptr;
}

std::string print_axis(const NamedAxis& axis) {
  if (axis.size == 0) return fmt::format("\"{}\"", axis.name);
  return fmt::format("\"{}\":({}){}", axis.name, axis.pre, axis.size);
}

std::optional<AxisFault> part_fault(size_t index, const NamedAxis& axis, const NamedMesh* mesh) {
  const auto* whole = mesh ? find_axis(*mesh, axis.name) : nullptr;
  if (mesh && !whole) {
    std::vector<std::string> names;
    for (const auto& known : mesh->axes) names.push_back(known.first);
    return AxisFault{index, fmt::format("the mesh has no axis \"{}\"", axis.name),
                     names.empty() ? "the mesh has no axes"
                                   : fmt::format("its axes are {}", fmt::join(names, ", "))};
  }
  if (axis.size == 0) return std::nullopt;
  int64_t end = 0;
  const bool fits = axis.size > 1 && axis.pre >= 1 &&
                    !__builtin_mul_overflow(axis.pre, axis.size, &end) &&
                    (!whole || whole->second % end == 0);
  if (fits) return std::nullopt;
  const std::string of = whole ? fmt::format(" of an axis of size {}", whole->second) : "";
  return AxisFault{index, fmt::format("{} is no part{}", print_axis(axis), of),
                   "in \"x\":(pre)size, size is over 1 and pre*size divides the axis"};
}

// The part as [pre, end) in the product of sizes, major to minor; without a mesh the end of a whole
// axis is unknown.
std::pair<int64_t, int64_t> extent(const NamedAxis& axis) {
  if (axis.size == 0) return {1, std::numeric_limits<int64_t>::max()};
  return {axis.pre, axis.pre * axis.size};
}

std::optional<AxisFault> pair_fault(size_t index, const NamedAxis& axis, const NamedAxis& earlier) {
  if (axis.name != earlier.name) return std::nullopt;
  const auto [a_pre, a_end] = extent(axis);
  const auto [b_pre, b_end] = extent(earlier);
  if (a_pre < b_end && b_pre < a_end) {
    return AxisFault{index, fmt::format("axis {} is used twice", print_axis(axis)),
                     "an axis splits one dimension, or is replicated, unreduced or manual"};
  }
  const bool nest = a_pre < b_pre ? b_pre % a_end == 0 : a_pre % b_end == 0;
  if (nest) return std::nullopt;
  return AxisFault{index,
                   fmt::format("{} and {} do not nest", print_axis(axis), print_axis(earlier)),
                   "the minor part's pre is a multiple of the major part's pre*size"};
}

std::optional<AxisFault> fault_among_few(absl::Span<const NamedAxis* const> all,
                                         const NamedMesh* mesh) {
  for (size_t i = 0; i < all.size(); ++i) {
    if (auto fault = part_fault(i, *all[i], mesh)) return fault;
    for (size_t k = 0; k < i; ++k) {
      if (auto fault = pair_fault(i, *all[i], *all[k])) return fault;
    }
  }
  return std::nullopt;
}

std::optional<AxisFault> fault_among_many(absl::Span<const NamedAxis* const> all,
                                          const NamedMesh* mesh) {
  absl::flat_hash_map<std::string_view, std::vector<const NamedAxis*>>
      parts;  // of each axis, so far
  for (size_t i = 0; i < all.size(); ++i) {
    if (auto fault = part_fault(i, *all[i], mesh)) return fault;
    std::vector<const NamedAxis*>& earlier = parts[all[i]->name];
    for (const NamedAxis* other : earlier) {
      if (auto fault = pair_fault(i, *all[i], *other)) return fault;
    }
    earlier.push_back(all[i]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<AxisFault> find_axis_fault(const ShardingSpelling& s, const NamedMesh* mesh) {
  absl::InlinedVector<const NamedAxis*, kFewAxes> all;
  for (const NamedDim& dim : s.dims) {
    for (const NamedAxis& axis : dim.axes) all.push_back(&axis);
  }
  for (const auto* axes : {&s.replicated_axes, &s.unreduced_axes, &s.manual_axes}) {
    for (const NamedAxis& axis : *axes) all.push_back(&axis);
  }
  return all.size() <= kFewAxes ? fault_among_few(all, mesh) : fault_among_many(all, mesh);
}

void check_axes(const SpellingReader& reader, const ShardingSpelling& s, const NamedMesh* mesh,
                const AxisOffsets& offsets) {
  const auto fault = find_axis_fault(s, mesh);
  if (!fault) return;
  size_t index = fault->index;
  for (const auto* part :
       {&offsets.dims, &offsets.replicated, &offsets.unreduced, &offsets.manual}) {
    if (index < part->size()) reader.fail((*part)[index], fault->message, fault->hint);
    index -= part->size();
  }
}

NamedAxis read_axis(SpellingReader* reader, const NamedMesh* mesh) {
  NamedAxis axis;
  axis.name = reader->quoted();
  if (reader->try_take(":")) {
    reader->take("(");
    axis.pre = reader->integer();
    reader->take(")");
    const size_t at = reader->position();
    axis.size = reader->integer();
    if (axis.size < 2) {
      reader->fail(at, fmt::format("a part of size {}", axis.size), "a part has at least size 2");
    }
  }
  if (!mesh || find_axis(*mesh, axis.name) || axis.name.empty() || axis.name.size() > 3 ||
      !std::all_of(axis.name.begin(), axis.name.end(),
                   [](char c) { return c >= '0' && c <= '9'; })) {
    return axis;
  }
  const size_t number = std::stoul(axis.name);
  if (number < mesh->axes.size()) axis.name = mesh->axes[number].first;
  return axis;
}

NamedDim read_dim(SpellingReader* reader, const NamedMesh* mesh, std::vector<size_t>* offsets) {
  NamedDim dim;
  reader->list("{", "}", [&] {
    if (dim.open) reader->fail_here("expected '}' after '?'");
    if (reader->try_take("?")) {
      dim.open = true;
      return;
    }
    offsets->push_back(reader->position());
    dim.axes.push_back(read_axis(reader, mesh));
  });
  return dim;
}

std::vector<NamedAxis> read_axes(SpellingReader* reader, const NamedMesh* mesh,
                                 std::vector<size_t>* offsets) {
  std::vector<NamedAxis> axes;
  reader->list("{", "}", [&] {
    offsets->push_back(reader->position());
    axes.push_back(read_axis(reader, mesh));
  });
  return axes;
}

Combiner read_combiner(SpellingReader* reader) {
  if (reader->peek('{')) return Combiner::kSum;
  for (int c = 1; c <= static_cast<int>(Combiner::kXor); ++c) {
    if (reader->try_word(to_string(static_cast<Combiner>(c)))) return static_cast<Combiner>(c);
  }
  reader->fail_here("expected '{' or a combiner",
                    "write unreduced={\"x\"} or unreduced=max{\"x\"}");
}

void read_mesh_axes(SpellingReader* reader, NamedMesh* mesh) {
  const size_t mesh_at = reader->position();
  std::vector<int64_t> sizes;
  reader->list("[", "]", [&] {
    const size_t at = reader->position();
    std::string name = reader->quoted();
    reader->take("=");
    const size_t size_at = reader->position();
    sizes.push_back(reader->integer());
    if (find_axis(*mesh, name)) {
      reader->fail(at, fmt::format("two axes are called \"{}\"", name),
                   "give each axis its own name");
    }
    if (sizes.back() < 1) {
      reader->fail(size_at, fmt::format("an axis of size {}", sizes.back()),
                   "an axis has at least size 1");
    }
    mesh->axes.emplace_back(std::move(name), sizes.back());
    if (mesh->axes.size() > kMaxNamedAxes) reader->fail(at, "a mesh of more than 1024 axes");
  });
  if (!checked_product(sizes)) reader->fail(mesh_at, "a mesh of more than 2^63 devices");
}

void finish_mesh_devices(const SpellingReader& reader, size_t at, NamedMesh* mesh) {
  int64_t product = 1;
  for (const auto& axis : mesh->axes) product *= axis.second;
  if (mesh->device_ids.size() != product) {
    reader.fail(
        at, fmt::format("{} device ids for a mesh of {} devices", mesh->device_ids.size(), product),
        "name as many devices as the product of the axes' sizes");
  }
  if (is_plain(mesh->device_ids)) mesh->device_ids = {};
}

}  // namespace gspmd
