#include "gspmd/sharding/mesh_family.h"

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/base/check.h"
#include "gspmd/base/error.h"

namespace gspmd {
namespace {

void sort_copies(int64_t copies, std::vector<int64_t>* list) {
  if (copies == 1) return;
  for (auto it = list->begin(); it != list->end(); it += copies) std::sort(it, it + copies);
}

}  // namespace

MeshFamily MeshFamily::of(const Demand& demand) {
  MeshFamily family(demand.places);
  family.order = demand.order;
  sort_copies(demand.copies(), &family.order);
  for (size_t place = 0; place < family.order.size(); ++place) {
    family.place_of_device_[family.order[place]] = static_cast<int64_t>(place);
  }
  return family;
}

std::optional<std::vector<int64_t>> MeshFamily::places_of(const Demand& demand) const {
  std::vector<int64_t> list = demand.order.empty() ? expand_ids(plain_iota(places)) : demand.order;
  for (int64_t& id : list) {
    if (order.empty()) {
      if (id >= places) return std::nullopt;
      continue;
    }
    const auto it = place_of_device_.find(id);
    if (it == place_of_device_.end()) return std::nullopt;
    id = it->second;
  }
  sort_copies(demand.copies(), &list);
  return list;
}

std::optional<Demand> MeshFamily::place(const Demand& demand) const {
  if (demand.places != places) return std::nullopt;
  if (demand.order == order) return demand;
  const auto list = places_of(demand);
  if (!list) return std::nullopt;
  const auto iota = as_iota(*list);
  if (!iota) return std::nullopt;
  const std::vector<Digit> digits = iota_digits(*iota);
  Demand placed = demand;
  placed.order = order;
  bool nests = true;
  Demand::for_each_list(placed, [&](std::vector<Piece>& pieces) {
    std::vector<Piece> mapped;
    for (const Piece& piece : pieces) nests = nests && map_piece(digits, piece, &mapped);
    pieces = std::move(mapped);
  });
  if (!nests) return std::nullopt;
  return placed;
}

bool MeshFamily::nests(const std::vector<int64_t>& cuts, bool finished) const {
  if (finished) return chain.has(cuts);
  Chain copy = chain;
  return copy.add(cuts);
}

AxisList MeshFamily::axes_of(const std::vector<Piece>& pieces) const {
  AxisList axes;
  for (const Piece& piece : pieces) chain.append_axes(piece, &axes);
  return axes;
}

void MeshFamily::add_names(const NamedMesh& named, const Demand& placed) {
  if (!names_.empty()) return;
  for (size_t a = 0; a < named.axes.size(); ++a) {
    names_.push_back({named.axes[a].first, named.axes[a].second, placed.dims[a]});
  }
}

Mesh::Axis MeshFamily::describe_axis(AxisId a) const {
  const int64_t stride = chain.stride(a), size = chain.size(a);
  for (const NamedPieces& named : names_) {
    int64_t before = 1;  // sizes of the named axis's pieces that are more major
    for (const Piece& piece : named.pieces) {
      if (piece.stride <= stride && stride * size <= piece.end()) {
        return {named.name, size, before * (piece.end() / (stride * size)), named.size};
      }
      before *= piece.size;
    }
  }
  return {fmt::format("axis_{}", a), size, 1, size};
}

void MeshFamily::make_mesh(ShardingPool* pool) {
  if (mesh) return;
  if (chain.num_axes() > kMaxAxes) {
    throw Error(
        fmt::format("a mesh of {} axes; at most {} are possible", chain.num_axes(), kMaxAxes),
        "shard over fewer devices, or in fewer different ways");
  }
  std::vector<Mesh::Axis> axes;
  for (int a = 0; a < chain.num_axes(); ++a) axes.push_back(describe_axis(static_cast<AxisId>(a)));
  mesh = pool->add_mesh(Mesh(std::move(axes), order));
}

}  // namespace gspmd
