#include "gspmd/sharding/refinement.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <deque>
#include <numeric>
#include <optional>
#include <set>

#include "gspmd/base/check.h"
#include "gspmd/base/error.h"
#include "gspmd/sharding/mesh_family.h"

namespace gspmd {
namespace {

using Kind = ShardingSpelling::Kind;

// Equality of meaning: metadata and sharding groups stand beside it.
struct Key {
  const ShardingSpelling* s;

  friend bool operator==(Key a, Key b) {
    return a.s->kind == b.s->kind && a.s->tile_dims == b.s->tile_dims &&
           a.s->devices == b.s->devices && a.s->subgroups == b.s->subgroups &&
           a.s->mesh_name == b.s->mesh_name && a.s->dims == b.s->dims && a.s->mesh == b.s->mesh &&
           a.s->replicated_axes == b.s->replicated_axes &&
           a.s->unreduced_axes == b.s->unreduced_axes && a.s->manual_axes == b.s->manual_axes &&
           a.s->unreduced_combiner == b.s->unreduced_combiner;
  }
  template <typename H>
  static H add_axes(H h, const std::vector<NamedAxis>& axes) {
    for (const NamedAxis& axis : axes) h = H::combine(std::move(h), axis.name, axis.pre, axis.size);
    return H::combine(std::move(h), axes.size());
  }
  template <typename H>
  friend H AbslHashValue(H h, Key key) {
    const ShardingSpelling& s = *key.s;
    h = H::combine(std::move(h), s.tile_dims, s.devices.reshape, s.devices.perm, s.devices.ids,
                   s.subgroups.size(), s.mesh_name, s.mesh.axes, s.dims.size());
    for (const NamedDim& dim : s.dims) h = add_axes(std::move(h), dim.axes);
    return add_axes(add_axes(std::move(h), s.replicated_axes), s.unreduced_axes);
  }
};

// A spelling that was seen, and what it means.
struct Entry {
  ShardingSpelling spelling;
  int64_t count = 0;
  std::optional<Error> error;  // found while reading; thrown where a value is to have it
  Demand demand;
  int family = -1;  // of the meshes; -1 = any (trivial)
  Annotation annotation;
  bool resolved = false;
};

struct EntryHash {
  using is_transparent = void;
  size_t operator()(const Entry* e) const { return absl::HashOf(Key{&e->spelling}); }
  size_t operator()(Key key) const { return absl::HashOf(key); }
};
struct EntryEqual {
  using is_transparent = void;
  bool operator()(const Entry* a, const Entry* b) const { return a == b; }
  bool operator()(const Entry* a, Key b) const { return Key{&a->spelling} == b; }
  bool operator()(Key a, const Entry* b) const { return Key{&b->spelling} == a; }
};

bool asks_for_a_mesh(const ShardingSpelling& s) {
  if (s.kind == Kind::kNamed) return !s.named_whole && !s.mesh.maximal_device;
  return s.kind == Kind::kTiled;
}

}  // namespace

struct MeshRefinement::Impl {
  int64_t num_devices;
  NamedMeshes named_meshes;
  std::vector<MeshFamily> families;
  int main = 0;
  bool finished = false;
  std::deque<Entry> entries;
  absl::flat_hash_set<Entry*, EntryHash, EntryEqual> by_spelling;
  std::set<int64_t> factor_boundaries;

  Entry& entry_of(const ShardingSpelling& spelling);
  int find_family(const Demand& demand, Demand* placed) const;
  void assign(Entry* entry);
  void name_axes(const NamedMesh& mesh, int64_t weight);
  void make_meshes(ShardingPool* pool);
};

namespace {

void describe(const ShardingSpelling& s, const MeshFamily& family, const Demand& placed,
              Annotation* out, ShardingData* data) {
  for (const auto& pieces : placed.dims) data->dims.push_back(family.axes_of(pieces));
  data->replicated = family.axes_of(placed.replicated).set();
  data->manual = family.axes_of(placed.manual).set();
  data->pending = family.axes_of(placed.pending).set();
  data->combiner = data->pending.empty() ? Combiner::kNone : placed.combiner;
  for (size_t d = 0; d < s.dims.size(); ++d) {
    if (s.dims[d].open && d < 64) out->open_dims |= uint64_t{1} << d;
    if (!s.dims[d].priority) continue;
    out->dim_priority.resize(s.dims.size());
    out->dim_priority[d] = *s.dims[d].priority;
  }
}

void check_rank(const ShardingSpelling& s, size_t rank_of_spelling, int rank) {
  if (static_cast<int>(rank_of_spelling) == rank) return;
  throw Error(
      fmt::format("a sharding of {} dimensions on a value of {}", rank_of_spelling, rank),
      s.kind == Kind::kTiled
          ? "devices=[...] has a number for each dimension, then one for each of last_tile_dims"
          : "write one {} for each dimension");
}

}  // namespace

// The entry of a spelling, made if it is new; errors in it are kept for resolve().
Entry& MeshRefinement::Impl::entry_of(const ShardingSpelling& spelling) {
  if (auto it = by_spelling.find(Key{&spelling}); it != by_spelling.end()) return **it;
  Entry& entry = entries.emplace_back();
  entry.spelling = spelling;
  by_spelling.insert(&entry);
  try {
    const bool maximal =
        spelling.kind == Kind::kNamed && mesh_of(spelling, named_meshes).maximal_device.has_value();
    if (maximal) {
      entry.demand.dims.resize(spelling.dims.size());
    } else {
      entry.demand = make_demand(spelling, named_meshes, num_devices);
    }
  } catch (const Error& error) {
    entry.error = error;
  }
  return entry;
}

// The family with the most annotations among those whose places express the demand; -1 where there
// is none.
int MeshRefinement::Impl::find_family(const Demand& demand, Demand* placed) const {
  int best = -1;
  for (int f = 0; f < static_cast<int>(families.size()); ++f) {
    const MeshFamily& family = families[f];
    const bool better = best < 0 || (finished ? f == main : family.weight > families[best].weight);
    if (!better) continue;
    auto translated = family.place(demand);
    if (!translated || !family.nests(translated->boundaries(), finished)) continue;
    best = f;
    *placed = *std::move(translated);
  }
  return best;
}

void MeshRefinement::Impl::assign(Entry* entry) {
  if (entry->error || entry->demand.trivial()) return;
  Demand placed;
  int family = find_family(entry->demand, &placed);
  if (family < 0) {
    family = static_cast<int>(families.size());
    families.push_back(MeshFamily::of(entry->demand));
    placed = *families.back().place(entry->demand);
  }
  if (!finished || families[family].mesh == nullptr) {
    families[family].chain.add(placed.boundaries());
    families[family].weight += entry->count;
  }
  entry->family = family;
  entry->demand = std::move(placed);
}

// Notes the mesh's axes where a family has its places and no names yet.
void MeshRefinement::Impl::name_axes(const NamedMesh& mesh, int64_t weight) {
  if (mesh.maximal_device || mesh.axes.empty()) return;
  std::optional<Demand> demand;
  try {
    demand = make_demand(mesh, num_devices);
  } catch (const Error&) {
    return;  // too many devices: an error where a value uses this mesh, not before
  }
  if (demand->trivial()) return;
  Demand placed;
  int family = find_family(*demand, &placed);
  if (family < 0) {
    family = static_cast<int>(families.size());
    families.push_back(MeshFamily::of(*demand));
    placed = *families.back().place(*demand);
  }
  families[family].chain.add(placed.boundaries());
  families[family].weight += weight;
  families[family].add_names(mesh, placed);
}

void MeshRefinement::Impl::make_meshes(ShardingPool* pool) {
  for (int f = 1; f < static_cast<int>(families.size()); ++f) {
    const MeshFamily& family = families[f];
    if (family.places == num_devices && family.weight > families[main].weight) main = f;
  }
  // Places of different orders share their cuts where these nest: the step between them is then a
  // plain permutation.
  for (MeshFamily& family : families) {
    if (family.places == num_devices) families[main].chain.add(family.chain.cuts());
  }
  for (MeshFamily& family : families) {
    for (int64_t major : factor_boundaries) family.chain.cut_at_factor(major);
  }
  for (MeshFamily& family : families) {
    if (family.places == num_devices) family.chain.add(families[main].chain.cuts());
    family.make_mesh(pool);
  }
}

MeshRefinement::MeshRefinement(ShardingPool* pool, int64_t num_devices,
                               std::vector<std::pair<std::string, NamedMesh>> named_meshes)
    : pool_(pool), impl_(std::make_shared<Impl>()) {
  GSPMD_CHECK(num_devices >= 1, fmt::format("{} devices", num_devices));
  impl_->num_devices = num_devices;
  impl_->named_meshes = std::move(named_meshes);
  impl_->families.emplace_back(num_devices);
  for (const auto& named : impl_->named_meshes) impl_->name_axes(named.second, 0);
}

void MeshRefinement::note(const ShardingSpelling& spelling, int64_t times) {
  GSPMD_CHECK(!impl_->finished, "note() after finish()");
  for (const ShardingSpelling& element : spelling.elements) note(element, times);
  if (asks_for_a_mesh(spelling)) impl_->entry_of(spelling).count += times;
}

void MeshRefinement::note_sizes(const ShardingSpelling& spelling, absl::Span<const int64_t> sizes) {
  if (!asks_for_a_mesh(spelling)) return;
  const Demand& demand = impl_->entry_of(spelling).demand;
  for (size_t d = 0; d < std::min(sizes.size(), demand.dims.size()); ++d) {
    int64_t shards = 1;
    for (const Piece& piece : demand.dims[d]) shards *= piece.size;
    int64_t dividing = std::gcd(shards, sizes[d]);
    if (dividing > 1 && dividing < shards) impl_->factor_boundaries.insert(dividing);
  }
}

void MeshRefinement::note_factor_boundary(int64_t major, int64_t minor) {
  if (major > 1 && minor > 1) impl_->factor_boundaries.insert(major);
}

void MeshRefinement::finish() {
  GSPMD_CHECK(!impl_->finished, "finish() called twice");
  // The most used spelling decides where two do not nest. Where some list orders the devices in a
  // way of its own, spellings without copies come first: they make the meshes, and copies, whose
  // order means nothing, are then read in the most used one.
  std::vector<Entry*> order;
  bool has_lists = false;
  for (Entry& entry : impl_->entries) {
    order.push_back(&entry);
    has_lists = has_lists || !entry.demand.order.empty();
  }
  std::stable_sort(order.begin(), order.end(), [&](const Entry* a, const Entry* b) {
    const bool a_copies = has_lists && a->demand.copies() > 1;
    const bool b_copies = has_lists && b->demand.copies() > 1;
    return a_copies != b_copies ? b_copies : a->count > b->count;
  });
  for (Entry* entry : order) {
    if (!entry->error && !entry->spelling.mesh.axes.empty()) {
      impl_->name_axes(entry->spelling.mesh, 0);
    }
    impl_->assign(entry);
  }
  impl_->make_meshes(pool_);
  impl_->finished = true;
  main_ = impl_->families[impl_->main].mesh;
}

Annotation MeshRefinement::resolve(const ShardingSpelling& spelling, int rank) {
  GSPMD_CHECK(impl_->finished, "resolve() before finish()");
  GSPMD_CHECK(spelling.kind != Kind::kTuple, "resolve() of a tuple: take its elements");
  const auto maximal = spelling.kind == Kind::kNamed
                           ? mesh_of(spelling, impl_->named_meshes).maximal_device
                           : std::nullopt;
  Annotation out = asks_for_a_mesh(spelling) && !maximal ? resolve_split(spelling, rank)
                                                         : resolve_whole(spelling, rank);
  if (maximal) out.maximal_device = *maximal;
  out.group = spelling.group;
  out.group_id = spelling.group_id;
  if (out.maximal_device >= impl_->num_devices) {
    throw Error(fmt::format("device {} of {}", out.maximal_device, impl_->num_devices),
                fmt::format("devices are 0 to {}", impl_->num_devices - 1));
  }
  return out;
}

Annotation MeshRefinement::resolve_split(const ShardingSpelling& spelling, int rank) {
  Entry& entry = impl_->entry_of(spelling);
  if (entry.error) throw *entry.error;
  check_rank(spelling, entry.demand.dims.size(), rank);
  if (entry.resolved) return entry.annotation;
  if (entry.family < 0) {
    impl_->assign(&entry);
    if (entry.family >= 0) impl_->families[entry.family].make_mesh(pool_);
  }
  const MeshFamily& family = impl_->families[entry.family < 0 ? impl_->main : entry.family];
  ShardingData data;
  data.mesh = family.mesh;
  describe(spelling, family, entry.demand, &entry.annotation, &data);
  entry.annotation.sharding = pool_->intern(data);
  entry.resolved = true;
  return entry.annotation;
}

Annotation MeshRefinement::resolve_whole(const ShardingSpelling& s, int rank) {
  Annotation out;
  ShardingData data;
  data.mesh = main_;
  data.dims.resize(rank);
  const auto is = [&](Kind kind, SubgroupType whole) {
    return s.kind == kind || (s.kind == Kind::kNamed && s.named_whole == whole);
  };
  if (is(Kind::kManual, SubgroupType::kManual)) data.manual = main_->all_axes();
  if (is(Kind::kUnreduced, SubgroupType::kUnreduced) && main_->num_axes() > 0) {
    data.pending = main_->all_axes();
    data.combiner = s.unreduced_combiner;
  }
  if (s.kind == Kind::kMaximal) out.maximal_device = s.device;
  if (s.kind == Kind::kUnknown) {
    out.unknown = true;
    out.open_dims = rank >= 64 ? ~uint64_t{0} : (uint64_t{1} << rank) - 1;
  }
  out.sharding = pool_->intern(data);
  return out;
}

}  // namespace gspmd
