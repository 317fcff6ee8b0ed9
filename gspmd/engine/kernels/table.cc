// Which kernel computes which operator.

#include "gspmd/engine/kernels/kernels.h"

namespace gspmd {
namespace {

Kernel elementwise_of(Opcode op) {
  switch (op) {
    case Opcode::kCopy:
      return copy_kernel;
    case Opcode::kConvert:
      return convert_kernel;
    case Opcode::kReducePrecision:
      return reduce_precision_kernel;
    case Opcode::kStochasticConvert:
      return stochastic_convert_kernel;
    case Opcode::kMap:
      return map_kernel;
    case Opcode::kAbs:
    case Opcode::kAcos:
    case Opcode::kAcosh:
    case Opcode::kAsin:
    case Opcode::kAsinh:
    case Opcode::kAtanh:
    case Opcode::kCbrt:
    case Opcode::kCeil:
    case Opcode::kClz:
    case Opcode::kCos:
    case Opcode::kCosh:
    case Opcode::kErf:
    case Opcode::kExp:
    case Opcode::kExpm1:
    case Opcode::kFloor:
    case Opcode::kImag:
    case Opcode::kIsFinite:
    case Opcode::kLog:
    case Opcode::kLog1p:
    case Opcode::kLogistic:
    case Opcode::kNegate:
    case Opcode::kNot:
    case Opcode::kPopcnt:
    case Opcode::kReal:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
    case Opcode::kRsqrt:
    case Opcode::kSign:
    case Opcode::kSin:
    case Opcode::kSinh:
    case Opcode::kSqrt:
    case Opcode::kTan:
    case Opcode::kTanh:
    case Opcode::kAdd:
    case Opcode::kAnd:
    case Opcode::kAtan2:
    case Opcode::kCompare:
    case Opcode::kComplex:
    case Opcode::kDivide:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kMulhi:
    case Opcode::kMultiply:
    case Opcode::kOr:
    case Opcode::kPower:
    case Opcode::kRemainder:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
    case Opcode::kSubtract:
    case Opcode::kXor:
    case Opcode::kClamp:
    case Opcode::kSelect:
      return elementwise_kernel;
    default:
      return nullptr;
  }
}

Kernel movement_of(Opcode op) {
  switch (op) {
    case Opcode::kIota:
      return iota_kernel;
    case Opcode::kBroadcast:
      return broadcast_kernel;
    case Opcode::kConcatenate:
      return concatenate_kernel;
    case Opcode::kPad:
      return pad_kernel;
    case Opcode::kReshape:
      return reshape_kernel;
    case Opcode::kReverse:
      return reverse_kernel;
    case Opcode::kSlice:
      return slice_kernel;
    case Opcode::kTranspose:
      return transpose_kernel;
    default:
      return nullptr;
  }
}

Kernel computing_of(Opcode op) {
  switch (op) {
    case Opcode::kReduce:
      return reduce_kernel;
    case Opcode::kDot:
      return dot_kernel;
    default:
      return nullptr;
  }
}

}  // namespace

Kernel kernel_of(Opcode op) {
  if (Kernel k = elementwise_of(op)) return k;
  if (Kernel k = movement_of(op)) return k;
  return computing_of(op);
}

}  // namespace gspmd
