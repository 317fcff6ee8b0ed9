#pragma once

#include <vector>

#include "gspmd/engine/buffer.h"

namespace gspmd {

// The distance of neighbouring numbers of a type at |x|; 0 at zero, infinity and NaN.
double ulp(ElementType t, double x);

// An array's numbers as doubles (both parts of complex ones).
std::vector<double> numbers(const Buffer& b);

// Equal, or both NaN.
bool same_number(double a, double b);

// The largest finite distance of two lists of numbers, one for one: how far a run in a program's
// own types is from the 64-bit reference.
double largest_distance(const std::vector<double>& a, const std::vector<double>& b);

// What `check` allows between a number and its 64-bit reference `x`, where the one-device run is
// `rounding` away from it somewhere in the array.
inline double tolerance(ElementType t, double x, double rounding) {
  return 4 * rounding + 2 * ulp(t, x);
}

}  // namespace gspmd
