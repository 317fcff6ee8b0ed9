#pragma once

#include <cstdint>

namespace gspmd {

// c[m, n] += a[m, k] * b[k, n] for f32 and f64, in vectors of the widest kind that the processor
// has; a's elements are `a_row` and `a_column` apart, b's `b_row` and `b_column`, c's rows `n`.
// Each sum runs along k in order, in the element type.
void multiply_panels(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row,
                     int64_t b_column, int64_t m, int64_t n, int64_t k, float* c);
void multiply_panels(const double* a, int64_t a_row, int64_t a_column, const double* b,
                     int64_t b_row, int64_t b_column, int64_t m, int64_t n, int64_t k, double* c);

}  // namespace gspmd
