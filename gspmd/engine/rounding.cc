#include "gspmd/engine/rounding.h"

#include <algorithm>
#include <cmath>

#include "gspmd/engine/wide.h"

namespace gspmd {
namespace {

// Bits of the significand, the leading one included.
int significand_bits(ElementType t) {
  switch (t) {
    case ElementType::kF64:
    case ElementType::kC128:
      return 53;
    case ElementType::kF32:
    case ElementType::kC64:
      return 24;
    case ElementType::kF16:
      return 11;
    case ElementType::kBF16:
      return 8;
    case ElementType::kF8E4M3FN:
    case ElementType::kF8E4M3:
    case ElementType::kF8E4M3FNUZ:
    case ElementType::kF8E4M3B11FNUZ:
    case ElementType::kF6E2M3FN:
      return 4;
    case ElementType::kF8E5M2:
    case ElementType::kF8E5M2FNUZ:
    case ElementType::kF6E3M2FN:
      return 3;
    case ElementType::kF8E3M4:
      return 5;
    case ElementType::kF4E2M1FN:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

double ulp(ElementType t, double x) {
  if (x == 0 || !std::isfinite(x)) return 0;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, exponent - significand_bits(t));
}

std::vector<double> numbers(const Buffer& b) {
  Buffer w = widen(b);
  const double* p = reinterpret_cast<const double*>(w.raw());
  return {p, p + w.size() * (is_complex(w.type()) ? 2 : 1)};
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

double largest_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    double d = std::abs(a[k] - b[k]);
    if (std::isfinite(d)) largest = std::max(largest, d);
  }
  return largest;
}

}  // namespace gspmd
