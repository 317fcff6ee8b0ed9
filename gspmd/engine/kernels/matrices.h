#pragma once

#include <absl/types/span.h>

#include "gspmd/engine/buffer.h"
#include "gspmd/ir/attrs.h"

namespace gspmd {

// The operands of a dot as batches of matrices: result[b, m, n] = sum over k of lhs[b, m, k] *
// rhs[b, k, n]. Strides are in elements; one of the last two of each side is 1 (or its size is).
struct Matrices {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  Buffer lhs, rhs;
  int64_t lhs_batch = 0, lhs_m = 0, lhs_k = 0;
  int64_t rhs_batch = 0, rhs_k = 0, rhs_n = 0;
};

// Joins dimensions, and copies an operand only where its dimensions lie in another order than
// (batch, free, contracted) or (batch, contracted, free).
Matrices matrices_of(const DotAttrs& a, const Buffer& lhs, const Buffer& rhs);

// A buffer with its dimensions in another order: result dimension i is dimension order[i].
Buffer permuted(const Buffer& x, absl::Span<const int64_t> order);

// result[b, m, n] = the products, by plain loops, in the element type of `result`: floats below
// f64 are summed in f32 at least, integers wrap.
void multiply(const Matrices& x, Buffer* result);

}  // namespace gspmd
