#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "gspmd/engine/device.h"

namespace gspmd {

// What a device brings to a collective.
struct Contribution {
  int64_t device = 0;
  const Instr* instr = nullptr;
  int64_t occurrence = 0;  // the device's n-th time at this instruction
  std::vector<Value> operands;
};
// What it takes away.
struct Delivery {
  int64_t device = 0;
  Value result;
};

// Where devices meet. Never blocks: a contribution either completes its group, and everybody's
// results come back, or waits.
class Communicator {
 public:
  virtual ~Communicator() = default;
  // Deliveries of the group that this contribution completes; empty while others are awaited.
  // Throws Error.
  virtual std::vector<Delivery> contribute(Contribution c) = 0;
  // Instructions at which devices still wait, for the report of a deadlock.
  virtual std::vector<const Instr*> waiting() const = 0;
};

// Devices of one process. Thread-safe.
std::unique_ptr<Communicator> make_memory_communicator(const Program& program, int64_t num_devices,
                                                       bool wide);

// The results of a complete group, in the order of `members`; contributions are in the same order.
// Deterministic: reductions run in the order of the group.
std::vector<Value> exchange(const Program& program, const Instr& i,
                            absl::Span<const int64_t> members,
                            std::vector<Contribution> contributions, bool wide);

}  // namespace gspmd
