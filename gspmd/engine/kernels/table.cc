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
    case Opcode::kBitcast:
      return bitcast_kernel;
    case Opcode::kBitcastConvert:
      return bitcast_convert_kernel;
    case Opcode::kBroadcast:
      return broadcast_kernel;
    case Opcode::kConcatenate:
      return concatenate_kernel;
    case Opcode::kDynamicReshape:
      return dynamic_reshape_kernel;
    case Opcode::kDynamicSlice:
      return dynamic_slice_kernel;
    case Opcode::kDynamicUpdateSlice:
      return dynamic_update_slice_kernel;
    case Opcode::kGather:
      return gather_kernel;
    case Opcode::kGetDimensionSize:
      return get_dimension_size_kernel;
    case Opcode::kPad:
      return pad_kernel;
    case Opcode::kReshape:
      return reshape_kernel;
    case Opcode::kReverse:
      return reverse_kernel;
    case Opcode::kScatter:
      return scatter_kernel;
    case Opcode::kSetDimensionSize:
      return set_dimension_size_kernel;
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
    case Opcode::kBatchNormGrad:
      return batch_norm_grad_kernel;
    case Opcode::kBatchNormInference:
      return batch_norm_inference_kernel;
    case Opcode::kBatchNormTraining:
      return batch_norm_training_kernel;
    case Opcode::kCholesky:
      return cholesky_kernel;
    case Opcode::kConvolution:
      return convolution_kernel;
    case Opcode::kFft:
      return fft_kernel;
    case Opcode::kRaggedDot:
      return ragged_dot_kernel;
    case Opcode::kReduceWindow:
      return reduce_window_kernel;
    case Opcode::kRngBitGenerator:
      return rng_bit_generator_kernel;
    case Opcode::kScaledDot:
      return scaled_dot_kernel;
    case Opcode::kScan:
      return scan_kernel;
    case Opcode::kSelectAndScatter:
      return select_and_scatter_kernel;
    case Opcode::kSort:
      return sort_kernel;
    case Opcode::kTopK:
      return topk_kernel;
    case Opcode::kTriangularSolve:
      return triangular_solve_kernel;
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
