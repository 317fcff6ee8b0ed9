#pragma once

#include <absl/container/inlined_vector.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>

#include "gspmd/base/arena.h"
#include "gspmd/ir/instr.h"

namespace gspmd {

// A factor is one index of an operator's iteration space, as a letter in an einsum. What sharding
// it costs:
enum class FactorKind : uint8_t {
  kParallel,  // nothing: each shard computes its own part
  kReduce,    // in operands only: partial results, combined by `combiner`
  kWindow,    // a result index reads an interval of the operand: halo exchange
  kIndexed,   // chosen by a run-time index: index rebase and mask, or combine
  kPermute,   // whole shards move by a static map (reverse)
  kWhole,     // every device needs all of it: gather first
};

using FactorId = uint8_t;
inline constexpr int kMaxFactors = 64;

struct Factor {
  FactorKind kind = FactorKind::kParallel;
  bool propagates = true;  // whether completion follows it
  Combiner combiner =
      Combiner::kNone;  // kReduce; kNone = not combinable across devices (unknown reducer)
  int64_t size =
      1;  // elements along it. kWindow, kIndexed: of the result side (0 = differs, see dims)
  // kWindow: result index i reads operand positions i*stride - pad_low + k*window_dilation, k <
  // window.size, in the operand dilated by base_dilation.
  const WindowDim* window = nullptr;
  // kWindow of select-and-scatter: its operand 1 (the source) holds the positions i, and operand 0
  // and the results are what the windows cover. Otherwise results hold the positions and operands
  // are covered.
  bool scatters = false;
  // Running the operator on the shards of this factor is not right by itself, e.g. kernel taps of a
  // convolution, that sit in the kernel only while each reads the image at another place: gathered,
  // unless a handler takes it.
  bool needs_handler = false;
};

// How an operator's tensors map to its iteration space. Tensors are operands, then results (tuple
// leaves flattened). Every tensor dimension is a list of factors, major to minor: one for most
// operators, several for a reshape; none = a dimension that only this tensor has and that may not
// be split in place (size-1 dims included).
class Rule {
 public:
  absl::Span<const Factor> factors() const { return factors_; }
  const Factor& factor(FactorId f) const { return factors_[f]; }
  int num_factors() const { return static_cast<int>(factors_.size()); }
  // Tensors of the result's rank correspond dimension by dimension, one factor each; others have
  // no factors.
  bool is_pointwise() const { return is_pointwise_; }
  // All factors are parallel.
  bool is_parallel() const { return is_parallel_; }
  int num_operands() const { return num_operands_; }
  int num_results() const { return num_tensors() - num_operands_; }
  int num_tensors() const { return static_cast<int>(tensor_begin_.size()) - 1; }
  int rank(int tensor) const {
    return static_cast<int>(tensor_begin_[tensor + 1] - tensor_begin_[tensor]);
  }
  // Factors of dimension d of tensor t (operands first, results from num_operands()).
  absl::Span<const FactorId> dim(int tensor, int d) const {
    uint32_t k = tensor_begin_[tensor] + static_cast<uint32_t>(d);
    return {factor_ids_.data() + dim_begin_[k], dim_begin_[k + 1] - dim_begin_[k]};
  }
  // The dimension of `tensor` that holds factor f (-1: none), and its place in that dimension's
  // list.
  int dim_of(int tensor, FactorId f, int* place = nullptr) const;

  // "ab,bc->ac | b: reduce(sum)": the generated documentation and tests read this.
  std::string to_string() const;

 private:
  friend class RuleBuilder;
  absl::Span<const Factor> factors_;
  absl::Span<const uint32_t> tensor_begin_;  // per tensor: first entry in dim_begin_
  absl::Span<const uint32_t> dim_begin_;     // per dimension: first entry in factor_ids_
  absl::Span<const FactorId> factor_ids_;
  int num_operands_ = 0;
  bool is_pointwise_ = false, is_parallel_ = false;
};

inline constexpr int64_t kNone = -1;

// Collects a Rule for one instruction. Dimensions not mentioned get no factors (they may not be
// split).
//
//   RuleBuilder r(dot, arena);
//   r.parallel(/*operand dims*/ {0, kNone}, /*result dim*/ 0);
//   r.reduce({1, 0}, Combiner::kSum);
//   return r.build();
class RuleBuilder {
 public:
  RuleBuilder(const Instr& instr, Arena& arena);

  // The factor sits on dimension operand_dims[k] of operand k (kNone: absent; missing entries:
  // absent) and on dimension result_dim of every array result (kNone: absent). Its size is read
  // from the first tensor that has it.
  FactorId parallel(absl::Span<const int64_t> operand_dims, int64_t result_dim);
  FactorId reduce(absl::Span<const int64_t> operand_dims, Combiner combiner);
  FactorId window(absl::Span<const int64_t> operand_dims, int64_t result_dim, const WindowDim& w);
  FactorId indexed(absl::Span<const int64_t> operand_dims, int64_t result_dim);
  FactorId permute(absl::Span<const int64_t> operand_dims, int64_t result_dim);
  // Not followed by completion, unless set_propagates() says so.
  FactorId whole(absl::Span<const int64_t> operand_dims, int64_t result_dim);

  // General form: a new factor of a size, then placed anywhere; several on one dimension go major
  // to minor in call order.
  FactorId add(const Factor& factor);
  const WindowDim* keep(const WindowDim& w) { return arena_.make<WindowDim>(w); }
  void place(FactorId f, int tensor, int64_t d);  // tensor: operands, then results
  void set_propagates(FactorId f, bool propagates) { factors_[f].propagates = propagates; }
  void set_needs_handler(FactorId f) { factors_[f].needs_handler = true; }

  // All dimensions of all tensors of the same rank correspond (element-wise operators; scalars take
  // part with none).
  void pointwise();

  int result(int i = 0) const { return num_operands_ + i; }  // tensor number of result i
  const Rule* build();

 private:
  void check_place(int tensor, int64_t d) const;
  FactorId add_on(const Factor& factor, absl::Span<const int64_t> operand_dims, int64_t result_dim);
  struct Entry {
    uint32_t tensor_dim;
    FactorId factor;
  };
  const Instr& instr_;
  Arena& arena_;
  int num_operands_ = 0;
  size_t pointwise_factors_ = SIZE_MAX;
  absl::InlinedVector<Shape, 6> tensors_;
  absl::InlinedVector<uint32_t, 8> tensor_begin_;
  absl::InlinedVector<Factor, 8> factors_;
  absl::InlinedVector<Entry, 24> entries_;
};

}  // namespace gspmd
