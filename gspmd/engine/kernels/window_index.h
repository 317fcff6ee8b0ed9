#pragma once

#include "gspmd/base/dims.h"
#include "gspmd/ir/attrs.h"

namespace gspmd {

// The operand position that element `at` of the window of result position `result` reads along one
// dimension of `size`, or -1 where that is padding or a hole of the base dilation.
int64_t operand_index(const WindowDim& w, int64_t result, int64_t at, int64_t size);

// The result positions begin, begin + step, ... < end whose window has an operand element at `at`.
struct ResultRange {
  int64_t begin = 0, end = 0, step = 1;
};
ResultRange result_range(const WindowDim& w, int64_t at, int64_t size, int64_t results);

// Calls f(index) for all indices over `sizes` in row-major order.
template <typename F>
void for_each_index(const DimVector& sizes, F&& f) {
  for (int64_t s : sizes) {
    if (s == 0) return;
  }
  DimVector index(sizes.size(), 0);
  while (true) {
    f(index);
    int d = static_cast<int>(sizes.size()) - 1;
    for (; d >= 0; --d) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace gspmd
