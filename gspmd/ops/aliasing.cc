#include "gspmd/ops/aliasing.h"

#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

// `count` leaves from `result_leaf` on are those of an operand from `operand_leaf` on.
void add_range(LeafAliases* out, int result_leaf, int operand, int operand_leaf, int count) {
  for (int i = 0; i < count; ++i) out->push_back({result_leaf + i, operand, operand_leaf + i});
}

// First leaf of element `index` of a tuple.
int leaf_of_element(Shape tuple, int64_t index) {
  int leaf = 0;
  for (int64_t i = 0; i < index; ++i) leaf += tuple.element(static_cast<int>(i)).num_leaves();
  return leaf;
}

// Result leaf `result_leaf` on = element `index` of tuple operand 0.
void add_element(LeafAliases* out, const Instr& instr, int64_t index, int result_leaf = 0) {
  Shape s = instr.operand(0)->shape;
  if (!s.is_tuple() || index >= static_cast<int64_t>(s.elements().size())) return;
  add_range(out, result_leaf, 0, leaf_of_element(s, index),
            s.element(static_cast<int>(index)).num_leaves());
}

void add_operands(LeafAliases* out, const Instr& instr) {
  int leaf = 0;
  for (int i = 0; i < instr.num_operands(); ++i) {
    int count = instr.operand(i)->shape.num_leaves();
    add_range(out, leaf, i, 0, count);
    leaf += count;
  }
}

// Asynchronous results of the form (operand, result, ...): the first element is the operand itself.
void add_start(LeafAliases* out, const Instr& instr) {
  if (!instr.shape.is_tuple() || instr.shape.elements().empty()) return;
  if (instr.shape.element(0).num_leaves() == instr.num_operands()) add_operands(out, instr);
}

}  // namespace

LeafAliases aliases_of(const Instr& instr) {
  LeafAliases out;
  switch (instr.opcode) {
    case Opcode::kTuple:
    case Opcode::kSend:
      add_operands(&out, instr);
      break;
    case Opcode::kGetTupleElement:
      add_element(&out, instr, instr.attrs<IndexAttrs>().index);
      break;
    case Opcode::kBitcast:
    case Opcode::kReshape:
    case Opcode::kOptimizationBarrier:
    case Opcode::kAddDependency:
    case Opcode::kDomain:
    case Opcode::kAllReduceDone:
    case Opcode::kAsyncUpdate:
      add_range(&out, 0, 0, 0, instr.shape.num_leaves());
      break;
    case Opcode::kAllGatherStart:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kAsyncStart:
      add_start(&out, instr);
      break;
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kAsyncDone:
      add_element(&out, instr, 1);
      break;
    case Opcode::kCopyStart:
      add_range(&out, 1, 0, 0, 1);
      break;
    case Opcode::kCopyDone:
    case Opcode::kRecvDone:
      add_element(&out, instr, 0);
      break;
    default:
      break;
  }
  return out;
}

bool may_overwrite_operand(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kScatter:
    case Opcode::kSort:
    case Opcode::kAllReduce:
      return true;
    default:
      return def(instr).traits.elementwise;
  }
}

}  // namespace gspmd
