#include "gspmd/pass/clean_up.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <vector>

#include "gspmd/ops/field_value.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/pass/canonicalize.h"

namespace gspmd {
namespace {

// What makes two instructions the same value: operator, shape, operands, called computations, and
// the content of the attributes.
struct ValueHash {
  size_t operator()(const Instr* i) const {
    return absl::HashOf(i->opcode, i->shape, absl::Span<Instr* const>(i->operands),
                        hash_of_attributes(i->opcode, i->attributes));
  }
};
struct SameValue {
  bool operator()(const Instr* a, const Instr* b) const {
    return a->opcode == b->opcode && a->shape == b->shape && a->operands == b->operands &&
           a->called == b->called && same_attributes(a->opcode, a->attributes, b->attributes);
  }
};

class CleanUp {
 public:
  CleanUp(Module& m, Computation& c, Replacements* replaced) : m_(m), c_(c), replaced_(*replaced) {}

  void run() {
    std::vector<Instr*> kept;
    kept.reserve(c_.instrs().size());
    values_.reserve(c_.instrs().size());
    for (Instr* i : c_.instrs()) {
      for (Instr*& o : i->operands) o = replaced_.current(o);
      Instr* same = simpler(*i);
      if (same == nullptr && is_pure(*i)) same = first_of_its_value(i);
      if (same != nullptr && same != i) {
        replaced_.set(*i, same);
        continue;
      }
      kept.push_back(i);
    }
    c_.set_root(replaced_.current(c_.root()));
    c_.set_instrs(std::move(kept));
  }

 private:
  static bool is_pure(const Instr& i) {
    const OpTraits& t = def(i).traits;
    bool calls = !i.called.empty() && (t.structural || i.opcode == Opcode::kFusion);
    bool literal = i.opcode != Opcode::kConstant || i.shape.is_array();
    return !calls && literal && !t.side_effect && i.extras == nullptr &&
           i.opcode != Opcode::kParameter && i.opcode != Opcode::kRng &&
           i.opcode != Opcode::kCustomCall;
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
    auto [it, is_new] = values_.insert(i);
    if (is_new) return nullptr;
    (*it)->provenance = m_.context().merge((*it)->provenance, i->provenance);
    return *it;
  }

  Module& m_;
  Computation& c_;
  Replacements& replaced_;
  absl::flat_hash_set<Instr*, ValueHash, SameValue> values_;
};

}  // namespace

void clean_up(Module* module) {
  Replacements replaced;
  for (const auto& c : module->computations()) CleanUp(*module, *c, &replaced).run();
  remove_dead(module);
}

}  // namespace gspmd
