#pragma once

#include <optional>
#include <vector>

#include "gspmd/engine/kernel.h"
#include "gspmd/engine/kernels/lane_program.h"

namespace gspmd {

// Numbers whose order is the order of the elements, NaNs by the total order of floats: of an array
// of n lanes.
std::vector<uint64_t> order_keys(Lane lane, const std::byte* lanes, int64_t n, bool total_order);

// The operand that a comparator orders by: it compares the same function of two elements of it.
// -1: none alone.
int key_operand(const Computation& comparator);

// Whether an element of the operands of a sort comes before another, for any comparator.
class Comparator {
 public:
  Comparator(const Computation& computation, absl::Span<const Buffer> operands,
             const KernelContext& context);

  // A comparator that says key(x) < key(y) for a function of one operand: all elements' keys, such
  // that sorting them upwards is the order wanted. nullopt: ask `before`.
  std::optional<std::vector<uint64_t>> keys() const;

  bool before(int64_t i, int64_t j);

 private:
  bool call(int64_t i, int64_t j) const;

  const Computation& computation_;
  absl::Span<const Buffer> operands_;
  const KernelContext& context_;
  std::vector<std::vector<std::byte>> lanes_;
  std::optional<LaneProgram> program_;
};

}  // namespace gspmd
