#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "gspmd/base/check.h"
#include "gspmd/base/dims.h"
#include "gspmd/ir/literal.h"
#include "gspmd/ir/shape.h"

namespace gspmd {

// One array at run time: row-major, storage_bytes() per element (as Literal). Memory is shared
// until written: `mutable_data` copies where another Buffer holds it too. Needs no Context: usable
// from any thread.
class Buffer {
 public:
  Buffer() = default;
  Buffer(ElementType type, absl::Span<const int64_t> dims);  // uninitialised
  static Buffer zeros(ElementType type, absl::Span<const int64_t> dims);
  static Buffer from_literal(
      const Literal& literal);  // of an array; splats are expanded; elided is an Error

  ElementType type() const { return type_; }
  const DimVector& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t size() const { return size_; }  // elements
  int64_t bytes() const { return size_ * storage_bytes(type_); }
  explicit operator bool() const { return data_ != nullptr; }

  // Nobody else holds the memory: it may be written without a copy.
  bool is_unique() const;

  const std::byte* raw() const { return data_.get(); }
  std::byte* mutable_raw();  // copies if shared
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(data_.get());
  }
  template <typename T>
  T* mutable_data() {
    return reinterpret_cast<T*>(mutable_raw());
  }
  // The same memory under other sizes (as many elements) or another type (as many bytes).
  Buffer reshaped(absl::Span<const int64_t> dims) const;
  Buffer reinterpreted(ElementType type, absl::Span<const int64_t> dims) const;

 private:
  ElementType type_ = ElementType::kPred;
  DimVector dims_;
  int64_t size_ = 0;
  std::shared_ptr<std::byte[]> data_;
};

// A run-time value: an array, a token (an empty Buffer), or a tuple.
struct Value {
  Buffer array;
  std::vector<Value> elements;
  bool is_tuple = false;

  Value() = default;
  Value(Buffer b) : array(std::move(b)) {}  // NOLINT: an array is a value
  static Value tuple(std::vector<Value> elements) {
    Value v;
    v.is_tuple = true;
    v.elements = std::move(elements);
    return v;
  }
};

}  // namespace gspmd
