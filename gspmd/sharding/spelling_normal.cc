// Checks and normal form of spellings that come from elsewhere than text: protobuf, bytecode,
// Python.

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>

#include "gspmd/base/error.h"
#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/spelling.h"
#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {
namespace {

using Kind = ShardingSpelling::Kind;

int64_t positive_product(const std::vector<int64_t>& sizes, std::string_view of) {
  for (int64_t size : sizes) {
    if (size < 1) throw Error(fmt::format("a size of {} in {}", size, of), "sizes are at least 1");
  }
  const auto product = checked_product(sizes);
  if (!product) throw Error(fmt::format("more than 2^63 devices in {}", of));
  return *product;
}

// Checks a list of devices and brings an iota form to its normal form.
void normalize_ids(IdList* list) {
  if (!list->is_iota()) {
    absl::flat_hash_set<int64_t> seen;
    for (int64_t id : list->ids) {
      if (id < 0) throw Error(fmt::format("device {} does not exist", id));
      if (!seen.insert(id).second) {
        throw Error(fmt::format("device {} stands twice", id), "name each device once");
      }
    }
    return;
  }
  positive_product(list->reshape, "a list of devices");
  if (list->perm.empty() && list->reshape.size() == 1) list->perm = {0};
  std::vector<int> sorted = list->perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size() || i < list->reshape.size(); ++i) {
    if (sorted.size() != list->reshape.size() || sorted[i] != static_cast<int>(i)) {
      throw Error(
          fmt::format("a list of devices of {} dimensions whose transpose is no permutation",
                      list->reshape.size()));
    }
  }
  *list = make_iota(list->reshape, list->perm);
}

void normalize_named(ShardingSpelling* s) {
  normalize(&s->mesh);
  const bool by_name = !s->mesh_name.empty() && s->mesh.axes.empty();
  if (auto fault = find_axis_fault(*s, by_name ? nullptr : &s->mesh)) {
    throw Error(fault->message, fault->hint);
  }
}

}  // namespace

void check_tiled(ShardingSpelling* s) {
  if (s->tile_dims.empty()) throw Error("a tile assignment without dimensions");
  const int64_t tiles = positive_product(s->tile_dims, "a tile assignment");
  normalize_ids(&s->devices);
  if (tiles != s->devices.size()) {
    throw Error(fmt::format("{} tiles but {} devices", tiles, s->devices.size()),
                "the tile dimensions multiply to the number of devices");
  }
  if (s->subgroups.size() > s->tile_dims.size()) {
    throw Error(fmt::format("{} last_tile_dims, but only {} tile dimensions", s->subgroups.size(),
                            s->tile_dims.size()));
  }
}

void use_short_form(ShardingSpelling* s) {
  if (s->kind != Kind::kTiled || s->subgroups.empty()) return;
  const size_t rank = s->tile_dims.size() - s->subgroups.size();
  const bool splits = std::any_of(s->tile_dims.begin(), s->tile_dims.begin() + rank,
                                  [](int64_t tiles) { return tiles > 1; });
  const SubgroupType type = s->subgroups[0];
  const bool mixed = std::any_of(s->subgroups.begin(), s->subgroups.end(),
                                 [&](SubgroupType other) { return other != type; });
  if (splits || mixed || type == SubgroupType::kMaximal) return;
  s->kind = type == SubgroupType::kReplicated ? Kind::kReplicated
            : type == SubgroupType::kManual   ? Kind::kManual
                                              : Kind::kUnreduced;
  s->tile_dims.clear();
  s->devices = {};
  s->subgroups.clear();
  s->subgroups_spelled_as_list = false;
}

void normalize(NamedMesh* mesh) {
  std::vector<int64_t> sizes;
  for (size_t k = 0; k < mesh->axes.size(); ++k) {
    const auto& [name, size] = mesh->axes[k];
    sizes.push_back(size);
    for (size_t earlier = 0; earlier < k; ++earlier) {
      if (mesh->axes[earlier].first == name)
        throw Error(fmt::format("two axes are called \"{}\"", name));
    }
  }
  const int64_t devices = positive_product(sizes, "a mesh");
  if (mesh->maximal_device && *mesh->maximal_device < 0) {
    throw Error(fmt::format("device {} does not exist", *mesh->maximal_device));
  }
  if (mesh->device_ids.size() == 0) return;
  normalize_ids(&mesh->device_ids);
  if (mesh->device_ids.size() != devices) {
    throw Error(
        fmt::format("{} device ids for a mesh of {} devices", mesh->device_ids.size(), devices));
  }
  if (is_plain(mesh->device_ids)) mesh->device_ids = {};
}

void normalize(ShardingSpelling* s) {
  if (s->kind == Kind::kTiled) {
    check_tiled(s);
    use_short_form(s);
  }
  if (s->kind == Kind::kNamed) normalize_named(s);
  if (s->kind == Kind::kMaximal && s->device < 0) {
    throw Error(fmt::format("device {} does not exist", s->device));
  }
  if (s->kind != Kind::kTuple) return;
  for (ShardingSpelling& element : s->elements) {
    if (element.kind == Kind::kTuple) throw Error("a tuple inside the sharding of a tuple");
    normalize(&element);
  }
}

}  // namespace gspmd
