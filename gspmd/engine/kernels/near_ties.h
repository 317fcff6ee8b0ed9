#pragma once

#include <absl/types/span.h>

#include <vector>

#include "gspmd/engine/kernel.h"

namespace gspmd {

// Another value for one element of an operand, no further away than its rounding, with which the
// operator chooses otherwise. x > 1 at an x of 1.0000001 that was computed with an error of 3e-7:
// the nudge is to just below 1.
struct Nudge {
  int operand = 0;
  int64_t element = 0;  // row-major
  double from = 0, to = 0;
  double share = 0;  // |to - from| in parts of what rounding allows
};

// Whether an operator chooses by the values of floats, so that a last bit can change its result by
// more than that: comparisons, rounding to integers, sorting, select-and-scatter, reductions like
// argmax. Maximum, minimum and clamp do not: their results move no further than their operands.
bool chooses(const Instr& i);

// The near ties of such an operator, from its operands in a run in the program's own types and in
// the 64-bit reference. The rounding of an array is the largest distance between the two, and what
// it allows is the tolerance of `check`. Where the two are equal everywhere, values are exact and
// decide as they are; so do numbers that are equal in both runs. `wide`: of the reference run.
std::vector<Nudge> near_ties(const Instr& i, absl::Span<const Buffer> own,
                             absl::Span<const Buffer> reference, const KernelContext& wide);

// One float operand of both runs.
class RoundedOperand {
 public:
  RoundedOperand(int operand, const Buffer& own, const Buffer& reference);
  int64_t size() const { return static_cast<int64_t>(reference_.size()); }
  bool exact() const { return rounding_ == 0; }
  double at(int64_t i) const { return reference_[static_cast<size_t>(i)]; }
  double allowed(int64_t i) const;  // 0 where exact
  // Elements i and j are apart by no more than rounding allows, and not equal in both runs.
  bool nearly_equal(int64_t i, int64_t j) const;
  // Adds the nudges of element i to just beyond element j (to either side where they are equal).
  void add_crossings(int64_t i, int64_t j, std::vector<Nudge>* out) const;

 private:
  int operand_;
  ElementType type_;
  double rounding_ = 0;
  std::vector<double> own_, reference_;
};

// By family.
using NearTies = std::vector<Nudge> (*)(const Instr&, absl::Span<const Buffer> own,
                                        absl::Span<const Buffer> reference,
                                        const KernelContext& wide);
std::vector<Nudge> near_ties_of_sort(const Instr& i, absl::Span<const Buffer> own,
                                     absl::Span<const Buffer> reference, const KernelContext& wide);
std::vector<Nudge> near_ties_of_reduce(const Instr& i, absl::Span<const Buffer> own,
                                       absl::Span<const Buffer> reference,
                                       const KernelContext& wide);
std::vector<Nudge> near_ties_of_select_and_scatter(const Instr& i, absl::Span<const Buffer> own,
                                                   absl::Span<const Buffer> reference,
                                                   const KernelContext& wide);

}  // namespace gspmd
