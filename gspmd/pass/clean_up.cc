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
// the content of the attributes, but for the channels of collectives.
size_t hash_of_attributes(const Instr& i) {
  if (i.opcode == Opcode::kConstant) {
    absl::Span<const std::byte> bits = i.attrs<ConstantAttrs>().literal->data;
    bits = bits.subspan(0, std::min<size_t>(bits.size(), 64));
    return absl::HashOf(std::string_view(reinterpret_cast<const char*>(bits.data()), bits.size()));
  }
  size_t hash = 0;
  void* attrs = const_cast<void*>(i.attributes.data());
  for (const Field& f : def(i).fields) {
    if (f.kind == FieldKind::kDims)
      hash = absl::HashOf(hash, absl::Span<const int64_t>(*static_cast<Dims*>(f.member(attrs))));
    if (f.kind == FieldKind::kInt && f.name != "channel_id")
      hash = absl::HashOf(hash, *static_cast<int64_t*>(f.member(attrs)));
  }
  return hash;
}

bool same_attributes(const Instr& a, const Instr& b) {
  if (a.attributes.data() == b.attributes.data()) return true;
  if (a.opcode == Opcode::kConstant) {
    const Literal &x = *a.attrs<ConstantAttrs>().literal, &y = *b.attrs<ConstantAttrs>().literal;
    return !x.elided && !y.elided && x.splat == y.splat && x.data.size() == y.data.size() &&
           std::equal(x.data.begin(), x.data.end(), y.data.begin());
  }
  for (const Field& f : def(a).fields) {
    if (f.name == "channel_id") continue;
    if (!same_value(f, f.member(const_cast<void*>(a.attributes.data())),
                    f.member(const_cast<void*>(b.attributes.data()))))
      return false;
  }
  return true;
}

struct ValueHash {
  size_t operator()(const Instr* i) const {
    return absl::HashOf(i->opcode, i->shape, absl::Span<Instr* const>(i->operands),
                        hash_of_attributes(*i));
  }
};
struct SameValue {
  bool operator()(const Instr* a, const Instr* b) const {
    return a->opcode == b->opcode && a->shape == b->shape && a->operands == b->operands &&
           a->called == b->called && same_attributes(*a, *b);
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
