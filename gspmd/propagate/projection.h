#pragma once

#include <absl/container/inlined_vector.h>
#include <absl/types/span.h>

#include "gspmd/ops/rule.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// The sharding of an iteration space: for each factor of a rule the axes that split it, major to
// minor.
using FactorAxes = absl::InlinedVector<AxisList, 8>;

inline AxisSet axes_of(const FactorAxes& factors) {
  AxisSet s;
  for (const AxisList& f : factors) s |= f.set();
  return s;
}

// How many of `axes` the leading factors of one tensor dimension can take, and which factor takes
// which. `factors` are the dimension's, major to minor; `size` is the dimension's size.
//
//   dimension 8 = factors 4 x 2, axes x=2, y=4, with y factored 2 x 2:  4 takes x and y's first
//   half, 2 takes the other
//
// An axis goes to the most major factor that is not used up, if it divides what is left of it. A
// dimension with one factor takes any axes. An uneven split is taken only by the major factor, and
// only where the dimension's blocks, ceil(size/n), are whole multiples of the minor factors'
// product. Appends to out[f]; returns the number of axes taken.
int project_dim(const Mesh& mesh, const Rule& rule, absl::Span<const FactorId> factors,
                int64_t size, const AxisList& axes, absl::Span<AxisList> out);

// Projects a whole tensor (number in the rule: operands, then results) onto the factors. True if
// every axis of every dimension was taken. `out` is resized to the number of factors and starts
// empty.
bool project(const Rule& rule, int tensor, Sharding sharding, absl::Span<const int64_t> dims,
             FactorAxes* out);

// The axes of one tensor dimension under an iteration-space sharding. A minor factor's axes can be
// said only where every more major factor of the dimension is split completely; the rest is left
// out, and *complete set to false.
AxisList dim_axes(const Mesh& mesh, const Rule& rule, absl::Span<const FactorId> factors,
                  int64_t size, absl::Span<const AxisList> axes, bool* complete);

}  // namespace gspmd
