#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <optional>

#include "gspmd/ir/shape.h"

namespace gspmd {

// A constant's value: row-major elements of storage_bytes() each (little endian; types under 8 bits one byte each, sign- or
// zero-extended; pred 0/1), whatever the layout. Memory belongs to the Context's arena.
struct Literal {
  Shape shape;
  absl::Span<const std::byte> data;       // arrays; if `splat`, one element only
  bool splat = false;                     // all elements equal: `data` holds one
  bool elided = false;                    // `{...}`: the values are unknown
  absl::Span<const Literal> elements;     // tuples

  int64_t num_elements() const { return shape.num_elements(); }
  // Element i (row-major) as raw bytes.
  const std::byte* element(int64_t i) const {
    return data.data() + (splat ? 0 : i * storage_bytes(shape.type()));
  }
};

// The value of an integer or pred element, or nullopt for other types and elided literals.
std::optional<int64_t> integer_at(const Literal& literal, int64_t i);

}  // namespace gspmd
