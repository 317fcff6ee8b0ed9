#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gspmd/sharding/device_groups.h"
#include "gspmd/sharding/halo.h"
#include "gspmd/sharding/links.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// Where a value is, per dimension: the axes that split it and the block length. Shard i (the
// mixed-radix number of the coordinates along `axes`) owns elements [i*block, min((i+1)*block,
// size)). At interfaces block = ceil(size/n).
struct DimLayout {
  AxisList axes;
  int64_t block = 0;
  friend bool operator==(const DimLayout&, const DimLayout&) = default;
};

// One step of a reshard. Each takes the layouts before it to the layouts after it:
enum class StepKind : uint8_t {
  kSlice,  // dim: axes appended; block must be a multiple of the new number: b -> b/n, by partition
           // id; no communication
  kPadOrTrim,  // dim not split: block changes to `block` locally (pad at the end / cut the end); no
               // communication
  kRealign,    // dim split: block changes to `block` by halo exchange; axes stay
  kAllGather,  // dim: the last axes of its list removed: block b -> b*n
  kAllToAll,   // the last axes of dim are moved to the end of to_dim: dim's block b*n, to_dim's
               // block b/n (must divide)
  kPermute,    // lists change to `lists_after` by a pure permutation of devices (same number of
               // shards in every dim, same blocks)
  kAllReduce,  // pending axes resolved
  kReduceScatter,  // pending axes resolved and appended to dim: block b -> b/n (must divide)
  kMakePending,    // the combiner's identity wherever a coordinate along the axes is not 0; no
                   // communication
  kCrossMesh,      // to another mesh: `lists_after` (of its axes) have as many shards in every dim,
                   // same blocks; devices permute
};

struct ReshardStep {
  StepKind kind;
  int dim = -1;
  int to_dim = -1;
  AxisList axes;
  int64_t block = 0;
  std::vector<AxisList> lists_after;  // kPermute, kCrossMesh
  DevicePermutation permutation;      // kPermute
  bool stays =
      false;  // kCrossMesh: each device has its shard already; only the mesh's name changes
};

// What a sequence costs each device: exact integers, the same on every host.
struct ReshardCost {
  int64_t wire_bytes = 0;   // as `gspmd stats` counts them (ring)
  int64_t messages = 0;     // collectives started, each neighbour exchange counted
  int64_t local_bytes = 0;  // read and written by slices, pads and copies
  int64_t peak_bytes = 0;   // largest local value on the way
  // What slower links than the machine's fastest add (Links): as so many wire bytes, and as
  // sixteenths of a message.
  int64_t far_bytes = 0, far_messages = 0;
  friend bool operator==(const ReshardCost&, const ReshardCost&) = default;
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  ReshardCost cost;
  bool full_gather =
      false;  // the whole value stands on each device on the way, although neither end asks for it
};

// The cheapest sequence found from `from` to `to`, both at interface blocks (ceil), for an array of
// global sizes `dims` and elements of `element_bits`. Where `to` is
// pending and `from` is not, the value stays on one shard of those axes. Sizes need not divide.
// Search: by wire bytes (each collective weighs 1/32 of the larger end's local bytes more, so that
// none is added to spare a few elements of padding), then messages, then local bytes;
// deterministic. Memoised by ReshardPlanner.
class ReshardPlanner {
 public:
  explicit ReshardPlanner(ShardingPool* pool, Links links = {});
  ~ReshardPlanner();
  const ReshardPlan& plan(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                          int64_t element_bits);
  // What a plan costs, or a little more: found with less effort.
  const ReshardCost& cost(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                          int64_t element_bits);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What any sequence from `from` to `to` costs at least in wire bytes and messages (the rest is 0):
// found without a search. See Search::estimate. Other meshes: 0.
ReshardCost least_cost(Sharding from, Sharding to, absl::Span<const int64_t> dims,
                       int64_t element_bits);

// A sharding's layout at an interface: blocks of ceil(size/n).
std::vector<DimLayout> interface_layouts(Sharding sharding, absl::Span<const int64_t> dims);

// Applies one step to layouts (for planning, for lowering and for tests). `mesh` is the one before
// the step.
void apply(const ReshardStep& step, const Mesh& mesh, std::vector<DimLayout>* layouts);

// What one step costs from these layouts. A plan's cost is the sum of its steps', with the largest
// peak.
ReshardCost step_cost(const ReshardStep& step, const Mesh& mesh,
                      absl::Span<const DimLayout> layouts, absl::Span<const int64_t> dims,
                      int64_t element_bits, const Links& links = {});

// What a kRealign exchanges: shard i of `layout` gets [i*block, (i+1)*block) instead. In a plan it
// is never of form kGather (that is written as gather and slice), but may be kLocal: a pad or trim.
HaloNeed realign_need(const DimLayout& layout, const Mesh& mesh, int64_t size, int64_t block);

// The permutation of a kPermute from lists to lists, dims that do not change left out.
DevicePermutation permutation_between(absl::Span<const AxisList> before,
                                      absl::Span<const AxisList> after);

// The (source, target) devices of a kCrossMesh step, one pair for each device: coordinates along
// `from_lists` of `from` become those along `to_lists` of `to`. Where there are
// manual axes, append a list of them on either side, so that these coordinates stay too. Lists as
// large as the mesh: only for printing and running.
std::vector<std::pair<int64_t, int64_t>> cross_mesh_pairs(const Mesh& from,
                                                          absl::Span<const AxisList> from_lists,
                                                          const Mesh& to,
                                                          absl::Span<const AxisList> to_lists);
// True where that permutation moves nothing, found without looking at devices.
bool same_placement(const Mesh& from, absl::Span<const AxisList> from_lists, const Mesh& to,
                    absl::Span<const AxisList> to_lists);

// "all-gather 0 {y}", "all-to-all 0->1 {x}", "realign 0 to 4", ...; of a plan joined by "; ".
std::string to_string(const Mesh& mesh, const ReshardStep& step);

}  // namespace gspmd
