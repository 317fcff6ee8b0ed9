#pragma once

#include <absl/types/span.h>

#include <optional>
#include <vector>

#include "gspmd/engine/kernel.h"
#include "gspmd/engine/kernels/lanes.h"

namespace gspmd {

// A computation on scalars (a reducer, comparator, map) compiled to run on up to kChunk lanes at
// once. Its scratch memory belongs to it: one thread at a time.
class LaneProgram {
 public:
  // Nothing where it has an operator that is not element-wise. A wide run's floats are f64.
  // `root`: another instruction than the computation's root whose value is wanted.
  static std::optional<LaneProgram> compile(const Computation& computation, bool wide,
                                            const Instr* root = nullptr);

  int num_params() const { return static_cast<int>(params_.size()); }
  int num_results() const { return static_cast<int>(results_.size()); }
  ElementType param_type(int i) const { return values_[params_[i]].type; }
  ElementType result_type(int i) const { return values_[results_[i]].type; }

  // Parameter i is in[i], n lanes of lane_of(param_type(i)); afterwards result(i) holds n lanes.
  void run(absl::Span<const void* const> in, int64_t n);
  const void* result(int i) const { return pointer(results_[i]); }

 private:
  struct Value {
    ElementType type;
    int param = -1;     // a parameter: read in place
    size_t memory = 0;  // else the start of its lanes in memory_
  };
  struct Step {
    LaneFn fn = nullptr;  // null: convert
    int in[3] = {-1, -1, -1};
    int out = -1;
    int bits = 0;
  };
  using Leaves = std::vector<int>;

  bool add(const Computation& computation, std::vector<Leaves> args, const Instr* root,
           Leaves* results);
  bool add_instr(const Instr& instr, const std::vector<Leaves>& operands, Leaves* out);
  bool add_operator(const Instr& instr, const std::vector<Leaves>& operands, Leaves* out);
  int add_constant(const Literal& literal);
  int add_value(ElementType type);
  ElementType type_of(const Instr& instr) const;
  const void* pointer(int value) const;
  void run_convert(const Step& step, int64_t n);
  void round(int value, int64_t n);

  bool wide_ = false;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  Leaves params_, results_;
  std::vector<std::byte> memory_;
  std::vector<const void*> inputs_;
};

}  // namespace gspmd
