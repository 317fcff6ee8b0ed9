#pragma once

#include <absl/container/inlined_vector.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cstdint>

namespace gspmd {

// A list of dimension numbers or sizes being built.
using DimVector = absl::InlinedVector<int64_t, 6>;

// An immutable list of integers whose memory belongs to an arena (see Arena::dims), so that copies
// are free.
class Dims {
 public:
  Dims() = default;
  explicit Dims(absl::Span<const int64_t> arena_memory) : span_(arena_memory) {}

  int64_t operator[](size_t i) const { return span_[i]; }
  size_t size() const { return span_.size(); }
  bool empty() const { return span_.empty(); }
  const int64_t* begin() const { return span_.data(); }
  const int64_t* end() const { return span_.data() + span_.size(); }
  absl::Span<const int64_t> span() const { return span_; }
  operator absl::Span<const int64_t>() const { return span_; }  // NOLINT: a Dims is a span

  bool contains(int64_t x) const { return std::find(begin(), end(), x) != end(); }
  // Position of x, or -1.
  int64_t index_of(int64_t x) const {
    const int64_t* at = std::find(begin(), end(), x);
    return at == end() ? -1 : at - begin();
  }
  friend bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  absl::Span<const int64_t> span_;
};

// Division that rounds down or up for either sign of `a`; b > 0.
inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
inline int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

}  // namespace gspmd
