#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gspmd/sharding/sharding.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {

// An annotation with its meaning: the sharding in the module's common mesh, and what completion may
// still add.
struct Annotation {
  Sharding sharding;
  uint64_t open_dims =
      0;  // bit d: dimension d may be sharded further (sdy's `?`, unspecified_dims)
  std::vector<int> dim_priority;  // sdy's p0, p1...; empty = all 0
  ShardingSpelling::Group group = ShardingSpelling::Group::kNone;
  int64_t group_id = 0;
  bool unknown = false;         // `{unknown}`: says nothing
  int64_t maximal_device = -1;  // `{maximal device=3}`: `sharding` is replicated
};

// The common refinement of the meshes of one module: reads every spelling first, then factors the
// mesh as far as needed, so that each annotation is a Sharding over one list of axes.
//
//   {devices=[2,4]<=[8]} and {devices=[4,2]<=[8]}  ->  axes of sizes 2, 2, 2
//   {devices=[4,2]<=[2,4]T(1,0)}                   ->  axes x=2, y=4; dims [{y}, {x}]
//
// An annotation over a mesh without a common refinement with the others (2x3 against 3x2 over 6),
// or with an irregular device list, gets a mesh of its own: `Sharding::mesh()` differs, and the
// edge between the two is a cross-mesh reshard. Nothing here loops over devices unless the input
// itself lists them.
class MeshRefinement {
 public:
  // `named_meshes`: the module's sdy meshes, for spellings that name theirs.
  MeshRefinement(ShardingPool* pool, int64_t num_devices,
                 std::vector<std::pair<std::string, NamedMesh>> named_meshes = {});

  // Phase 1: note the boundaries that a spelling needs, and how often it stands in the program.
  void note(const ShardingSpelling& spelling, int64_t times = 1);
  // A value of these sizes is to have it. Where an axis does not divide a dimension, the part that
  // does is an axis of its own: 4 on 6 is 2 that divides, and 2.
  void note_sizes(const ShardingSpelling& spelling, absl::Span<const int64_t> sizes);
  // Also cut axes where a dimension of size major*minor (of a reshape) has its factor boundary, so
  // that an axis of 8 on a dimension that splits into 4 x 2 is two axes: for every axis of size n,
  // a cut at gcd(n, major / (products of other axes)).
  void note_factor_boundary(int64_t major, int64_t minor);
  // Ends phase 1: makes the meshes.
  void finish();

  // Phase 2. `rank` of the array; throws Error where the spelling does not fit (wrong rank, too
  // many devices).
  Annotation resolve(const ShardingSpelling& spelling, int rank);
  const Mesh* mesh() const { return main_; }

 private:
  struct Impl;
  Annotation resolve_split(const ShardingSpelling& spelling, int rank);
  Annotation resolve_whole(const ShardingSpelling& spelling, int rank);

  ShardingPool* pool_;
  const Mesh* main_ = nullptr;
  std::shared_ptr<Impl> impl_;
};

// The inverse of resolve: GSPMD's tile-assignment form, e.g. `{devices=[2,1,4]<=[8]
// last_tile_dim_replicate}`;
// `{replicated}`, `{manual}` where that is all. Iota wherever the mesh has no device table.
// Pending values whose combiner is not a sum have only the named form, `{mesh['x'=2], [{}],
// unreduced=max{'x'}}`.
ShardingSpelling spell(Sharding s);
// As a named form: sdy's `<@mesh, [{"x"}, {}]>`, adjacent sub-axes joined. With an empty name the
// mesh stands in place.
ShardingSpelling spell_named(Sharding s, std::string_view mesh_name);
// The mesh as its user wrote it, as far as the axes tell: parts of one axis joined.
NamedMesh name_mesh(const Mesh& mesh);

}  // namespace gspmd
