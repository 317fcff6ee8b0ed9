#include "gspmd/ops/op_def.h"

namespace gspmd {

#define OPCODE(id, name) extern const OpDef k##id##Def;
#include "gspmd/ir/opcodes.def"
#undef OPCODE

const OpDef* const kOpDefs[kNumOpcodes] = {
#define OPCODE(id, name) &k##id##Def,
#include "gspmd/ir/opcodes.def"
#undef OPCODE
};

void* make_attrs(AttrsKind kind, Arena& arena) {
  switch (kind) {
    case AttrsKind::kNone:
      return nullptr;
#define X(type)            \
  case AttrsKind::k##type: \
    return arena.make<type>();
      GSPMD_ATTRS(X)
#undef X
  }
  return nullptr;
}

bool sums_pass(const Instr& instr, int operand) {
  const OpDef& d = def(instr);
  return d.traits.sums != PartialSums::kEnd && instr.shape.is_array() &&
         instr.shape.type() != ElementType::kPred &&
         (d.sums_pass == nullptr || d.sums_pass(instr, operand));
}

}  // namespace gspmd
