#pragma once

#include <absl/types/span.h>

#include <vector>

#include "gspmd/partition/iteration.h"
#include "gspmd/partition/price.h"
#include "gspmd/sharding/reshard.h"

namespace gspmd {

// One way to partition an operator: its iteration-space sharding, what it needs and what it makes.
struct Candidate {
  FactorAxes factors;
  AxisSet sums = {};  // along which an operand's partial sums pass to the result
  int sums_in = 0;    // the operand; of operators linear in all operands together: any of them
  absl::InlinedVector<Sharding, 4>
      layouts;  // of all tensors: operands as needed, results as produced
  Price price;
  int64_t units = 0;
};

// What the choice may look at: how operands are and how results are wanted.
struct Situation {
  absl::Span<const Sharding> operands;  // a null Sharding: no layout (tokens)
  absl::Span<const Sharding> results;
};

// The ways to partition an operator (the paper's section 4, all families at once): for each tensor
// a candidate that starts from its sharding and takes from the others what fits; and where an
// operand is partial and the operator is linear, the same with the sums taken later. The first one
// is the best of no communication where there is one. Never empty: the last resort is not split at
// all.
std::vector<Candidate> candidates(const Iteration& it, const Situation& now, bool handlers);

// Fills in layouts, and the price of the computation alone.
void lay_out(const Iteration& it, const Situation& now, const Machine& machine, Candidate* c);
// Adds the reshards of operands and results to the price.
void add_reshards(const Iteration& it, const Situation& now, ReshardPlanner& planner,
                  const Machine& machine, Candidate* c);
// What the reshards cost at least, found at once.
int64_t least_reshard_units(const Iteration& it, const Situation& now, const Machine& machine,
                            const Candidate& c);

}  // namespace gspmd
