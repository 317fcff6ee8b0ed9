#include "gspmd/ops/cost.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>

#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

constexpr Opcode kFreeOps[] = {
    Opcode::kParameter,  Opcode::kConstant,      Opcode::kTuple,     Opcode::kGetTupleElement,
    Opcode::kBitcast,    Opcode::kReshape,       Opcode::kIota,      Opcode::kBroadcast,
    Opcode::kAfterAll,   Opcode::kPartitionId,   Opcode::kReplicaId, Opcode::kOptimizationBarrier,
    Opcode::kCustomCall, Opcode::kAddDependency, Opcode::kDomain,    Opcode::kCopy,
    Opcode::kCopyStart,
};
constexpr Opcode kMoveOps[] = {
    Opcode::kTranspose, Opcode::kSlice,   Opcode::kDynamicSlice,       Opcode::kConcatenate,
    Opcode::kPad,       Opcode::kReverse, Opcode::kDynamicUpdateSlice, Opcode::kGather,
};
constexpr Opcode kCallerOps[] = {
    Opcode::kWhile, Opcode::kCall, Opcode::kConditional, Opcode::kFusion, Opcode::kAsyncStart,
};
constexpr Opcode kDotOps[] = {Opcode::kDot, Opcode::kRaggedDot, Opcode::kScaledDot};
// Their work is that of what they read, or write, whichever is larger.
constexpr Opcode kLargestOps[] = {
    Opcode::kReduce,   Opcode::kReduceWindow,     Opcode::kSort,
    Opcode::kScatter,  Opcode::kSelectAndScatter, Opcode::kFft,
    Opcode::kCholesky, Opcode::kTriangularSolve,  Opcode::kTopK,
};

template <size_t N>
bool is_one_of(Opcode op, const Opcode (&list)[N]) {
  return std::find(list, list + N, op) != list + N;
}

double product(Shape s) {
  double n = 1;
  for (int64_t d : s.dims()) n *= static_cast<double>(d);
  return n;
}

// Elements of all leaves; a token counts as a scalar.
double elements(Shape s) {
  double n = 0;
  for_each_leaf(s, [&](Shape leaf, int) { n += leaf.is_array() ? product(leaf) : 1; });
  return n;
}

Shape first_leaf(Shape s) {
  while (s.is_tuple()) s = s.element(0);
  return s;
}

double dot_flops(const DotAttrs& a, Shape lhs, Shape result) {
  double contracted = 1;
  for (int64_t d : a.lhs_contract) contracted *= static_cast<double>(lhs.dim(static_cast<int>(d)));
  return 2 * product(first_leaf(result)) * contracted;
}

// Each result element sums over the kernel's spatial dimensions and input features.
double convolution_flops(const ConvAttrs& a, Shape kernel, Shape result) {
  double per_result = 1;
  for (int d = 0; d < kernel.rank(); ++d) {
    if (d != a.dims.kernel_output) per_result *= static_cast<double>(kernel.dim(d));
  }
  return 2 * product(first_leaf(result)) * per_result;
}

double work(const Instr& instr, absl::Span<const Shape> operands, Shape result) {
  double n = elements(result);
  if (!is_one_of(instr.opcode, kLargestOps)) return n;
  for (Shape s : operands) n = std::max(n, elements(s));
  return n;
}

}  // namespace

CostClass cost_class(const Instr& instr) {
  Opcode op = instr.opcode;
  if (is_one_of(op, kCallerOps)) return CostClass::kCaller;
  if (is_one_of(op, kFreeOps)) return CostClass::kFree;
  if (is_one_of(op, kMoveOps)) return CostClass::kMove;
  if (is_one_of(op, kDotOps)) return CostClass::kDot;
  if (op == Opcode::kConvolution) return CostClass::kConvolution;
  const OpTraits& traits = def(op).traits;
  // The second half of a collective only hands over what the first half moved.
  if (traits.collective) return CostClass::kCollective;
  return traits.elementwise ? CostClass::kElementwise : CostClass::kOther;
}

Cost cost_of(const Instr& instr, absl::Span<const Shape> operands, Shape result) {
  CostClass c = cost_class(instr);
  if (c == CostClass::kFree || c == CostClass::kCollective || c == CostClass::kCaller) return {};
  Cost cost;
  cost.bytes_touched = static_cast<double>(result.bytes());
  for (Shape s : operands) cost.bytes_touched += static_cast<double>(s.bytes());
  if (c == CostClass::kDot) {
    cost.flops = dot_flops(instr.attrs<DotAttrs>(), operands[0], result);
  } else if (c == CostClass::kConvolution) {
    cost.flops = convolution_flops(instr.attrs<ConvAttrs>(), operands[1], result);
  } else if (c != CostClass::kMove) {
    cost.flops = work(instr, operands, result);
  }
  return cost;
}

Cost cost_of(const Instr& instr) {
  absl::InlinedVector<Shape, 4> operands;
  for (const Instr* o : instr.operands) operands.push_back(o->shape);
  return cost_of(instr, operands, instr.shape);
}

}  // namespace gspmd
