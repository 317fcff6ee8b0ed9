#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

// On pred, adding is or, multiplying and.
Combiner combiner_of_op(Opcode op, bool pred) {
  switch (op) {
    case Opcode::kAdd:
      return pred ? Combiner::kOr : Combiner::kSum;
    case Opcode::kMultiply:
      return pred ? Combiner::kAnd : Combiner::kProduct;
    case Opcode::kMinimum:
      return pred ? Combiner::kAnd : Combiner::kMin;
    case Opcode::kMaximum:
      return pred ? Combiner::kOr : Combiner::kMax;
    case Opcode::kAnd:
      return Combiner::kAnd;
    case Opcode::kOr:
      return Combiner::kOr;
    case Opcode::kXor:
      return Combiner::kXor;
    default:
      return Combiner::kNone;
  }
}

}  // namespace

Combiner combiner_of(const Computation& reducer) {
  const Instr* root = reducer.root();
  if (root == nullptr || reducer.params().size() != 2 || root->num_operands() != 2)
    return Combiner::kNone;
  const Instr *a = reducer.params()[0], *b = reducer.params()[1];
  bool of_both = (root->operand(0) == a && root->operand(1) == b) ||
                 (root->operand(0) == b && root->operand(1) == a);
  if (!of_both || !root->shape.is_scalar()) return Combiner::kNone;
  return combiner_of_op(root->opcode, root->shape.type() == ElementType::kPred);
}

}  // namespace gspmd
