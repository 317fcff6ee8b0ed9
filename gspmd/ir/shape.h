#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <string>

#include "gspmd/base/dims.h"
#include "gspmd/ir/element_type.h"

namespace gspmd {

// How an array lies in memory. Kept for printing: layouts do not change values.
struct Layout {
  Dims minor_to_major;
  std::string_view rest;  // tiles, memory space, ... as written after the ':'; empty if none
};

class Shape;

struct ShapeData {
  ElementType type = ElementType::kTuple;
  Dims dims;
  uint64_t dynamic =
      0;  // bit d: dimension d is dynamic with bound dims[d]; -1 bound = unbounded `?`
  const Layout* layout = nullptr;    // null = the default, {r-1,...,0}
  absl::Span<const Shape> elements;  // kTuple
  Shape* plain = nullptr;            // the same shape with default layouts (set by the interner)
  int num_leaves = 1;                // (set by the interner)
};

// An array's element type and sizes, or a tuple of shapes: interned in a Context, as cheap as a
// pointer. Equal shapes of one context, layouts included, are the same pointer.
class Shape {
 public:
  Shape() = default;
  explicit Shape(const ShapeData* data) : data_(data) {}
  explicit operator bool() const { return data_ != nullptr; }
  friend bool operator==(Shape, Shape) = default;
  template <typename H>
  friend H AbslHashValue(H h, Shape s) {
    return H::combine(std::move(h), s.data_);
  }

  ElementType type() const { return data_->type; }
  bool is_tuple() const { return data_->type == ElementType::kTuple; }
  bool is_token() const { return data_->type == ElementType::kToken; }
  bool is_array() const {
    return !is_tuple() && !is_token() && data_->type != ElementType::kOpaque;
  }
  bool is_scalar() const { return is_array() && data_->dims.empty(); }
  int rank() const { return static_cast<int>(data_->dims.size()); }
  Dims dims() const { return data_->dims; }
  int64_t dim(int d) const { return data_->dims[d]; }
  bool is_dynamic(int d) const { return data_->dynamic >> d & 1; }
  bool is_dynamic() const;  // any dimension of any leaf
  const Layout* layout() const { return data_->layout; }

  absl::Span<const Shape> elements() const { return data_->elements; }
  Shape element(int i) const { return data_->elements[i]; }

  // The same shape with default layouts everywhere; `same(a, b)` compares these.
  Shape plain() const { return data_->plain ? *data_->plain : *this; }

  int64_t num_elements() const {  // of an array
    int64_t n = 1;
    for (int64_t d : data_->dims) n *= d;
    return n;
  }
  // Bytes of all leaves; fractions of a byte (s4) count by the bit, rounded up per leaf. As `stats`
  // counts.
  int64_t bytes() const {
    return is_tuple() ? bytes_of_elements() : (num_elements() * bits_of(type()) + 7) / 8;
  }
  // Leaves depth first: 1 for arrays and tokens.
  int num_leaves() const { return data_->num_leaves; }

 private:
  int64_t bytes_of_elements() const;
  const ShapeData* data_ = nullptr;
};

// Equal but for layouts.
inline bool same(Shape a, Shape b) { return a.plain() == b.plain(); }

// Calls f(leaf shape, leaf index) depth first.
template <typename F>
int for_each_leaf(Shape s, F&& f, int index = 0) {
  if (!s.is_tuple()) {
    f(s, index);
    return index + 1;
  }
  for (Shape e : s.elements()) index = for_each_leaf(e, f, index);
  return index;
}

// "f32[8,4]{1,0}" as XLA prints; `with_layout` false gives "f32[8,4]".
void append_shape(std::string* out, Shape s, bool with_layout);
std::string to_string(Shape s, bool with_layout = false);

}  // namespace gspmd
