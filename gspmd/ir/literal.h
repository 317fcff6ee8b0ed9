#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <optional>

#include "gspmd/ir/shape.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// A constant's value: row-major elements of storage_bytes() each (little endian; types under 8 bits
// one byte each, sign- or zero-extended; pred 0/1), whatever the layout. Memory belongs to the
// Context's arena.
struct Literal {
  Shape shape;
  absl::Span<const std::byte> data;    // arrays; if `splat`, one element only
  bool splat = false;                  // all elements equal: `data` holds one
  bool elided = false;                 // `{...}`: the values are unknown
  absl::Span<const Literal> elements;  // tuples

  int64_t num_elements() const { return shape.num_elements(); }
  // Element i (row-major) as raw bytes.
  const std::byte* element(int64_t i) const {
    return data.data() + (splat ? 0 : i * storage_bytes(shape.type()));
  }
};

// The value of an integer or pred element, or nullopt for other types and elided literals.
std::optional<int64_t> integer_at(const Literal& literal, int64_t i);

class Context;

// Scalars of any type: a small whole number (wrapped to the type; exact in every float type only
// where it is), and what a combiner leaves its other argument unchanged with (0, 1, true, the
// highest or lowest value or infinity).
Literal integer_literal(Context& context, ElementType type, int64_t value);
Literal identity_literal(Context& context, Combiner combiner, ElementType type);
// True if all elements of the literal equal that identity.
bool is_identity(const Literal& literal, Combiner combiner);

}  // namespace gspmd
