#include "gspmd/partition/handler.h"

namespace gspmd {

extern const Handler kConcatenateHandler, kConstantHandler, kConvolutionHandler, kCustomCallHandler,
    kDynamicSliceHandler, kDynamicUpdateSliceHandler, kGatherHandler, kIotaHandler, kPadHandler,
    kReduceHandler, kReduceWindowHandler, kReverseHandler, kScatterHandler,
    kSelectAndScatterHandler, kSliceHandler;

const Handler* handler_of(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kConcatenate:
      return &kConcatenateHandler;
    case Opcode::kConstant:
      return &kConstantHandler;
    case Opcode::kConvolution:
      return &kConvolutionHandler;
    case Opcode::kCustomCall:
      return &kCustomCallHandler;
    case Opcode::kDynamicSlice:
      return &kDynamicSliceHandler;
    case Opcode::kDynamicUpdateSlice:
      return &kDynamicUpdateSliceHandler;
    case Opcode::kGather:
      return &kGatherHandler;
    case Opcode::kIota:
      return &kIotaHandler;
    case Opcode::kPad:
      return &kPadHandler;
    case Opcode::kReduce:
      return &kReduceHandler;
    case Opcode::kReduceWindow:
      return &kReduceWindowHandler;
    case Opcode::kReverse:
      return &kReverseHandler;
    case Opcode::kScatter:
      return &kScatterHandler;
    case Opcode::kSelectAndScatter:
      return &kSelectAndScatterHandler;
    case Opcode::kSlice:
      return &kSliceHandler;
    default:
      return nullptr;
  }
}

}  // namespace gspmd
