#include "gspmd/engine/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gspmd/engine/numeric.h"
#include "gspmd/engine/rounding.h"

namespace gspmd {
namespace {

constexpr double kFar = 1e6;  // a distance that nothing explains away, in parts of what is allowed

double in_parts(double distance, double allowed) {
  if (distance == 0) return 0;
  return allowed > 0 && distance < kFar * allowed ? distance / allowed : kFar;
}

}  // namespace

Comparison::Comparison(Buffer one, Buffer many, const Buffer& reference)
    : one_(std::move(one)), many_(std::move(many)) {
  exact_ = one_.bytes() == many_.bytes() &&
           std::memcmp(one_.raw(), many_.raw(), static_cast<size_t>(one_.bytes())) == 0;
  if (!exact_ && floats()) rounding_ = largest_distance(numbers(one_), numbers(reference));
}

bool Comparison::floats() const { return is_float(one_.type()) || is_complex(one_.type()); }

bool Comparison::same_integer(const Buffer& reference, int64_t k) const {
  const auto bytes = static_cast<size_t>(storage_bytes(one_.type()));
  const std::byte* got = many_.raw() + k * static_cast<int64_t>(bytes);
  return std::memcmp(got, one_.raw() + k * static_cast<int64_t>(bytes), bytes) == 0 ||
         std::memcmp(got, reference.raw() + k * static_cast<int64_t>(bytes), bytes) == 0;
}

template <typename F>
void Comparison::for_each_difference(const Buffer& reference, F&& f) const {
  if (exact_) return;
  if (!floats()) {
    for (int64_t k = 0; k < one_.size(); ++k) {
      if (same_integer(reference, k)) continue;
      f(k, 1.0, 0.0, static_cast<double>(integer_element(many_.type(), many_.raw(), k)),
        static_cast<double>(integer_element(one_.type(), one_.raw(), k)));
    }
    return;
  }
  const std::vector<double> one = numbers(one_), many = numbers(many_), wide = numbers(reference);
  for (size_t k = 0; k < one.size(); ++k) {
    if (same_number(many[k], one[k]) || same_number(many[k], wide[k])) continue;
    const double d = std::abs(many[k] - wide[k]);
    f(static_cast<int64_t>(k), std::isnan(d) ? INFINITY : d,
      tolerance(one_.type(), wide[k], rounding_), many[k], wide[k]);
  }
}

void Comparison::compare(const Buffer& reference, ResultCheck* out) const {
  out->exact = exact_;
  double excess = -INFINITY;
  for_each_difference(reference, [&](int64_t k, double d, double allowed, double got, double want) {
    if (d > allowed) out->agrees = false;
    if (d - allowed <= excess) return;
    excess = d - allowed;
    out->worst = d;
    out->allowed = allowed;
    out->worst_element = k;
    out->got = got;
    out->expected = want;
  });
}

void Comparison::add_deviation(const Buffer& reference, Deviation* out) const {
  for_each_difference(reference, [&](int64_t, double d, double allowed, double, double) {
    if (d > allowed) out->agrees = false;
    const double parts = in_parts(d, allowed);
    out->sum += parts * parts;
  });
}

double Comparison::change(const Buffer& a, const Buffer& b) const {
  if (!floats()) {
    return std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0 ? 0 : kFar;
  }
  const std::vector<double> x = numbers(a), y = numbers(b);
  double largest = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    if (same_number(x[k], y[k])) continue;
    largest =
        std::max(largest, in_parts(std::abs(x[k] - y[k]), tolerance(one_.type(), x[k], rounding_)));
  }
  return largest;
}

}  // namespace gspmd
