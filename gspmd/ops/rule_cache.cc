#include "gspmd/base/check.h"
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
  Key key{.opcode = instr.opcode,
          .attrs = instr.attributes.data(),
          .shapes = {instr.shape},
          .called = {}};
  for (const Instr* o : instr.operands) key.shapes.push_back(o->shape);
  for (const Computation* c : instr.called) key.called.push_back(c);
  auto [at, added] = rules_.try_emplace(std::move(key), nullptr);
  if (added) {
    GSPMD_CHECK(def(instr).rule != nullptr, describe(instr));
    at->second = def(instr).rule(instr, arena_);
  }
  return at->second;
}

}  // namespace gspmd
