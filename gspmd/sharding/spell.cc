// The way back: a Sharding as an annotation.

#include <algorithm>

#include "gspmd/base/check.h"
#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/refinement.h"

namespace gspmd {
namespace {

using Kind = ShardingSpelling::Kind;

// Adjacent parts of one user's axis are one part: "y":(1)2, "y":(2)2 is "y".
void append_axis(const Mesh& mesh, AxisId a, std::vector<NamedAxis>* out) {
  const Mesh::Axis& axis = mesh.axis(a);
  NamedAxis part{axis.name, axis.pre, axis.size};
  if (!out->empty() && out->back().name == axis.name && out->back().size != 0 &&
      out->back().pre * out->back().size == axis.pre) {
    part = {axis.name, out->back().pre, out->back().size * axis.size};
    out->pop_back();
  }
  if (part.pre == 1 && part.size == axis.whole) part.size = 0;
  out->push_back(part);
}

template <typename List>
std::vector<NamedAxis> name_axes(const Mesh& mesh, const List& axes) {
  std::vector<NamedAxis> out;
  for (AxisId a : axes) append_axis(mesh, a, &out);
  return out;
}

AxisList list_of(AxisSet set) {
  AxisList list;
  set.for_each([&](AxisId a) { list.push_back(a); });
  return list;
}

void append_digits(const Mesh& mesh, const AxisList& axes, std::vector<Piece>* out) {
  for (AxisId a : axes) out->push_back({mesh.stride(a), mesh.size(a)});
}

IdList table_of(const Mesh& mesh) {
  return IdList{.reshape = {}, .perm = {}, .ids = mesh.device_of_position()};
}

// The order of copies means nothing: of each group of `copies` neighbours, the lowest id first.
void sort_copies(int64_t copies, IdList* list) {
  if (copies == 1 || list->is_iota()) return;
  for (auto it = list->ids.begin(); it != list->ids.end(); it += copies) std::sort(it, it + copies);
  if (auto iota = as_iota(list->ids)) *list = *iota;
}

std::optional<Kind> kind_of_whole(Sharding s) {
  const AxisSet all = s.mesh().all_axes();
  if (s->manual.empty() && s->pending.empty() && s->splitting().empty()) return Kind::kReplicated;
  if (s->manual == all) return Kind::kManual;
  if (s->pending == all && s->combiner == Combiner::kSum) return Kind::kUnreduced;
  return std::nullopt;
}

}  // namespace

NamedMesh name_mesh(const Mesh& mesh) {
  // The user's axes in the order of their most major parts; the parts of each in order.
  NamedMesh out;
  AxisList order;
  for (AxisId a = 0; a < mesh.num_axes(); ++a) {
    const std::string& name = mesh.axis(a).name;
    if (std::any_of(out.axes.begin(), out.axes.end(),
                    [&](const auto& axis) { return axis.first == name; })) {
      continue;
    }
    out.axes.emplace_back(name, mesh.axis(a).whole);
    std::vector<AxisId> parts;
    for (AxisId b = a; b < mesh.num_axes(); ++b) {
      if (mesh.axis(b).name == name) parts.push_back(b);
    }
    std::sort(parts.begin(), parts.end(),
              [&](AxisId x, AxisId y) { return mesh.axis(x).pre < mesh.axis(y).pre; });
    for (AxisId b : parts) order.push_back(b);
  }
  std::vector<Piece> digits;
  append_digits(mesh, order, &digits);
  out.device_ids = reorder(table_of(mesh), mesh.num_devices(), digits);
  if (is_plain(out.device_ids)) out.device_ids = {};
  return out;
}

ShardingSpelling spell(Sharding s) {
  if (s->combiner != Combiner::kNone && s->combiner != Combiner::kSum) return spell_named(s, "");
  ShardingSpelling out;
  if (auto kind = kind_of_whole(s)) {
    out.kind = *kind;
    return out;
  }
  out.kind = Kind::kTiled;
  std::vector<Piece> digits;
  for (int d = 0; d < s.rank(); ++d) {
    out.tile_dims.push_back(s.shards(d));
    append_digits(s.mesh(), s.dim(d), &digits);
  }
  const AxisSet copies = s.mesh().all_axes() - s->splitting() - s->manual - s->pending;
  const std::pair<AxisSet, SubgroupType> groups[] = {{s->manual, SubgroupType::kManual},
                                                     {s->pending, SubgroupType::kUnreduced},
                                                     {copies, SubgroupType::kReplicated}};
  for (auto [axes, type] : groups) {
    if (axes.empty()) continue;
    out.tile_dims.push_back(s.mesh().product(axes));
    out.subgroups.push_back(type);
    append_digits(s.mesh(), list_of(axes), &digits);
  }
  out.subgroups_spelled_as_list =
      out.subgroups.size() > 1 ||
      (out.subgroups.size() == 1 && out.subgroups[0] != SubgroupType::kReplicated);
  out.devices = reorder(table_of(s.mesh()), s.mesh().num_devices(), digits);
  sort_copies(s.mesh().product(copies), &out.devices);
  return out;
}

ShardingSpelling spell_named(Sharding s, std::string_view mesh_name) {
  ShardingSpelling out;
  out.kind = Kind::kNamed;
  out.mesh_name = mesh_name;
  if (mesh_name.empty()) out.mesh = name_mesh(s.mesh());
  for (int d = 0; d < s.rank(); ++d) {
    out.dims.emplace_back();
    out.dims.back().axes = name_axes(s.mesh(), s.dim(d));
  }
  out.replicated_axes = name_axes(s.mesh(), list_of(s->replicated));
  out.manual_axes = name_axes(s.mesh(), list_of(s->manual));
  out.unreduced_axes = name_axes(s.mesh(), list_of(s->pending));
  if (!s->pending.empty()) out.unreduced_combiner = s->combiner;
  return out;
}

}  // namespace gspmd
