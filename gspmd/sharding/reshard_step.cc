// One step of a reshard: what it does to layouts, what it costs, and how it reads.

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <utility>

#include "gspmd/base/check.h"
#include "gspmd/sharding/reshard.h"
#include "gspmd/sharding/reshard_search.h"

namespace gspmd {
namespace {

void drop_suffix(DimLayout* layout, const AxisList& axes) {
  int keep = layout->axes.size() - axes.size();
  GSPMD_CHECK(keep >= 0 && layout->axes.slice(keep, layout->axes.size()) == axes,
              "a step removes axes that are not the last ones of the dimension");
  layout->axes.resize_down(keep);
}

void append_axes(DimLayout* layout, const AxisList& axes, int64_t number) {
  GSPMD_CHECK(layout->block % number == 0, "a step splits a block that does not divide");
  layout->axes.append(axes);
  layout->block /= number;
}

void set_lists(absl::Span<const AxisList> lists, std::vector<DimLayout>* layouts) {
  GSPMD_CHECK(lists.size() == layouts->size(), "a permutation of another rank");
  for (size_t d = 0; d < lists.size(); ++d) (*layouts)[d].axes = lists[d];
}

// The digits of a list as (size, stride of position), neighbours that count on joined: {x,y} of
// mesh x=2,y=3 is (6, 1).
absl::InlinedVector<std::pair<int64_t, int64_t>, 4> digits(const Mesh& mesh, const AxisList& list) {
  absl::InlinedVector<std::pair<int64_t, int64_t>, 4> out;
  for (AxisId a : list) {
    if (!out.empty() && out.back().second == mesh.size(a) * mesh.stride(a)) {
      out.back() = {out.back().first * mesh.size(a), mesh.stride(a)};
    } else {
      out.emplace_back(mesh.size(a), mesh.stride(a));
    }
  }
  return out;
}

// A device's number for each position, sorted by the position's coordinates along `lists`, then
// along all other axes.
std::vector<int64_t> devices_by_shard(const Mesh& mesh, absl::Span<const AxisList> lists) {
  AxisList order;
  for (const AxisList& list : lists) order.append(list);
  AxisSet rest = mesh.all_axes() - order.set();
  rest.for_each([&](AxisId a) { order.push_back(a); });
  std::vector<int64_t> devices;
  devices.reserve(mesh.num_devices());
  for (int64_t n = 0; n < mesh.num_devices(); ++n) {
    int64_t position = 0, left = n;
    for (int k = order.size(); k-- > 0; left /= mesh.size(order[k])) {
      position += left % mesh.size(order[k]) * mesh.stride(order[k]);
    }
    devices.push_back(mesh.has_device_table() ? mesh.device_of_position()[position] : position);
  }
  return devices;
}

std::string lists_text(const Mesh* mesh, absl::Span<const AxisList> lists) {
  return absl::StrJoin(lists, ", ", [&](std::string* out, const AxisList& list) {
    if (mesh != nullptr) {
      absl::StrAppend(out, to_string(*mesh, list));
    } else {
      absl::StrAppend(out, "{", list.empty() ? "" : "#", absl::StrJoin(list, ",#"), "}");
    }
  });
}

}  // namespace

std::vector<DimLayout> interface_layouts(Sharding sharding, absl::Span<const int64_t> dims) {
  std::vector<DimLayout> layouts(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    layouts[d] = {sharding.dim(d), sharding.local_size(d, dims[d])};
  }
  return layouts;
}

void apply(const ReshardStep& step, const Mesh& mesh, std::vector<DimLayout>* layouts) {
  auto at = [&](int d) { return &(*layouts)[d]; };
  int64_t number = mesh.product(step.axes);
  switch (step.kind) {
    case StepKind::kSlice:
    case StepKind::kReduceScatter:
      append_axes(at(step.dim), step.axes, number);
      return;
    case StepKind::kPadOrTrim:
      GSPMD_CHECK(at(step.dim)->axes.empty(), "pad or trim of a dimension that is split");
      [[fallthrough]];
    case StepKind::kRealign:
      at(step.dim)->block = step.block;
      return;
    case StepKind::kAllGather:
      drop_suffix(at(step.dim), step.axes);
      at(step.dim)->block *= number;
      return;
    case StepKind::kAllToAll:
      drop_suffix(at(step.dim), step.axes);
      at(step.dim)->block *= number;
      append_axes(at(step.to_dim), step.axes, number);
      return;
    case StepKind::kPermute:
    case StepKind::kCrossMesh:
      set_lists(step.lists_after, layouts);
      return;
    case StepKind::kAllReduce:
    case StepKind::kMakePending:
      return;
  }
}

int64_t local_bytes(absl::Span<const DimLayout> layouts, int64_t element_bits) {
  int64_t elements = 1;
  for (const DimLayout& l : layouts) elements *= l.block;
  return ceil_div(elements * element_bits, 8);
}

// Wire bytes as on a ring; sums of several steps stay exact as long as the groups divide the bytes,
// else each is rounded up.
ReshardCost price(const StepSize& step) {
  ReshardCost cost;
  int64_t n = step.group, in = step.bytes_before, out = step.bytes_after;
  cost.peak_bytes = std::max(in, out);
  cost.messages = 1;
  switch (step.kind) {
    case StepKind::kSlice:
      cost.messages = 0;
      cost.local_bytes = 2 * out;
      break;
    case StepKind::kPadOrTrim:
      cost.messages = 0;
      cost.local_bytes = std::min(in, out) + out;
      break;
    case StepKind::kRealign:
      cost.wire_bytes = step.halo_bytes;
      cost.messages = step.halo_messages;
      cost.local_bytes = 2 * out;
      break;
    case StepKind::kMakePending:
      cost.messages = 0;
      cost.local_bytes = 2 * out;
      break;
    case StepKind::kAllGather:
      cost.wire_bytes = (n - 1) * in;
      break;
    case StepKind::kAllToAll:
      cost.wire_bytes = ceil_div((n - 1) * in, n);
      cost.local_bytes =
          2 * out;  // the pieces stand along another dimension than they are sent along
      break;
    case StepKind::kAllReduce:
      cost.wire_bytes = ceil_div(2 * (n - 1) * in, n);
      break;
    case StepKind::kReduceScatter:
      cost.wire_bytes = ceil_div((n - 1) * in, n);
      break;
    case StepKind::kPermute:
    case StepKind::kCrossMesh:
      cost.wire_bytes = in;
      break;
  }
  cost.far_bytes = cost.wire_bytes * (step.rate.per_byte - 16) / 16;
  cost.far_messages = cost.messages * (step.rate.per_message - 16);
  return cost;
}

HaloNeed realign_need(int64_t size, int64_t block, int64_t shards, int64_t new_block) {
  return {size, block, shards, new_block, 0, new_block};
}

HaloNeed realign_need(const DimLayout& layout, const Mesh& mesh, int64_t size, int64_t block) {
  return realign_need(size, layout.block, mesh.product(layout.axes), block);
}

namespace {

// The links that a step uses: the slowest of those along its axes.
LinkRate rate_of(const ReshardStep& step, const Mesh& mesh, absl::Span<const DimLayout> layouts,
                 const Links& links) {
  switch (step.kind) {
    case StepKind::kRealign:
      return links.slowest(mesh, layouts[step.dim].axes);
    case StepKind::kPermute:
      return links.slowest(mesh, step.permutation.from);
    case StepKind::kCrossMesh:
      return links.slowest(mesh, list_of(mesh.all_axes()));
    default:
      return links.slowest(mesh, step.axes);
  }
}

}  // namespace

ReshardCost step_cost(const ReshardStep& step, const Mesh& mesh,
                      absl::Span<const DimLayout> layouts, absl::Span<const int64_t> dims,
                      int64_t element_bits, const Links& links) {
  std::vector<DimLayout> after(layouts.begin(), layouts.end());
  apply(step, mesh, &after);
  StepSize size{step.kind, mesh.product(step.axes), local_bytes(layouts, element_bits),
                local_bytes(after, element_bits)};
  size.rate = rate_of(step, mesh, layouts, links);
  if (step.kind == StepKind::kRealign) {
    HaloPlan halo = plan_halo(realign_need(layouts[step.dim], mesh, dims[step.dim], step.block));
    GSPMD_CHECK(halo.form != HaloPlan::Form::kGather,
                "a realign that should be a gather and a slice");
    after[step.dim].block = halo.wire;
    size.halo_bytes = local_bytes(after, element_bits);
    size.halo_messages = halo.messages;
  }
  ReshardCost cost = price(size);
  if (step.stays) cost.wire_bytes = cost.messages = cost.far_bytes = cost.far_messages = 0;
  return cost;
}

DevicePermutation permutation_between(absl::Span<const AxisList> before,
                                      absl::Span<const AxisList> after) {
  DevicePermutation p;
  p.kind = DevicePermutation::Kind::kRemap;
  for (size_t d = 0; d < before.size(); ++d) {
    int same = before[d].common_prefix(after[d]);
    p.from.append(before[d].slice(same, before[d].size()));
    p.to.append(after[d].slice(same, after[d].size()));
  }
  // Axes that only one side names: the copies along the others' take the places that become free.
  AxisSet from = p.from.set(), to = p.to.set();
  (to - from).for_each([&](AxisId a) { p.from.push_back(a); });
  (from - to).for_each([&](AxisId a) { p.to.push_back(a); });
  return p;
}

std::vector<std::pair<int64_t, int64_t>> cross_mesh_pairs(const Mesh& from,
                                                          absl::Span<const AxisList> from_lists,
                                                          const Mesh& to,
                                                          absl::Span<const AxisList> to_lists) {
  std::vector<int64_t> sources = devices_by_shard(from, from_lists);
  std::vector<int64_t> targets = devices_by_shard(to, to_lists);
  GSPMD_CHECK(sources.size() == targets.size(), "two meshes of one program have different sizes");
  std::vector<std::pair<int64_t, int64_t>> pairs;
  pairs.reserve(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) pairs.emplace_back(sources[i], targets[i]);
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

bool same_placement(const Mesh& from, absl::Span<const AxisList> from_lists, const Mesh& to,
                    absl::Span<const AxisList> to_lists) {
  bool split = false;
  for (size_t d = 0; d < from_lists.size(); ++d) {
    if (digits(from, from_lists[d]) != digits(to, to_lists[d])) return false;
    split |= !from_lists[d].empty();
  }
  return !split || from.device_of_position() == to.device_of_position();
}

std::string to_string(const Mesh& mesh, const ReshardStep& step) {
  auto axes = [&] { return to_string(mesh, step.axes); };
  switch (step.kind) {
    case StepKind::kSlice:
      return absl::StrCat("slice ", step.dim, " ", axes());
    case StepKind::kPadOrTrim:
      return absl::StrCat("pad-or-trim ", step.dim, " to ", step.block);
    case StepKind::kRealign:
      return absl::StrCat("realign ", step.dim, " to ", step.block);
    case StepKind::kAllGather:
      return absl::StrCat("all-gather ", step.dim, " ", axes());
    case StepKind::kAllToAll:
      return absl::StrCat("all-to-all ", step.dim, "->", step.to_dim, " ", axes());
    case StepKind::kPermute:
      return absl::StrCat("permute to [", lists_text(&mesh, step.lists_after), "]");
    case StepKind::kAllReduce:
      return absl::StrCat("all-reduce ", axes());
    case StepKind::kMakePending:
      return absl::StrCat("make pending ", axes());
    case StepKind::kReduceScatter:
      return absl::StrCat("reduce-scatter ", step.dim, " ", axes());
    case StepKind::kCrossMesh:
      return absl::StrCat(step.stays ? "rename to [" : "cross-mesh to [",
                          lists_text(nullptr, step.lists_after), "]");
  }
  return "";
}

}  // namespace gspmd
