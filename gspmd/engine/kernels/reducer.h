#pragma once

#include <absl/types/span.h>

#include <optional>
#include <vector>

#include "gspmd/engine/kernel.h"
#include "gspmd/engine/kernels/lane_program.h"

namespace gspmd {

// A computation (accumulators..., values...) -> accumulators, applied to up to kChunk lanes at
// once: one loop where it is a known combiner, a LaneProgram where it is made of element-wise
// operators, else a call per element. Float sums are kept in f64, unless wanted in their own lane.
// One thread at a time.
class Reducer {
 public:
  enum class Sums : uint8_t { kWide, kInOwnLane };

  // `types`: of the accumulators, one for each of the computation's results.
  Reducer(const Computation& computation, absl::Span<const ElementType> types,
          const KernelContext& context, Sums sums = Sums::kWide);

  int arity() const { return static_cast<int>(types_.size()); }
  Lane lane(int k) const { return lanes_[k]; }
  ElementType type(int k) const { return types_[k]; }
  // Values may come in any order.
  bool commutes() const { return fn_ != nullptr; }

  // acc[k][i] = computation(acc[...][i], x[...][i])[k] for i < n <= kChunk; lanes of lane(k).
  void fold(absl::Span<void* const> acc, absl::Span<const void* const> x, int64_t n);

  // Accumulators of n elements for each k, all `init[k]` (scalars), and back to stored elements.
  std::vector<std::vector<std::byte>> accumulators(absl::Span<const Buffer> init, int64_t n) const;
  std::vector<Buffer> results(const std::vector<std::vector<std::byte>>& acc,
                              absl::Span<const int64_t> dims) const;

 private:
  void call(absl::Span<void* const> acc, absl::Span<const void* const> x, int64_t i);

  const Computation& computation_;
  const KernelContext& context_;
  std::vector<ElementType> types_;
  std::vector<Lane> lanes_;
  LaneFn fn_ = nullptr;
  std::optional<LaneProgram> program_;
};

}  // namespace gspmd
