#include "reshard_simulation.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

namespace gspmd {
namespace {

// Calls f(index) for each index of a row-major array.
template <typename F>
void for_each_index(const std::vector<int64_t>& shape, F f) {
  for (int64_t n : shape) {
    if (n == 0) return;
  }
  std::vector<int64_t> index(shape.size(), 0);
  for (;;) {
    f(index);
    int d = static_cast<int>(shape.size()) - 1;
    while (d >= 0 && ++index[d] == shape[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

int64_t flat(const std::vector<int64_t>& shape, const std::vector<int64_t>& index) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
  return at;
}

int64_t volume(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

AxisList list_of_axes(AxisSet set) {
  AxisList list;
  set.for_each([&](AxisId a) { list.push_back(a); });
  return list;
}

}  // namespace

Simulation::Simulation(Sharding from, absl::Span<const int64_t> dims)
    : dims_(dims.begin(), dims.end()), from_(from), layouts_(interface_layouts(from, dims)) {
  enter(from.mesh());
  AxisList pending = list_of_axes(from->pending);
  for (int64_t device = 0; device < mesh_->num_devices(); ++device) {
    Local local;
    for (const DimLayout& l : layouts_) local.shape.push_back(l.block);
    local.cells.resize(volume(local.shape));
    uint64_t parts = uint64_t{1} << number_along(device, pending);
    parts_at_start_.push_back(parts);
    for_each_index(local.shape, [&](const std::vector<int64_t>& index) {
      std::vector<int64_t> global = index;
      for (size_t d = 0; d < dims_.size(); ++d) {
        global[d] += number_along(device, layouts_[d].axes) * layouts_[d].block;
        if (global[d] >= dims_[d]) return;
      }
      local.cells[flat(local.shape, index)] = {flat(dims_, global), parts};
    });
    locals_.push_back(std::move(local));
  }
}

void Simulation::enter(const Mesh& mesh) {
  mesh_ = &mesh;
  coordinates_.assign(mesh.num_devices(), {});
  device_at_.assign(mesh.num_devices(), 0);
  for (int64_t position = 0; position < mesh.num_devices(); ++position) {
    int64_t device = mesh.has_device_table() ? mesh.device_of_position()[position] : position;
    device_at_[position] = device;
    for (int a = 0; a < mesh.num_axes(); ++a) {
      coordinates_[device].push_back(position / mesh.stride(a) % mesh.size(a));
    }
  }
}

int64_t Simulation::number_along(int64_t device, const AxisList& axes) const {
  int64_t n = 0;
  for (AxisId a : axes) n = n * mesh_->size(a) + coordinates_[device][a];
  return n;
}

// The devices that differ from this one along `axes` only, by their number along these.
std::vector<int64_t> Simulation::group(int64_t device, const AxisList& axes) const {
  std::vector<int64_t> members;
  for (int64_t n = 0; n < mesh_->product(axes); ++n) {
    Coordinates c = coordinates_[device];
    int64_t rest = n;
    for (int k = axes.size(); k-- > 0; rest /= mesh_->size(axes[k]))
      c[axes[k]] = rest % mesh_->size(axes[k]);
    int64_t position = 0;
    for (int a = 0; a < mesh_->num_axes(); ++a) position += c[a] * mesh_->stride(a);
    members.push_back(device_at_[position]);
  }
  return members;
}

Simulation::Local Simulation::piece(const Local& in, int d, int64_t start, int64_t count) {
  Local out{in.shape, {}};
  out.shape[d] = count;
  out.cells.resize(volume(out.shape));
  for_each_index(out.shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> source = index;
    source[d] += start;
    if (source[d] < in.shape[d])
      out.cells[flat(out.shape, index)] = in.cells[flat(in.shape, source)];
  });
  return out;
}

Simulation::Local Simulation::resized(const Local& in, int d, int64_t block) {
  return piece(in, d, 0, block);
}

Simulation::Local Simulation::gathered(int64_t device, int d, const AxisList& axes) const {
  int64_t block = locals_[device].shape[d];
  Local out{locals_[device].shape, {}};
  auto members = group(device, axes);
  out.shape[d] = block * static_cast<int64_t>(members.size());
  out.cells.resize(volume(out.shape));
  for_each_index(out.shape, [&](const std::vector<int64_t>& index) {
    const Local& source = locals_[members[index[d] / block]];
    std::vector<int64_t> there = index;
    there[d] %= block;
    out.cells[flat(out.shape, index)] = source.cells[flat(source.shape, there)];
  });
  return out;
}

// Sums over the group. Partial results of different elements, or of one device twice, become
// poison.
Simulation::Local Simulation::reduced(int64_t device, const AxisList& axes) const {
  auto members = group(device, axes);
  Local out = locals_[members[0]];
  for (size_t m = 1; m < members.size(); ++m) {
    const Local& more = locals_[members[m]];
    for (size_t i = 0; i < out.cells.size(); ++i) {
      Cell &sum = out.cells[i], part = more.cells[i];
      bool fits = sum.element == part.element && (sum.parts & part.parts) == 0;
      sum = fits ? Cell{sum.element, sum.parts | part.parts} : Cell{};
    }
  }
  return out;
}

// Each position of the new block is looked for in the own block, where that stays, and in what the
// hops bring.
Simulation::Local Simulation::realigned(const ReshardStep& step, int64_t device) const {
  const DimLayout& layout = layouts_[step.dim];
  HaloNeed need = realign_need(layout, *mesh_, dims_[step.dim], step.block);
  HaloPlan halo = plan_halo(need);
  auto members = group(device, layout.axes);
  int64_t i = number_along(device, layout.axes);
  auto bringer = [&](int64_t position) -> std::optional<int64_t> {
    int64_t j = position / need.block;
    if (j == i && halo.form != HaloPlan::Form::kStride) return j;
    for (const HaloHop& hop : halo.hops) {
      if (hop_source(need, hop, i) != j) continue;
      int64_t start = j * need.block + hop_offset(need, hop, j, i);
      if (position >= start && position < start + hop.width) return j;
    }
    return std::nullopt;
  };
  Local out{locals_[device].shape, {}};
  out.shape[step.dim] = step.block;
  out.cells.resize(volume(out.shape));
  for_each_index(out.shape, [&](const std::vector<int64_t>& index) {
    int64_t position = need.first(i) + index[step.dim];
    auto j = bringer(position);
    if (!j) return;
    const Local& source = locals_[members[*j]];
    std::vector<int64_t> there = index;
    there[step.dim] = position - *j * need.block;
    out.cells[flat(out.shape, index)] = source.cells[flat(source.shape, there)];
  });
  return out;
}

Simulation::Local Simulation::after(const ReshardStep& step, int64_t device) const {
  int64_t mine = number_along(device, step.axes), n = mesh_->product(step.axes);
  auto part = [&](const Local& whole, int d) {
    return piece(whole, d, mine * (whole.shape[d] / n), whole.shape[d] / n);
  };
  switch (step.kind) {
    case StepKind::kSlice:
      return part(locals_[device], step.dim);
    case StepKind::kPadOrTrim:
      return resized(locals_[device], step.dim, step.block);
    case StepKind::kRealign:
      return realigned(step, device);
    case StepKind::kAllGather:
      return gathered(device, step.dim, step.axes);
    case StepKind::kAllToAll:
      return part(gathered(device, step.dim, step.axes), step.to_dim);
    case StepKind::kAllReduce:
      return reduced(device, step.axes);
    case StepKind::kReduceScatter:
      return part(reduced(device, step.axes), step.dim);
    default:
      return {};
  }
}

std::vector<Simulation::Local> Simulation::permuted(const ReshardStep& step) const {
  std::vector<Local> out(locals_.size());
  for (auto [source, target] : expand(step.permutation, *mesh_)) out[target] = locals_[source];
  return out;
}

void Simulation::step(const ReshardStep& step, Sharding to) {
  std::vector<Local> next(locals_.size());
  if (step.kind == StepKind::kPermute) {
    next = permuted(step);
  } else if (step.kind == StepKind::kCrossMesh) {
    std::vector<AxisList> before;
    for (const DimLayout& l : layouts_) before.push_back(l.axes);
    for (auto [source, target] :
         cross_mesh_pairs(from_.mesh(), before, to.mesh(), step.lists_after)) {
      next[step.stays ? source : target] = locals_[source];
    }
  } else {
    for (size_t device = 0; device < locals_.size(); ++device) next[device] = after(step, device);
  }
  locals_ = std::move(next);
  apply(step, *mesh_, &layouts_);
  if (step.kind == StepKind::kCrossMesh) enter(to.mesh());
  for (size_t device = 0; device < locals_.size(); ++device) {
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (locals_[device].shape.empty() || locals_[device].shape[d] != layouts_[d].block) {
        fault_ = absl::StrCat("device ", device, " has another shape than the layouts say");
      }
    }
  }
}

std::string Simulation::compare(Sharding to) const {
  if (layouts_ != interface_layouts(to, dims_)) return "the plan ends in another layout";
  uint64_t all = 0;
  for (uint64_t parts : parts_at_start_) all |= parts;
  for (int64_t device = 0; device < static_cast<int64_t>(locals_.size()); ++device) {
    // Still pending: the device has the sum over those that agree with it along the axes that
    // remain so.
    uint64_t parts = to->pending.empty() ? all : 0;
    if (!to->pending.empty()) {
      for (int64_t other : group(device, list_of_axes(from_->pending - to->pending)))
        parts |= parts_at_start_[other];
    }
    std::string fault;
    for_each_index(locals_[device].shape, [&](const std::vector<int64_t>& index) {
      std::vector<int64_t> global = index;
      for (size_t d = 0; d < dims_.size(); ++d) {
        global[d] += number_along(device, layouts_[d].axes) * layouts_[d].block;
        if (global[d] >= dims_[d]) return;
      }
      Cell got = locals_[device].cells[flat(locals_[device].shape, index)];
      if (got == Cell{flat(dims_, global), parts}) return;
      fault = absl::StrCat("device ", device, " place [", absl::StrJoin(index, ","), "]: element ",
                           got.element, " parts ", got.parts, " instead of ", flat(dims_, global),
                           " parts ", parts);
    });
    if (!fault.empty()) return fault;
  }
  return "";
}

std::string Simulation::run(const ReshardPlan& plan, Sharding to) {
  for (const ReshardStep& s : plan.steps) {
    step(s, to);
    if (!fault_.empty()) return fault_;
  }
  if (mesh_ != &to.mesh()) return "the plan ends on another mesh";
  return compare(to);
}

Mesh small_mesh(std::vector<int64_t> sizes, std::vector<int64_t> devices) {
  std::vector<Mesh::Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    axes.push_back({.name = std::string(1, static_cast<char>(i < 3 ? 'x' + i : 'a' + i - 3)),
                    .size = sizes[i],
                    .pre = 1,
                    .whole = sizes[i]});
  }
  return Mesh(std::move(axes), std::move(devices));
}

std::vector<std::vector<AxisList>> all_placements(const Mesh& mesh, int rank) {
  std::vector<std::vector<AxisList>> out = {std::vector<AxisList>(rank)};
  for (int a = 0; a < mesh.num_axes(); ++a) {
    size_t count = out.size();
    for (size_t k = 0; k < count; ++k) {
      for (int d = 0; d < rank; ++d) {
        for (int place = 0; place <= out[k][d].size(); ++place) {
          auto more = out[k];
          AxisList list = more[d].prefix(place);
          list.push_back(static_cast<AxisId>(a));
          list.append(more[d].slice(place, more[d].size()));
          more[d] = list;
          out.push_back(more);
        }
      }
    }
  }
  return out;
}

Sharding make_sharding(ShardingPool* pool, const Mesh* mesh, const std::vector<AxisList>& lists,
                       AxisSet pending) {
  ShardingData data;
  data.mesh = mesh;
  data.dims.assign(lists.begin(), lists.end());
  data.pending = pending;
  if (!pending.empty()) data.combiner = Combiner::kSum;
  return pool->intern(data);
}

std::string steps_text(const ReshardPlan& plan, Sharding from, Sharding to) {
  std::vector<std::string> out;
  const Mesh* mesh = &from.mesh();
  for (const ReshardStep& step : plan.steps) {
    if (step.kind == StepKind::kCrossMesh) mesh = &to.mesh();
    out.push_back(to_string(*mesh, step));
  }
  return absl::StrJoin(out, "; ");
}

}  // namespace gspmd
