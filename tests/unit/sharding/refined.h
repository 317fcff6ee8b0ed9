#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gspmd/sharding/refinement.h"

// What tests of MeshRefinement share.
namespace gspmd {

inline ShardingSpelling parse(std::string_view text) {
  size_t position = 0;
  return text.starts_with('{') ? parse_hlo_sharding(text, &position)
                               : parse_sdy_sharding(text, &position);
}

// Everything that one module says, refined together.
struct Refined {
  explicit Refined(int64_t num_devices, const std::vector<ShardingSpelling>& spellings,
                   std::vector<std::pair<std::string, NamedMesh>> meshes = {})
      : refinement(&pool, num_devices, std::move(meshes)) {
    for (const ShardingSpelling& s : spellings) refinement.note(s);
    refinement.finish();
  }
  Sharding resolve(const ShardingSpelling& s, int rank) {
    return refinement.resolve(s, rank).sharding;
  }
  ShardingPool pool;
  MeshRefinement refinement;
};

inline int rank_of(const ShardingSpelling& s) {
  return static_cast<int>(s.tile_dims.size() - s.subgroups.size());
}

inline ShardingSpelling tiled(std::vector<int64_t> tile_dims, IdList devices,
                              std::vector<SubgroupType> subgroups) {
  ShardingSpelling s;
  s.kind = ShardingSpelling::Kind::kTiled;
  s.tile_dims = std::move(tile_dims);
  s.devices = std::move(devices);
  s.subgroups = std::move(subgroups);
  return s;
}

inline std::string print_mesh(const Mesh& mesh) {
  std::string out;
  for (const Mesh::Axis& axis : mesh.axes()) {
    out += axis.name;
    if (axis.size != axis.whole) out += ":(" + std::to_string(axis.pre) + ")";
    out += "=" + std::to_string(axis.size) + " ";
  }
  for (int64_t device : mesh.device_of_position()) out += std::to_string(device) + ",";
  return out;
}

inline NamedMesh mesh(const char* text) {
  size_t position = 0;
  return parse_sdy_mesh(text, &position);
}

}  // namespace gspmd
