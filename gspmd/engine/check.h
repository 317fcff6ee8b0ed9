#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gspmd/engine/run.h"
#include "gspmd/ir/module.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// How one result of the partitioned program compares with the one-device program's.
struct ResultCheck {
  Shape shape;
  Sharding sharding;
  bool agrees = true;
  bool exact = true;           // bit for bit
  double worst = 0;            // the largest |N - ref64|
  double allowed = 0;          // what was allowed there
  int64_t worst_element = -1;  // row-major index in the whole array
  double got = 0, expected = 0;
  int64_t differing_replica = -1;  // a device whose copy differs from its replicas'
};

struct CheckReport {
  std::vector<ResultCheck> results;
  bool agrees() const;
  std::string to_text(
      bool all) const;  // one line a result that differs (or every one), then the sum
};

struct CheckInput {
  const Module& original;  // verified; not changed by the partitioner
  const Module& partitioned;
  std::vector<Sharding> parameters, results;  // of the leaves, as the partitioner laid them out
  // Entries and exits of manual regions in the original; where there are any, the reference runs on
  // all devices.
  std::vector<std::pair<const Instr*, ManualBoundary>> boundaries;
  uint64_t seed = 0;
  std::vector<Buffer> inputs;  // global, one for each parameter leaf; empty: made from the seed
};

// Runs the original on one device (in its own types and with every float as f64) and the
// partitioned program on N, on the same inputs, padding poisoned. An element agrees where it equals
// the one-device result bit for bit, or |N - ref64| <= 4 * max over the array of |1 - ref64| + 2
// ulp of the result's type at ref64; integers and pred must be equal to the one-device or the
// 64-bit result. Replicas must agree bit for bit.
CheckReport check(const CheckInput& input, const RunOptions& options);

// Leaves of a value, depth first.
void flatten(const Value& v, std::vector<Buffer>* out);
// Entry arguments from leaves.
std::vector<Value> arguments_of(const Module& m, absl::Span<const Buffer> leaves);

}  // namespace gspmd
