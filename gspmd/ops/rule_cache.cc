#include "gspmd/base/check.h"
#include "gspmd/ops/custom_call.h"
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

const Rule* RuleCache::find_or_make(const Instr& instr) {
  if (instr.opcode == Opcode::kCustomCall && has_own_rule(instr))
    return def(instr).rule(instr, arena_);
  shapes_.assign(1, instr.shape);
  for (const Instr* o : instr.operands) shapes_.push_back(o->shape);
  Key key{instr.opcode, instr.attributes.data(), shapes_, instr.called};
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
