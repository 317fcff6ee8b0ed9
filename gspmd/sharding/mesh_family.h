#pragma once

#include <absl/container/flat_hash_map.h>

#include <optional>
#include <string>
#include <vector>

#include "gspmd/sharding/chain.h"
#include "gspmd/sharding/demand.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// A mesh being made: an order of devices and the cuts that all annotations over it need. A module
// usually has one; a second one stands for annotations whose cuts do not nest with the first's (2x3
// and 3x2), or whose devices are in another order, or fewer.
class MeshFamily {
 public:
  explicit MeshFamily(int64_t places_in_order) : places(places_in_order), chain(places_in_order) {}
  // A family with the places of the demand.
  static MeshFamily of(const Demand& demand);

  // The demand in this family's places; nothing where its devices or their order are not
  // expressible here.
  std::optional<Demand> place(const Demand& demand) const;
  // Whether the cuts nest with those here; after the meshes are made: are among them.
  bool nests(const std::vector<int64_t>& cuts, bool finished) const;
  AxisList axes_of(const std::vector<Piece>& pieces) const;

  // Takes the names of `mesh`, whose axes are `placed.dims`, unless there are names already.
  void add_names(const NamedMesh& mesh, const Demand& placed);
  void make_mesh(ShardingPool* pool);

  int64_t places;
  std::vector<int64_t> order;  // device at each place; empty = the place itself
  Chain chain;
  int64_t weight = 0;  // annotations over it
  const Mesh* mesh = nullptr;

 private:
  struct NamedPieces {
    std::string name;
    int64_t size;
    std::vector<Piece> pieces;
  };
  // Nothing where a device is not here.
  std::optional<std::vector<int64_t>> places_of(std::vector<int64_t> devices) const;
  Mesh::Axis describe_axis(AxisId a) const;

  absl::flat_hash_map<int64_t, int64_t> place_of_device_;  // where `order` is given
  std::vector<NamedPieces> names_;
};

}  // namespace gspmd
