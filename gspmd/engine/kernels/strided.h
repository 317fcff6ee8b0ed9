#pragma once

#include <absl/types/span.h>

#include <cstddef>

#include "gspmd/base/dims.h"

namespace gspmd {

// One dimension of a copy: its size, and how many elements apart its neighbours are on either side
// (0: the same element again; negative: backwards).
struct CopyDim {
  int64_t size = 1, from = 0, to = 0;
};
using CopyDims = absl::InlinedVector<CopyDim, 6>;

// Copies elements of `width` bytes (1, 2, 4, 8, 16) for every index over `dims` (major to minor).
// `from` and `to` point at the elements of index 0 and do not overlap.
void copy_strided(int width, CopyDims dims, const std::byte* from, std::byte* to);

// The same, prepared once for many places.
class CopyPlan {
 public:
  CopyPlan(int width, CopyDims dims);
  void operator()(const std::byte* from, std::byte* to) const;

 private:
  int width_;
  bool empty_ = false;
  CopyDims dims_;
};

// Drops dimensions of one element and joins those that are one on both sides.
CopyDims simplified(const CopyDims& dims);

// Fills n elements with the one at `value`.
void fill(int width, const std::byte* value, int64_t n, std::byte* to);

// Calls f(offsets) for every index over `sizes` in row-major order, where offsets[k] is the sum of
// index times strides[k]; the innermost dimension is the caller's.
template <int kArrays, typename F>
void for_each_offset(absl::Span<const int64_t> sizes, const DimVector (&strides)[kArrays], F&& f) {
  for (int64_t s : sizes) {
    if (s == 0) return;
  }
  int64_t offsets[kArrays] = {};
  DimVector index(sizes.size(), 0);
  while (true) {
    f(offsets);
    int d = static_cast<int>(sizes.size()) - 1;
    for (; d >= 0; --d) {
      for (int k = 0; k < kArrays; ++k) offsets[k] += strides[k][d];
      if (++index[d] < sizes[d]) break;
      for (int k = 0; k < kArrays; ++k) offsets[k] -= strides[k][d] * sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace gspmd
