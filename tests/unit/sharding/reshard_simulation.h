#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gspmd/sharding/reshard.h"

namespace gspmd {

// What a device holds at one place: which element of the array, and which of the partial results
// along the pending axes have been added into it (bit k: of the device with number k along these
// axes). Padding is poisoned: nothing is known of it.
struct Cell {
  int64_t element = kPoison;
  uint64_t parts = 0;
  static constexpr int64_t kPoison = -1;
  friend bool operator==(const Cell&, const Cell&) = default;
};

// All devices of a small mesh with real data, moved by the steps of a plan exactly as collectives
// would move it. Nothing here is shared with the planner but the meaning of one step.
class Simulation {
 public:
  Simulation(Sharding from, absl::Span<const int64_t> dims);
  // Runs the plan; empty if every device ends with what `to` says, else what is wrong.
  std::string run(const ReshardPlan& plan, Sharding to);

 private:
  struct Local {
    std::vector<int64_t> shape;
    std::vector<Cell> cells;
  };
  using Coordinates = std::vector<int64_t>;  // along the mesh's axes

  int64_t number_along(int64_t device, const AxisList& axes) const;
  std::vector<int64_t> group(int64_t device, const AxisList& axes) const;
  Coordinates& at(int64_t device) { return coordinates_[device]; }
  void enter(const Mesh& mesh);

  void step(const ReshardStep& step, Sharding to);
  Local after(const ReshardStep& step, int64_t device) const;
  Local realigned(const ReshardStep& step, int64_t device) const;
  Local gathered(int64_t device, int d, const AxisList& axes) const;
  Local reduced(int64_t device, const AxisList& axes) const;
  std::vector<Local> permuted(const ReshardStep& step) const;
  static Local resized(const Local& in, int d, int64_t block);
  static Local piece(const Local& in, int d, int64_t start, int64_t count);
  std::string compare(Sharding to) const;

  std::vector<int64_t> dims_;
  Sharding from_;
  const Mesh* mesh_;
  std::vector<DimLayout> layouts_;
  std::vector<Coordinates> coordinates_;  // of each device
  std::vector<int64_t> device_at_;        // of each position
  std::vector<Local> locals_;             // of each device
  std::vector<uint64_t> parts_at_start_;  // of each device
  std::string fault_;
};

// The mesh x, y, z, ... with these sizes; an optional table of devices.
Mesh small_mesh(std::vector<int64_t> sizes, std::vector<int64_t> devices = {});

// All ways to place up to all axes of a mesh on `rank` dimensions, in any order.
std::vector<std::vector<AxisList>> all_placements(const Mesh& mesh, int rank);

Sharding make_sharding(ShardingPool* pool, const Mesh* mesh, const std::vector<AxisList>& lists,
                       AxisSet pending = {});

// "slice 0 {x}; all-gather 1 {y}".
std::string steps_text(const ReshardPlan& plan, Sharding from, Sharding to);

}  // namespace gspmd
