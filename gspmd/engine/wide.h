#pragma once

#include "gspmd/engine/buffer.h"

namespace gspmd {

// Floats as f64 and complex numbers as c128; all else as it is. What the reference run of `check`
// computes on.
Buffer widen(const Buffer& b);
// Rounded to a type: the inverse, for comparison.
Buffer narrow(const Buffer& b, ElementType type);
ElementType wide_type(ElementType t);

}  // namespace gspmd
