#include "gspmd/sharding/demand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gspmd/base/check.h"
#include "gspmd/base/error.h"
#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {
namespace {

// Lists longer than this are not written out to find a form for them.
constexpr int64_t kMaxWrittenIds = int64_t{1} << 24;

void check_devices(const IdList& ids, int64_t num_devices) {
  const int64_t n = ids.size();
  int64_t highest = n - 1;
  if (!ids.is_iota() && n > 0) highest = *std::max_element(ids.ids.begin(), ids.ids.end());
  if (highest < num_devices) return;
  throw Error(fmt::format("device {} is used, but there are {} devices", highest, num_devices),
              fmt::format("set num_partitions={} or shard over fewer devices", highest + 1));
}

void place_on(const IdList& ids, Demand* demand) {
  demand->places = std::max<int64_t>(ids.size(), 1);
  if (demand->trivial() || ids.size() == 0 || is_plain(ids)) return;
  if (ids.is_iota() && map_to_ids(ids, demand)) return;
  if (ids.size() > kMaxWrittenIds) {
    throw Error(fmt::format("tiles that do not nest with an iota list of {} devices", ids.size()),
                "make each tile dimension a product of the list's dimensions, in transposed order");
  }
  demand->order = expand_ids(ids);
  const auto iota = ids.is_iota() ? std::nullopt : as_iota(demand->order);
  if (iota && map_to_ids(*iota, demand)) demand->order.clear();
}

Demand tiled_demand(const ShardingSpelling& s) {
  Demand demand;
  const size_t rank = s.tile_dims.size() - s.subgroups.size();
  demand.dims.resize(rank);
  int64_t stride = 1;
  for (size_t t = s.tile_dims.size(); t-- > 0;) {
    const Piece piece{stride, s.tile_dims[t]};
    stride *= piece.size;
    if (piece.size == 1) continue;
    if (t < rank) {
      demand.dims[t] = {piece};
      continue;
    }
    switch (s.subgroups[t - rank]) {
      case SubgroupType::kReplicated:
        break;
      case SubgroupType::kManual:
        demand.manual.push_back(piece);
        break;
      case SubgroupType::kUnreduced:
        demand.pending.push_back(piece);
        break;
      case SubgroupType::kMaximal:
        throw Error("a maximal subgroup is not supported",
                    "write {maximal device=N} for the value");
    }
  }
  if (!demand.pending.empty()) demand.combiner = Combiner::kSum;
  return demand;
}

// The part of an axis as a piece of the mesh's places; none for an axis of size 1.
void add_axis(const NamedMesh& mesh, const NamedAxis& axis, std::vector<Piece>* out) {
  int64_t stride = 1;
  for (size_t m = mesh.axes.size(); m-- > 0; stride *= mesh.axes[m].second) {
    const auto& [name, whole] = mesh.axes[m];
    if (name != axis.name) continue;
    const int64_t size = axis.size == 0 ? whole : axis.size;
    if (size > 1) out->push_back({stride * (whole / (axis.pre * size)), size});
    return;
  }
}

Demand named_demand(const ShardingSpelling& s, const NamedMesh& mesh) {
  if (auto fault = find_axis_fault(s, &mesh)) throw Error(fault->message, fault->hint);
  Demand demand;
  for (const NamedDim& dim : s.dims) {
    demand.dims.emplace_back();
    for (const NamedAxis& axis : dim.axes) add_axis(mesh, axis, &demand.dims.back());
  }
  for (const NamedAxis& axis : s.replicated_axes) add_axis(mesh, axis, &demand.replicated);
  for (const NamedAxis& axis : s.manual_axes) add_axis(mesh, axis, &demand.manual);
  for (const NamedAxis& axis : s.unreduced_axes) add_axis(mesh, axis, &demand.pending);
  if (!demand.pending.empty()) demand.combiner = s.unreduced_combiner;
  return demand;
}

IdList ids_of(const NamedMesh& mesh) {
  if (mesh.device_ids.size() > 0) return mesh.device_ids;
  int64_t n = 1;
  for (const auto& axis : mesh.axes) n *= axis.second;
  return plain_iota(n);
}

}  // namespace

bool map_to_ids(const IdList& iota, Demand* demand) {
  const std::vector<Digit> digits = iota_digits(iota);
  Demand mapped = *demand;
  bool nests = true;
  Demand::for_each_list(mapped, [&](std::vector<Piece>& pieces) {
    std::vector<Piece> ids;
    for (const Piece& piece : pieces) nests = nests && map_piece(digits, piece, &ids);
    pieces = std::move(ids);
  });
  if (nests) *demand = std::move(mapped);
  return nests;
}

std::vector<int64_t> Demand::boundaries() const {
  std::vector<int64_t> all{1, places};
  for_each_list(*this, [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      all.push_back(piece.stride);
      all.push_back(piece.end());
    }
  });
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

int64_t Demand::copies() const {
  int64_t parts = 1;
  for_each_list(*this, [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) parts *= piece.size;
  });
  return places / parts;
}

Demand Demand::with_copies_last() const {
  std::vector<Piece> digits;  // the pieces, then what lies between them
  for_each_list(*this, [&](const std::vector<Piece>& pieces) {
    digits.insert(digits.end(), pieces.begin(), pieces.end());
  });
  const std::vector<int64_t> cuts = boundaries();
  const size_t used = digits.size();
  for (size_t k = cuts.size() - 1; k-- > 0;) {
    const bool free = std::none_of(digits.begin(), digits.begin() + used,
                                   [&](const Piece& piece) { return piece.stride == cuts[k]; });
    if (free) digits.push_back({cuts[k], cuts[k + 1] / cuts[k]});
  }
  Demand out = *this;
  out.order = expand_ids(reorder({.reshape = {}, .perm = {}, .ids = order}, places, digits));
  int64_t stride = places;
  for_each_list(out, [&](std::vector<Piece>& pieces) {
    for (Piece& piece : pieces) piece.stride = stride /= piece.size;
  });
  return out;
}

bool Demand::trivial() const {
  bool any = false;
  for_each_list(*this, [&](const std::vector<Piece>& pieces) { any = any || !pieces.empty(); });
  return !any;
}

const NamedMesh& mesh_of(const ShardingSpelling& spelling, const NamedMeshes& meshes) {
  if (spelling.mesh_name.empty() || !spelling.mesh.axes.empty()) return spelling.mesh;
  std::vector<std::string_view> names;
  for (const auto& [name, mesh] : meshes) {
    if (name == spelling.mesh_name) return mesh;
    names.push_back(name);
  }
  throw Error(fmt::format("there is no mesh @{}", spelling.mesh_name),
              names.empty() ? "the module defines no mesh"
                            : fmt::format("the module's meshes are {}", fmt::join(names, ", ")));
}

Demand make_demand(const ShardingSpelling& spelling, const NamedMeshes& meshes,
                   int64_t num_devices) {
  using Kind = ShardingSpelling::Kind;
  GSPMD_CHECK(spelling.kind == Kind::kTiled || spelling.kind == Kind::kNamed,
              "only tiled and named shardings ask something of a mesh");
  IdList ids;
  Demand demand;
  if (spelling.kind == Kind::kTiled) {
    ShardingSpelling s = spelling;
    check_tiled(&s);
    ids = s.devices;
    demand = tiled_demand(s);
  } else {
    NamedMesh mesh = mesh_of(spelling, meshes);
    normalize(&mesh);
    ids = ids_of(mesh);
    demand = named_demand(spelling, mesh);
  }
  check_devices(ids, num_devices);
  place_on(ids, &demand);
  return demand;
}

Demand make_demand(const NamedMesh& mesh, int64_t num_devices) {
  ShardingSpelling all;
  all.kind = ShardingSpelling::Kind::kNamed;
  all.mesh = mesh;
  for (const auto& axis : mesh.axes)
    all.dims.push_back({{{axis.first, 1, 0}}, false, std::nullopt});
  return make_demand(all, {}, num_devices);
}

}  // namespace gspmd
