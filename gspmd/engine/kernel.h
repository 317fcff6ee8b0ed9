#pragma once

#include <absl/types/span.h>

#include <functional>
#include <memory>
#include <vector>

#include "gspmd/engine/buffer.h"
#include "gspmd/ir/instr.h"
#include "gspmd/ir/module.h"

namespace gspmd {

class Backend;

// What a kernel may use beside its operands.
struct KernelContext {
  // Evaluates a called computation (a reducer, comparator, select, ...) on scalars; arguments and
  // results are Buffers of rank 0. Cheap forms are recognised before it (combiner_of).
  std::function<std::vector<Buffer>(const Computation&, absl::Span<const Buffer>)> call;
  // Uses f64 for every float (the reference run of `check`): f32, bf16, f16 buffers then hold f64
  // elements. A kernel reads the types of its operand Buffers, never those of the Instr, and takes
  // the result type by `result_type`.
  bool wide = false;
  // Where large dots and convolutions are computed; null: by plain loops.
  Backend* backend = nullptr;
};

// Computes one operator on whole arrays: results in leaf order (one for most operators). Pure.
// Operands are arrays (never tuples); structural operators, collectives and random state live in
// the interpreter. Throws Error where a value makes it impossible. The operands are handles of the
// caller's that the kernel may take over: where nobody else holds a Buffer, its memory can become
// the result's (dynamic-update-slice then writes the update only). A value that is still needed is
// passed as a copy of its handle.
using Kernel = std::vector<Buffer> (*)(const Instr& instr, absl::Span<Buffer> operands,
                                       const KernelContext& context);

// The kernel of an operator, or null for those the interpreter handles itself. One file per family
// in engine/kernels/.
Kernel kernel_of(Opcode op);

// Applies a computation on scalars to every element of operands of equal sizes: map, and each step
// of an all-reduce
// (`to_apply` on the arrays of two devices).
std::vector<Buffer> map_elements(const Computation& computation, absl::Span<const Buffer> operands,
                                 const KernelContext& context);

// Element type of result leaf `i`, widened in a wide run.
ElementType result_type(const Instr& instr, const KernelContext& context, int leaf = 0);

// Where large dots and convolutions are computed, e.g. oneDNN. May refuse a case (false), which
// plain loops then compute. Usable from several threads at once.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual bool dot(const Instr& instr, const Buffer& lhs, const Buffer& rhs, Buffer* result) = 0;
  virtual bool convolution(const Instr& instr, const Buffer& lhs, const Buffer& rhs,
                           Buffer* result) = 0;
};

// oneDNN's kernels, each used on one thread; primitives are kept by shape and type.
std::unique_ptr<Backend> make_onednn_backend();

}  // namespace gspmd
