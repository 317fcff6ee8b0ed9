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
  if (demand.order.empty()) return family;
  family.order = demand.with_copies_last().order;
  sort_copies(demand.copies(), &family.order);
  for (size_t place = 0; place < family.order.size(); ++place) {
    family.place_of_device_[family.order[place]] = static_cast<int64_t>(place);
  }
  return family;
}

std::optional<std::vector<int64_t>> MeshFamily::places_of(std::vector<int64_t> devices) const {
  for (int64_t& device : devices) {
    if (order.empty()) {
      if (device >= places) return std::nullopt;
      continue;
    }
    const auto it = place_of_device_.find(device);
    if (it == place_of_device_.end()) return std::nullopt;
    device = it->second;
  }
  return devices;
}

std::optional<Demand> MeshFamily::place(const Demand& demand) const {
  if (demand.places != places) return std::nullopt;
  if (demand.order == order) return demand;
  Demand placed = demand.with_copies_last();
  auto list = places_of(placed.order);
  if (!list) return std::nullopt;
  sort_copies(demand.copies(), &*list);
  const auto iota = as_iota(*list);
  if (!iota || !map_to_ids(*iota, &placed)) return std::nullopt;
  placed.order = order;
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
