#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gspmd/engine/comparison.h"
#include "gspmd/engine/run.h"
#include "gspmd/ir/module.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// A comparison in the reference that was decided the other way, because its operands are within
// rounding of each other.
struct DecidedOtherwise {
  std::string instr;    // described
  int64_t element = 0;  // of its operand
  double value = 0, bound = 0;
};

struct CheckReport {
  std::vector<ResultCheck> results;
  std::vector<DecidedOtherwise> decided;  // with these the results agree
  int64_t explained = 0;                  // results that agree only with them
  // Where the results differ: near ties that were looked at in vain, in how many runs. -1: none was
  // looked for, or they are too many to be kept in memory.
  int64_t near_ties = -1, runs = 0;
  bool agrees() const;
  // A line for each result that differs (or for every one) and each decision, then the sum.
  std::string to_text(bool all) const;
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
//
// Where values are chosen by comparison (sort, argmax, branches, select), a last bit can turn the
// choice, and what follows differs by more. If results differ, the reference is run again with near
// ties (choices.h) decided the other way. They agree if with some of these decisions *all* results
// agree within what is allowed: nothing is left out, and what the ties do not explain is an error.
CheckReport check(const CheckInput& input, const RunOptions& options);

// Leaves of a value, depth first.
void flatten(const Value& v, std::vector<Buffer>* out);
// Entry arguments from leaves.
std::vector<Value> arguments_of(const Module& m, absl::Span<const Buffer> leaves);

}  // namespace gspmd
