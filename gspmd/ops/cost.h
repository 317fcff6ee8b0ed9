#pragma once

#include <absl/types/span.h>

#include "gspmd/ir/instr.h"

namespace gspmd {

// How an instruction is counted.
enum class CostClass : uint8_t {
  kFree,        // names or makes values without computing: parameters, constants, tuples, reshapes,
                // broadcasts, copies, ...
  kMove,        // moves elements: transpose, slice, concatenate, gather, ...
  kCollective,  // counted by its bytes on the wire
  kCaller,      // while, call, conditional, fusion, async: what they call is counted
  kDot,         // dot, ragged-dot, scaled-dot
  kConvolution,
  kElementwise,
  kOther,  // everything else: reductions, sorts, random numbers, transforms, ...
};
CostClass cost_class(const Instr& instr);

// What one execution of an instruction takes on one device.
struct Cost {
  // Dots and convolutions: floating-point operations, 2 for each multiply-add. Others: elements
  // computed, i.e. of the result; for reductions, sorts, scatters and transforms of the largest of
  // operands and result.
  double flops = 0;
  double bytes_touched = 0;  // operands read and results written; 0 for kFree, kCollective, kCaller
};

// `operands` and `result` are the shapes to price (local ones, say); attributes are the
// instruction's. The kernel's sizes of a convolution and the contracted ones of a dot are read from
// `operands`.
Cost cost_of(const Instr& instr, absl::Span<const Shape> operands, Shape result);
// With the instruction's own shapes.
Cost cost_of(const Instr& instr);

}  // namespace gspmd
