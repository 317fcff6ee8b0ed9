#include "gspmd/sharding/sharding.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <deque>

#include "gspmd/base/check.h"

namespace gspmd {
namespace {

// Hash and equality by content, so that a lookup needs no copy.
struct DataHash {
  size_t operator()(const ShardingData* data) const { return absl::HashOf(*data); }
};
struct DataEqual {
  bool operator()(const ShardingData* a, const ShardingData* b) const { return *a == *b; }
};

void check_axes(const ShardingData& data) {
  AxisSet seen = data.replicated;
  const auto add = [&](AxisSet axes, std::string_view what) {
    GSPMD_CHECK(!seen.intersects(axes), fmt::format("an axis is used twice, once as {}", what));
    seen |= axes;
  };
  add(data.manual, "manual");
  add(data.pending, "pending");
  for (const AxisList& dim : data.dims) {
    add(dim.set(), "a dimension's");
    GSPMD_CHECK(dim.set().size() == dim.size(), "an axis stands twice in one dimension");
  }
  GSPMD_CHECK(data.mesh->all_axes().contains_all(seen), "an axis that the mesh does not have");
  GSPMD_CHECK(data.pending.empty() == (data.combiner == Combiner::kNone),
              "a combiner without pending axes, or the reverse");
}

// How many of the axes from list[i] on are adjacent parts of one user's axis, major to minor:
// y:(1)2, y:(2)2 are the whole y.
template <typename List>
int joined_run(const Mesh& mesh, const List& list, int i) {
  const Mesh::Axis& first = mesh.axis(list[i]);
  int64_t next_pre = first.pre * first.size;
  int n = 1;
  for (; i + n < static_cast<int>(list.size()); ++n) {
    const Mesh::Axis& axis = mesh.axis(list[i + n]);
    if (axis.name != first.name || axis.pre != next_pre) break;
    next_pre *= axis.size;
  }
  return n;
}

template <typename List>
std::string print_axes(const Mesh& mesh, const List& list) {
  std::string out = "{";
  for (int i = 0; i < static_cast<int>(list.size());) {
    const Mesh::Axis& first = mesh.axis(list[i]);
    const int n = joined_run(mesh, list, i);
    int64_t size = 1;
    for (int k = i; k < i + n; ++k) size *= mesh.size(list[k]);
    if (i > 0) out += ',';
    out += first.name;
    if (size != first.whole) fmt::format_to(std::back_inserter(out), ":({}){}", first.pre, size);
    i += n;
  }
  return out + "}";
}

}  // namespace

DimVector Sharding::local_dims(absl::Span<const int64_t> dims) const {
  GSPMD_CHECK(static_cast<int>(dims.size()) == rank(),
              fmt::format("a sharding of rank {} on an array of rank {}", rank(), dims.size()));
  DimVector out(dims.size());
  for (int d = 0; d < rank(); ++d) out[d] = local_size(d, dims[d]);
  return out;
}

bool Sharding::is_replicated() const {
  if (!data_->manual.empty() || !data_->pending.empty()) return false;
  return std::all_of(data_->dims.begin(), data_->dims.end(),
                     [](const AxisList& dim) { return dim.empty(); });
}

bool Sharding::splits_evenly(absl::Span<const int64_t> dims) const {
  GSPMD_CHECK(static_cast<int>(dims.size()) == rank(),
              fmt::format("a sharding of rank {} on an array of rank {}", rank(), dims.size()));
  for (int d = 0; d < rank(); ++d) {
    if (dims[d] % shards(d) != 0) return false;
  }
  return true;
}

bool refines(Sharding fine, Sharding coarse) {
  if (fine == coarse) return true;
  if (fine.rank() != coarse.rank() || fine->manual != coarse->manual ||
      fine->pending != coarse->pending || fine->combiner != coarse->combiner) {
    return false;
  }
  // Axes of different meshes have nothing to do with each other; but whoever holds everything holds
  // any part.
  if (fine->mesh != coarse->mesh) return fine->manual.empty() && coarse.is_replicated();
  for (int d = 0; d < fine.rank(); ++d) {
    if (!fine.dim(d).starts_with(coarse.dim(d))) return false;
  }
  return true;
}

std::string_view to_string(Combiner c) {
  switch (c) {
    case Combiner::kNone:
      return "none";
    case Combiner::kSum:
      return "sum";
    case Combiner::kProduct:
      return "product";
    case Combiner::kMin:
      return "min";
    case Combiner::kMax:
      return "max";
    case Combiner::kAnd:
      return "and";
    case Combiner::kOr:
      return "or";
    case Combiner::kXor:
      return "xor";
  }
  return "none";
}

std::string to_string(const Mesh& mesh, const AxisList& axes) { return print_axes(mesh, axes); }

std::string to_string(const Mesh& mesh, AxisSet axes) {
  AxisList list;
  axes.for_each([&](AxisId a) { list.push_back(a); });
  return print_axes(mesh, list);
}

std::string to_string(Sharding s) {
  if (!s) return "none";
  std::string out = "[";
  for (int d = 0; d < s.rank(); ++d) {
    if (d > 0) out += ", ";
    out += to_string(s.mesh(), s.dim(d));
  }
  out += "]";
  if (!s->replicated.empty()) out += " replicated=" + to_string(s.mesh(), s->replicated);
  if (!s->manual.empty()) out += " manual=" + to_string(s.mesh(), s->manual);
  if (!s->pending.empty()) {
    out += fmt::format(" pending={}{}", to_string(s->combiner), to_string(s.mesh(), s->pending));
  }
  return out;
}

struct ShardingPool::Impl {
  std::deque<Mesh> meshes;
  std::deque<ShardingData> shardings;
  absl::flat_hash_set<const ShardingData*, DataHash, DataEqual> interned;
};

ShardingPool::ShardingPool() : impl_(std::make_unique<Impl>()) {}
ShardingPool::~ShardingPool() = default;
ShardingPool::ShardingPool(ShardingPool&&) noexcept = default;
ShardingPool& ShardingPool::operator=(ShardingPool&&) noexcept = default;

const Mesh* ShardingPool::add_mesh(Mesh mesh) {
  for (const Mesh& known : impl_->meshes) {  // few: a module has one, rarely a second
    if (known == mesh) return &known;
  }
  return &impl_->meshes.emplace_back(std::move(mesh));
}

Sharding ShardingPool::intern(const ShardingData& data) {
  if (auto it = impl_->interned.find(&data); it != impl_->interned.end()) return Sharding(*it);
  check_axes(data);
  const ShardingData* own = &impl_->shardings.emplace_back(data);
  impl_->interned.insert(own);
  return Sharding(own);
}

Sharding ShardingPool::replicated(const Mesh* mesh, int rank) {
  ShardingData data;
  data.mesh = mesh;
  data.dims.resize(rank);
  return intern(data);
}

}  // namespace gspmd
