#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "gspmd/sharding/axes.h"
#include "gspmd/sharding/iota.h"

namespace gspmd {

// Where a row of places is cut into axes: 1 = c0 | c1 | ... | places, each dividing the next. The
// axis between c[k] and c[k+1] has stride c[k] and size c[k+1]/c[k]; mesh x=2,y=4 is {1, 4, 8}.
// Axis 0 of a mesh is the last of the chain.
class Chain {
 public:
  explicit Chain(int64_t places)
      : cuts_(places > 1 ? std::vector<int64_t>{1, places} : std::vector<int64_t>{1}) {}

  int num_axes() const { return static_cast<int>(cuts_.size()) - 1; }
  int64_t stride(AxisId a) const { return cuts_[num_axes() - 1 - a]; }
  int64_t size(AxisId a) const { return cuts_[num_axes() - a] / cuts_[num_axes() - 1 - a]; }
  absl::Span<const int64_t> cuts() const { return cuts_; }

  // Adds the cuts if all nest with those that are here; else changes nothing and says false.
  bool add(absl::Span<const int64_t> cuts);
  bool has(absl::Span<const int64_t> cuts) const;
  // The axes that a piece consists of, major to minor. Its cuts must be here.
  void append_axes(Piece piece, AxisList* out) const;
  // Cuts axes where a dimension of `major` times anything has its factor boundary, so that the axes
  // on it can be shared between both factors: with axes of 2 and 8 and a major factor of 4, the 8
  // becomes 4 x 2 (alone on the dimension), and 2 x 2 x 2 (behind the 2).
  void cut_at_factor(int64_t major);

 private:
  std::vector<int64_t> cuts_;
};

}  // namespace gspmd
