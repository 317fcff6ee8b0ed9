#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "gspmd/ops/op_def.h"

namespace gspmd {

// What shape inference of many operators has in common. Every function throws Error (without place)
// whose message starts with the operator's name and holds the numbers.

// "dot: MESSAGE", with a hint.
[[noreturn]] void refuse(std::string_view op, const std::string& message, std::string hint = "");

// Operand i, which must exist and be an array.
Shape array_operand(const InferArgs& args, int i, std::string_view op);

// Each of `dims` (the value of attribute `field`) must be a dimension of a tensor of this rank, and
// named once.
void check_dims(absl::Span<const int64_t> dims, int rank, std::string_view op,
                std::string_view field);
void check_dim(int64_t dim, int rank, std::string_view op, std::string_view field);

// Operands [begin, end) must be arrays of equal sizes.
void check_same_sizes(const InferArgs& args, int begin, int end, std::string_view op);

// Ascending numbers.
void check_sorted(absl::Span<const int64_t> dims, std::string_view op, std::string_view field);

// The sizes of two dimensions that are one index must agree.
void check_equal(int64_t a, int64_t b, std::string_view op, std::string_view what);

// Two lists that name different dimensions of one tensor.
void check_apart(absl::Span<const int64_t> a, absl::Span<const int64_t> b, int rank,
                 std::string_view op, std::string_view fields);

// Batching dimensions of gather and scatter: those of the operand and those of the indices pair in
// order.
void check_batching(Shape operand, absl::Span<const int64_t> operand_dims, Shape indices,
                    absl::Span<const int64_t> indices_dims, int64_t index_vector_dim,
                    std::string_view op);

// Collects a result's sizes, together with which of them are dynamic.
class Sizes {
 public:
  void add(Shape from, int d) {
    if (from.is_dynamic(d)) dynamic_ |= uint64_t{1} << sizes_.size();
    sizes_.push_back(from.dim(d));
  }
  void add(int64_t size) { sizes_.push_back(size); }
  void insert(int64_t at, int64_t size);  // static; moves later ones up
  Shape shape(Context& context, ElementType type) const {
    return context.array(type, sizes_, nullptr, dynamic_);
  }

 private:
  DimVector sizes_;
  uint64_t dynamic_ = 0;
};

// The bytes of every leaf can be counted in an int64_t.
void check_countable(Shape s, std::string_view op);

// One shape, or the tuple of several.
Shape one_or_tuple(Context& context, absl::Span<const Shape> shapes);

// The number of positions of a window along a dimension of `size` elements.
int64_t window_positions(int64_t size, const WindowDim& w);
// Sizes, strides and dilations must be positive, and no number so large that arithmetic with them
// could overflow; one entry for each of `rank` dimensions.
void check_window(Window window, int rank, std::string_view op);

// Paddings, dilations and the like stay below this: their products with sizes fit in 128 bits.
inline constexpr int64_t kMaxWindowNumber = int64_t{1} << 40;
// low + size with interior padding + high, or a number past all sizes where that is so large.
int64_t padded_size(int64_t size, int64_t low, int64_t high, int64_t interior);

// A window that leaves a dimension as it is: size 1, stride 1, no padding, no dilation.
bool is_trivial(const WindowDim& w);

}  // namespace gspmd
