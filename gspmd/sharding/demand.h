#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {

// What a spelling asks of a mesh, before the mesh is known: which parts of the device number split
// which dimension.
//
//   {devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}: device = 4*a + b, dimension 0 is split
//   by b: places 8, dims [[{1,4}], []]
//
// Places are device ids, or indices into `order` where the ids have no regular form.
struct Demand {
  int64_t places = 1;
  std::vector<int64_t> order;  // device at each place; empty = the place itself
  std::vector<std::vector<Piece>> dims;
  std::vector<Piece> replicated, manual, pending;
  Combiner combiner = Combiner::kNone;

  // Calls f(piece list) for each of the above; `self` may be const.
  template <typename Self, typename F>
  static void for_each_list(Self& self, F f) {
    for (auto& dim : self.dims) f(dim);
    f(self.replicated);
    f(self.manual);
    f(self.pending);
  }
  // Strides and ends of all pieces, sorted, each once; with 1 and `places`.
  std::vector<int64_t> boundaries() const;
  // So many devices hold a copy of the same part: places / the number of different parts.
  int64_t copies() const;
  // The same with all copies of a part side by side, in the order of their places; always written
  // out.
  Demand with_copies_last() const;
  // Nothing is split: fits any mesh.
  bool trivial() const;
};

using NamedMeshes = std::vector<std::pair<std::string, NamedMesh>>;

// The mesh of a kNamed spelling, in place or by name; throws Error where there is none of that
// name.
const NamedMesh& mesh_of(const ShardingSpelling& spelling, const NamedMeshes& meshes);

// Replaces the places by the ids that a list has there; false, and nothing is changed, where a
// piece and the list's digits do not nest. `order` stays.
bool map_to_ids(const IdList& iota, Demand* demand);

// For kTiled and kNamed. Throws Error for axes that the mesh does not have and for more devices
// than `num_devices`.
Demand make_demand(const ShardingSpelling& spelling, const NamedMeshes& meshes,
                   int64_t num_devices);
// A mesh as if each of its axes split a dimension.
Demand make_demand(const NamedMesh& mesh, int64_t num_devices);

}  // namespace gspmd
