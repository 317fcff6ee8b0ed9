#include "gspmd/pass/clean_up.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <vector>

#include "gspmd/ops/op_def.h"
#include "gspmd/pass/canonicalize.h"

namespace gspmd {
namespace {

// What makes two instructions the same value. Attributes by address: interned and cloned ones share
// it; those that the emitter makes anew are merged where their few scalar forms agree (see
// attrs_number).
struct ValueKey {
  Opcode opcode;
  Shape shape;
  const void* attrs;
  absl::InlinedVector<const Instr*, 4> operands;
  friend bool operator==(const ValueKey&, const ValueKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ValueKey& k) {
    return H::combine(std::move(h), k.opcode, k.shape, k.attrs, k.operands);
  }
};

class CleanUp {
 public:
  CleanUp(Module& m, Computation& c) : m_(m), c_(c) {}

  void run() {
    std::vector<Instr*> kept;
    kept.reserve(c_.instrs().size());
    for (Instr* i : c_.instrs()) {
      for (Instr*& o : i->operands) o = current(o);
      Instr* same = simpler(*i);
      if (same == nullptr && is_pure(*i)) same = first_of_its_value(i);
      if (same != nullptr && same != i) {
        replaced_[i] = same;
        continue;
      }
      kept.push_back(i);
    }
    c_.set_root(current(c_.root()));
    c_.set_instrs(std::move(kept));
  }

 private:
  Instr* current(Instr* i) const {
    auto it = replaced_.find(i);
    return it == replaced_.end() ? i : it->second;
  }

  // Only what the emitter makes over and over: the rest is the user's program.
  static bool is_pure(const Instr& i) {
    return i.called.empty() && i.opcode != Opcode::kParameter && i.opcode != Opcode::kRng &&
           !def(i).traits.side_effect && i.opcode != Opcode::kCustomCall &&
           !def(i).traits.collective && i.extras == nullptr && i.opcode != Opcode::kConstant;
  }

  // An operand that the instruction leaves as it is, or null.
  static Instr* simpler(const Instr& i) {
    if (i.opcode == Opcode::kCopy || i.opcode == Opcode::kReshape || i.opcode == Opcode::kConvert) {
      return i.shape == i.operand(0)->shape ? i.operand(0) : nullptr;
    }
    if (i.opcode == Opcode::kReshape && i.operand(0)->opcode == Opcode::kReshape) return nullptr;
    if (i.opcode == Opcode::kGetTupleElement && i.operand(0)->opcode == Opcode::kTuple) {
      return i.operand(0)->operand(static_cast<int>(i.attrs<IndexAttrs>().index));
    }
    return nullptr;
  }

  Instr* first_of_its_value(Instr* i) {
    ValueKey key{
        i->opcode, i->shape, i->attributes.data(), {i->operands.begin(), i->operands.end()}};
    auto [it, is_new] = values_.try_emplace(std::move(key), i);
    if (is_new) return nullptr;
    it->second->provenance = m_.context().merge(it->second->provenance, i->provenance);
    return it->second;
  }

  Module& m_;
  Computation& c_;
  absl::flat_hash_map<const Instr*, Instr*> replaced_;
  absl::flat_hash_map<ValueKey, Instr*> values_;
};

}  // namespace

void clean_up(Module* module) {
  for (const auto& c : module->computations()) CleanUp(*module, *c).run();
  remove_dead(module);
}

}  // namespace gspmd
