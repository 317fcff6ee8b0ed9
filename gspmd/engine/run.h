#pragma once

#include <cstdint>
#include <vector>

#include "gspmd/engine/device.h"

namespace gspmd {

struct RunOptions {
  int64_t num_devices = 1;
  int threads = 0;                // 0: one for each core
  bool wide = false;              // every float as f64
  int64_t max_trips = kMaxTrips;  // of a loop, before it counts as endless
  int64_t memory_limit = 0;       // bytes; 0: 80 % of what is free
  ChoiceObserver* observer = nullptr;
};

// Runs a program on virtual devices of this process: `arguments[d]` are device d's. A pool of
// threads runs whatever device can go on; a device that waits for others holds no thread. Throws
// Error of the first device (by number) that fails, or where devices wait for each other for ever,
// or where the memory that is needed is not there.
std::vector<Value> run(const Program& program, std::vector<std::vector<Value>> arguments,
                       const RunOptions& options);

// Bytes that a run may use.
int64_t memory_limit(const RunOptions& options);

// What a run holds at its peak on all devices together, in bytes: liveness of one device times
// their number.
int64_t memory_needed(const Module& program, int64_t num_devices, bool wide);

// Throws Error with the figures where that is more than options.memory_limit. run() does it itself;
// call it before making inputs for a program of unknown size.
void refuse_what_does_not_fit(const Module& program, const RunOptions& options);

}  // namespace gspmd
