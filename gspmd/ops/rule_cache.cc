#include "gspmd/base/check.h"
#include "gspmd/ops/custom_call.h"
#include "gspmd/ops/field_value.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {

const Rule& RuleCache::get(const Instr& instr) {
  if (instr.id >= by_id_.size()) by_id_.resize(instr.id + 1 + by_id_.size() / 2);
  auto& [known, rule] = by_id_[instr.id];
  if (known != &instr) {
    rule = find_or_make(instr);
    known = &instr;
  }
  return *rule;
}

bool RuleCache::Key::operator==(const Key& other) const {
  return opcode == other.opcode && shapes == other.shapes && called == other.called &&
         same_attributes(opcode, attrs, other.attrs);
}

size_t RuleCache::Key::hash_of_attrs() const { return hash_of_attributes(opcode, attrs); }

const Rule* RuleCache::find_or_make(const Instr& instr) {
  if (instr.opcode == Opcode::kCustomCall && has_own_rule(instr))
    return def(instr).rule(instr, arena_);
  shapes_.assign(1, instr.shape);
  for (const Instr* o : instr.operands) shapes_.push_back(o->shape);
  called_.clear();
  for (const Computation* c : instr.called) {
    static const char kCombiners[16] = {};  // their addresses stand for the combiners
    Combiner combiner = combiner_of(*c);
    called_.push_back(combiner == Combiner::kNone ? static_cast<const void*>(c)
                                                  : &kCombiners[static_cast<size_t>(combiner)]);
  }
  Key key{instr.opcode, instr.attributes, shapes_, called_};
  auto at = rules_.find(key);
  if (at != rules_.end()) return (*at)->rule;
  GSPMD_CHECK(def(instr).rule != nullptr, describe(instr));
  const Rule* rule = def(instr).rule(instr, arena_);
  key.shapes = arena_.copy(key.shapes);
  key.called = arena_.copy(key.called);
  rules_.insert(arena_.make<Entry>(key, rule));
  return rule;
}

}  // namespace gspmd
