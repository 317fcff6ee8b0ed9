// dot, ragged-dot, scaled-dot.

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/matrices.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {

GSPMD_KERNEL(dot_kernel) {
  Buffer result = new_result(instr, context);
  const bool done =
      context.backend != nullptr && context.backend->dot(instr, operands[0], operands[1], &result);
  if (!done) multiply(matrices_of(instr.attrs<DotAttrs>(), operands[0], operands[1]), &result);
  return {std::move(result)};
}

}  // namespace gspmd
