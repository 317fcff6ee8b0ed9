#include "gspmd/partition/optimize_reshards.h"

#include <absl/container/flat_hash_map.h>

#include <vector>

#include "gspmd/partition/manual.h"
#include "gspmd/pass/canonicalize.h"

namespace gspmd {
namespace {

class ChainMerger {
 public:
  ChainMerger(PartitionState& s, Computation& c, std::vector<int>* uses, Replacements* replaced)
      : s_(s), c_(c), uses_(*uses), replaced_(*replaced) {}

  void run() {
    for (const Instr* i : c_.instrs()) {
      for (const Instr* o : i->operands) ++uses_[o->id];
    }
    ++uses_[c_.root()->id];
    for (Instr* i : c_.instrs()) {
      for (Instr*& o : i->operands) o = replaced_.current(o);
      if (!is_reshard(*i) || !i->shape.is_array()) continue;
      shorten(i);
      share_or_drop(i);
    }
    c_.set_root(replaced_.current(c_.root()));
  }

 private:
  int64_t units(const Instr& value, Sharding to) {
    Sharding from = s_.shardings.leaf(value);
    if (from == to) return 0;
    const ReshardPlan& plan =
        s_.planner.plan(from, to, value.shape.dims(), bits_of(value.shape.type()));
    return price_of(plan.cost).units(s_.options.machine);
  }

  // Takes the operand's operand where going there at once costs no more. What the step between cost
  // counts only where nobody else needs it.
  void shorten(Instr* i) {
    Sharding to = s_.shardings.leaf(*i);
    while (is_reshard(*i->operand(0))) {
      Instr* middle = i->operand(0);
      Instr* source = middle->operand(0);
      if (&s_.shardings.leaf(*source).mesh() != &to.mesh()) return;
      int64_t now = units(*middle, to);
      if (uses_[middle->id] == 1) now += units(*source, s_.shardings.leaf(*middle));
      if (units(*source, to) > now) return;
      --uses_[middle->id];
      ++uses_[source->id];
      i->operands[0] = source;
      i->provenance = s_.module.context().merge(i->provenance, middle->provenance);
    }
  }

  void share_or_drop(Instr* i) {
    Instr* source = i->operand(0);
    Sharding to = s_.shardings.leaf(*i);
    if (s_.shardings.leaf(*source) == to && !keeps_name(*i)) {
      replaced_.set(*i, source);
      return;
    }
    auto [it, is_new] = made_.try_emplace({source, to}, i);
    if (is_new || keeps_name(*i)) return;
    it->second->provenance = s_.module.context().merge(it->second->provenance, i->provenance);
    replaced_.set(*i, it->second);
  }

  // The entry's result keeps its instruction.
  bool keeps_name(const Instr& i) const { return &i == c_.root(); }

  PartitionState& s_;
  Computation& c_;
  std::vector<int>& uses_;  // by Instr::id
  Replacements& replaced_;
  absl::flat_hash_map<std::pair<const Instr*, Sharding>, Instr*> made_;
};

}  // namespace

void optimize_reshards(PartitionState& state) {
  std::vector<int> uses(state.module.num_ids());
  Replacements replaced;
  for (Computation* c : partitioned_computations(state.module))
    ChainMerger(state, *c, &uses, &replaced).run();
  remove_dead(&state.module);
}

}  // namespace gspmd
