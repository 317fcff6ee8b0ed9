#include "gspmd/formats/proto/proto_sharding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gspmd/base/error.h"
#include "gspmd/sharding/iota.h"

namespace gspmd {
namespace {

using Kind = ShardingSpelling::Kind;
using proto::OpSharding;

// How OpSharding numbers its types, which are also those of subgroups.
enum TypeNumber : int64_t { kReplicated, kMaximal, kTuple, kOther, kManual, kUnknown, kUnreduced };

constexpr std::pair<int64_t, SubgroupType> kSubgroups[] = {{kReplicated, SubgroupType::kReplicated},
                                                           {kMaximal, SubgroupType::kMaximal},
                                                           {kManual, SubgroupType::kManual},
                                                           {kUnreduced, SubgroupType::kUnreduced}};
constexpr std::pair<int64_t, Kind> kKinds[] = {
    {kReplicated, Kind::kReplicated}, {kMaximal, Kind::kMaximal}, {kTuple, Kind::kTuple},
    {kOther, Kind::kTiled},           {kManual, Kind::kManual},   {kUnknown, Kind::kUnknown},
    {kUnreduced, Kind::kUnreduced}};
constexpr std::pair<int64_t, Combiner> kReductions[] = {
    {0, Combiner::kSum}, {1, Combiner::kMax}, {2, Combiner::kMin}};

template <typename T, size_t N>
T named(const std::pair<int64_t, T> (&table)[N], int64_t number, std::string_view what) {
  for (auto [n, value] : table) {
    if (n == number) return value;
  }
  throw Error(fmt::format("{} number {} of a sharding is unknown", what, number));
}

template <typename T, size_t N>
int64_t number(const std::pair<int64_t, T> (&table)[N], T value) {
  for (auto [n, v] : table) {
    if (v == value) return n;
  }
  throw Error("a sharding that has no message");
}

template <typename Reshape, typename Perm>
IdList iota(const Reshape& reshape, const Perm& perm) {
  std::vector<int64_t> dims(reshape.begin(), reshape.end());
  std::vector<int> order(perm.begin(), perm.end());
  if (order.empty()) {
    for (size_t k = 0; k < dims.size(); ++k) order.push_back(static_cast<int>(k));
  }
  std::vector<bool> seen(dims.size());
  bool good = order.size() == dims.size();
  for (size_t k = 0; good && k < order.size(); ++k) {
    size_t d = static_cast<size_t>(order[k]);
    good = order[k] >= 0 && d < dims.size() && !seen[d] && dims[k] >= 1;
    if (good) seen[d] = true;
  }
  if (!good || !checked_product(dims)) throw Error("a device list that is no iota");
  return make_iota(dims, order);
}

NamedMesh read_mesh(const proto::MeshProto& from) {
  NamedMesh mesh;
  for (const auto& axis : from.axes()) mesh.axes.emplace_back(axis.name(), axis.size());
  if (mesh.axes.empty() && from.device_ids_size() == 1) {
    mesh.maximal_device = from.device_ids(0);
  } else if (from.device_ids_size() > 0) {
    std::vector<int64_t> ids(from.device_ids().begin(), from.device_ids().end());
    mesh.device_ids = as_iota(ids).value_or(IdList{.ids = ids});
  } else if (from.has_iota_transform()) {
    mesh.device_ids =
        iota(from.iota_transform().reshape_dims(), from.iota_transform().transpose_perm());
  }
  return mesh;
}

void write_mesh(const NamedMesh& mesh, proto::MeshProto* to) {
  for (const auto& [name, size] : mesh.axes) {
    auto* axis = to->add_axes();
    axis->set_name(name);
    axis->set_size(size);
  }
  if (mesh.maximal_device) to->add_device_ids(*mesh.maximal_device);
  if (mesh.device_ids.size() == 0) return;
  std::vector<int64_t> ids = expand_ids(mesh.device_ids);
  to->mutable_device_ids()->Add(ids.begin(), ids.end());
}

template <typename List>
std::vector<NamedAxis> read_axes(const NamedMesh& mesh, const List& from) {
  std::vector<NamedAxis> axes;
  for (const auto& ref : from) {
    int64_t k = ref.mesh_axis_index();
    if (k < 0 || k >= static_cast<int64_t>(mesh.axes.size())) {
      throw Error(fmt::format("axis {} of a mesh of {} axes", k, mesh.axes.size()));
    }
    NamedAxis axis{.name = mesh.axes[static_cast<size_t>(k)].first};
    if (ref.has_sub_axis_info()) {
      axis.pre = ref.sub_axis_info().pre_size();
      axis.size = ref.sub_axis_info().size();
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

template <typename List>
void write_axes(const NamedMesh& mesh, const std::vector<NamedAxis>& axes, List* to) {
  for (const NamedAxis& axis : axes) {
    auto* ref = to->Add();
    int64_t k = 0;
    while (mesh.axes[static_cast<size_t>(k)].first != axis.name) ++k;
    ref->set_mesh_axis_index(k);
    if (axis.size == 0) continue;
    ref->mutable_sub_axis_info()->set_pre_size(axis.pre);
    ref->mutable_sub_axis_info()->set_size(axis.size);
  }
}

std::vector<NamedAxis> all_axes(const NamedMesh& mesh) {
  std::vector<NamedAxis> all;
  for (const auto& [name, size] : mesh.axes) all.push_back({.name = name});
  return all;
}

void read_named(const proto::NamedShardingProto& from, ShardingSpelling* s) {
  s->kind = Kind::kNamed;
  s->mesh = read_mesh(from.mesh());
  for (const auto& dim : from.dim_shardings()) {
    s->dims.push_back({.axes = read_axes(s->mesh, dim.axes()), .open = !dim.is_closed()});
  }
  s->replicated_axes = read_axes(s->mesh, from.replicated_axes());
  s->unreduced_axes = read_axes(s->mesh, from.unreduced_axes());
  s->manual_axes = read_axes(s->mesh, from.manual_axes());
  s->unreduced_combiner = named(kReductions, from.reduction_op(), "reduction");
  if (!s->dims.empty() || s->mesh.maximal_device) return;
  std::vector<NamedAxis> all = all_axes(s->mesh);
  if (s->manual_axes == all) {
    s->named_whole = SubgroupType::kManual;
    s->manual_axes.clear();
  } else if (s->unreduced_axes == all) {
    s->named_whole = SubgroupType::kUnreduced;
    s->unreduced_axes.clear();
  } else if (s->manual_axes.empty() && s->unreduced_axes.empty() && s->replicated_axes.empty()) {
    s->named_whole = SubgroupType::kReplicated;
  }
}

void write_named(const ShardingSpelling& s, proto::NamedShardingProto* to) {
  write_mesh(s.mesh, to->mutable_mesh());
  for (const NamedDim& dim : s.dims) {
    auto* d = to->add_dim_shardings();
    write_axes(s.mesh, dim.axes, d->mutable_axes());
    d->set_is_closed(!dim.open);
  }
  bool manual = s.named_whole == SubgroupType::kManual;
  bool unreduced = s.named_whole == SubgroupType::kUnreduced;
  write_axes(s.mesh, s.replicated_axes, to->mutable_replicated_axes());
  write_axes(s.mesh, unreduced ? all_axes(s.mesh) : s.unreduced_axes, to->mutable_unreduced_axes());
  write_axes(s.mesh, manual ? all_axes(s.mesh) : s.manual_axes, to->mutable_manual_axes());
  to->set_reduction_op(number(kReductions, s.unreduced_combiner));
}

void read_tiles(const OpSharding& from, ShardingSpelling* s) {
  s->tile_dims.assign(from.tile_assignment_dimensions().begin(),
                      from.tile_assignment_dimensions().end());
  if (from.tile_assignment_devices_size() > 0) {
    s->devices.ids.assign(from.tile_assignment_devices().begin(),
                          from.tile_assignment_devices().end());
  } else if (from.iota_reshape_dims_size() > 0) {
    s->devices = iota(from.iota_reshape_dims(), from.iota_transpose_perm());
  }
  if (from.replicate_on_last_tile_dim()) s->subgroups = {SubgroupType::kReplicated};
  s->subgroups_spelled_as_list = from.last_tile_dims_size() > 0;
  for (int64_t type : from.last_tile_dims()) {
    s->subgroups.push_back(named(kSubgroups, type, "subgroup"));
  }
}

void write_tiles(const ShardingSpelling& s, OpSharding* to) {
  to->mutable_tile_assignment_dimensions()->Add(s.tile_dims.begin(), s.tile_dims.end());
  if (s.devices.is_iota()) {
    to->mutable_iota_reshape_dims()->Add(s.devices.reshape.begin(), s.devices.reshape.end());
    to->mutable_iota_transpose_perm()->Add(s.devices.perm.begin(), s.devices.perm.end());
  } else {
    to->mutable_tile_assignment_devices()->Add(s.devices.ids.begin(), s.devices.ids.end());
  }
  bool by_flag = !s.subgroups_spelled_as_list && s.subgroups.size() == 1;
  to->set_replicate_on_last_tile_dim(by_flag && s.subgroups[0] == SubgroupType::kReplicated);
  if (to->replicate_on_last_tile_dim()) return;
  for (SubgroupType type : s.subgroups) to->add_last_tile_dims(number(kSubgroups, type));
}

ShardingSpelling read_unchecked(const OpSharding& from) {
  ShardingSpelling s;
  s.kind = named(kKinds, from.type(), "type");
  if (from.has_named_sharding()) {
    read_named(from.named_sharding(), &s);
  } else if (s.kind == Kind::kTiled) {
    read_tiles(from, &s);
  } else if (s.kind == Kind::kMaximal) {
    if (from.tile_assignment_devices_size() != 1) throw Error("a maximal sharding without device");
    s.device = from.tile_assignment_devices(0);
  }
  for (const OpSharding& e : from.tuple_shardings()) s.elements.push_back(read_unchecked(e));
  if (from.is_shard_group()) {
    s.group = from.shard_group_type() == 0 ? ShardingSpelling::Group::kShardAs
                                           : ShardingSpelling::Group::kShardLike;
    s.group_id = from.shard_group_id();
  }
  return s;
}

}  // namespace

ShardingSpelling read_sharding(const OpSharding& from) {
  ShardingSpelling s = read_unchecked(from);
  normalize(&s);
  return s;
}

void write_sharding(const ShardingSpelling& s, OpSharding* to) {
  if (s.kind == Kind::kNamed) {
    write_named(s, to->mutable_named_sharding());
  } else {
    to->set_type(number(kKinds, s.kind));
  }
  if (s.kind == Kind::kTiled) write_tiles(s, to);
  if (s.kind == Kind::kMaximal) {
    to->add_tile_assignment_dimensions(1);
    to->add_tile_assignment_devices(s.device);
  }
  for (const ShardingSpelling& e : s.elements) write_sharding(e, to->add_tuple_shardings());
  if (s.group == ShardingSpelling::Group::kNone) return;
  to->set_is_shard_group(true);
  to->set_shard_group_id(s.group_id);
  to->set_shard_group_type(s.group == ShardingSpelling::Group::kShardAs ? 0 : 1);
}

namespace {

template <typename Groups>
std::string lists(const Groups& groups) {
  std::string text;
  for (const auto& g : groups) {
    text += fmt::format("{}{{{}}}", text.empty() ? "" : ",", fmt::join(g.replica_ids(), ","));
  }
  return "{" + text + "}";
}

// mesh['a'=4,'b'=2] {'a'}
std::string mesh_form(const proto::MeshAxesReplicaGroupList& list) {
  ShardingSpelling s;
  s.kind = Kind::kNamed;
  s.mesh = read_mesh(list.mesh());
  normalize(&s.mesh);
  std::string axes;
  for (const NamedAxis& a : read_axes(s.mesh, list.axes())) {
    axes += fmt::format("{}'{}'", axes.empty() ? "" : ",", a.name);
    if (a.size != 0) axes += fmt::format(":({}){}", a.pre, a.size);
  }
  s.named_whole = SubgroupType::kReplicated;
  std::string mesh = print_hlo_sharding(s);  // {mesh[...], replicated}
  return fmt::format("{} {{{}}}", mesh.substr(1, mesh.rfind(',') - 1), axes);
}

}  // namespace

const DeviceGroups* read_groups(Context& context, const proto::HloInstructionProto& from) {
  std::string text;
  if (from.has_collective_device_list()) {
    text = lists(from.collective_device_list().replica_groups());
  } else if (from.has_iota_collective_device_list()) {
    const auto& list = from.iota_collective_device_list();
    text = fmt::format("[{},{}]{}", list.num_replica_groups(), list.num_devices_per_group(),
                       print_iota(iota(list.iota_reshape_dims(), list.iota_transpose_perm())));
  } else if (from.has_mesh_axes_replica_group_list()) {
    text = mesh_form(from.mesh_axes_replica_group_list());
  } else if (from.replica_groups_size() > 0) {
    text = lists(from.replica_groups());
  } else {
    return nullptr;
  }
  try {
    size_t position = 0;
    return context.groups(parse_replica_groups(text, &position));
  } catch (const SpellingError& e) {
    throw Error(fmt::format("replica groups {}: {}", text, e.message), e.hint);
  }
}

namespace {

// mesh['a'=4,'b'=2] {'a'}, read as a sharding that names the same axes.
void write_mesh_groups(const std::string& form, proto::MeshAxesReplicaGroupList* to) {
  size_t axes = form.rfind('{'), position = 0;
  std::string mesh = form.substr(0, form.find_last_not_of(", ", axes - 1) + 1);
  ShardingSpelling s = parse_hlo_sharding(
      fmt::format("{{{}, [], replicated={}}}", mesh, form.substr(axes)), &position);
  write_mesh(s.mesh, to->mutable_mesh());
  write_axes(s.mesh, s.replicated_axes, to->mutable_axes());
}

}  // namespace

void write_groups(const DeviceGroups* groups, bool mesh_groups, proto::HloInstructionProto* to) {
  if (groups == nullptr || groups->num_groups == 0) return;
  if (mesh_groups && !groups->mesh_form.empty()) {
    return write_mesh_groups(groups->mesh_form, to->mutable_mesh_axes_replica_group_list());
  }
  if (groups->ids.is_iota()) {
    auto* list = to->mutable_iota_collective_device_list();
    list->set_num_replica_groups(groups->num_groups);
    list->set_num_devices_per_group(groups->group_size);
    list->mutable_iota_reshape_dims()->Add(groups->ids.reshape.begin(), groups->ids.reshape.end());
    list->mutable_iota_transpose_perm()->Add(groups->ids.perm.begin(), groups->ids.perm.end());
    return;
  }
  auto* list = to->mutable_collective_device_list();
  for (int64_t g = 0; g < groups->num_groups; ++g) {
    const int64_t* row = groups->ids.ids.data() + g * groups->group_size;
    list->add_replica_groups()->mutable_replica_ids()->Add(row, row + groups->group_size);
  }
}

}  // namespace gspmd
