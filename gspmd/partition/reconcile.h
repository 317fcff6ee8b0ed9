#pragma once

#include <string>
#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/partition/candidates.h"
#include "gspmd/propagate/sharding_table.h"

namespace gspmd {

struct PartitionState;
using CompletedLayouts = InstrTable<Sharding>;  // of arrays, as completion left them

// Decides wherever there is more than one way. Without one, values are laid out as choose_layouts
// finds, and of the ways to partition an operator the cheapest is taken, the first among equals.
class Decider {
 public:
  virtual ~Decider() = default;
  // Lays values out in place of choose_layouts; false where that is to do it.
  virtual bool lay_out(PartitionState&) { return false; }
  virtual void after_layouts(PartitionState&, const CompletedLayouts&) {}
  virtual size_t choose(const Instr& instr, absl::Span<const Candidate> candidates) = 0;
  // Called when all is decided.
  virtual void finish() {}
};

struct PartitionOptions {
  bool choose_layouts = true;  // false: values are laid out as completion says, whatever it costs
  bool handlers = true;  // false: only what the rules alone allow; the rest is gathered (for tests)
  bool poison_padding =
      false;  // padding of entry parameters and of every pad holds extreme values (for tests)
  Machine machine;
  Decider* decider = nullptr;
};

// What passes over the global program share.
struct PartitionState {
  Module& module;
  ShardingTable& shardings;
  const Mesh* mesh;
  RuleCache& rules;
  ReshardPlanner& planner;
  Decider* decider;  // null: the cheapest
  const PartitionOptions& options;
  std::vector<std::string>* warnings;
};

// Gives every operator an iteration-space sharding that agrees with its rule. Needs a sharding of
// every value (completion). Guarantees: each operator's operands are laid out as its factors say
// and its result is exactly what it produces (pending where partial); wherever that is not what
// completion wanted, an explicit reshard stands between, a `copy` whose sharding differs from its
// operand's. Still global shapes: on one device every reshard is the identity.
//
//   y = dot(x{[x},{}]}, w[{x},{}])      ->   y = dot(x', w), pending sum{x};  y' = copy(y), [{},{}]
void reconcile(PartitionState& state);

// The factor axes of a reconciled operator, read back from its operands' and result's shardings.
FactorAxes factor_axes(const Iteration& it, absl::Span<const Sharding> operands,
                       absl::Span<const Sharding> results);

// True for `copy` and for custom-calls that only carry an annotation (`Sharding`, ...).
bool is_reshard(const Instr& i);

// Manual axes of the values that an operator works on.
AxisSet manual_axes(const Instr& i, const ShardingTable& shardings);

}  // namespace gspmd
