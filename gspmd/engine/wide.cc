#include "gspmd/engine/wide.h"

#include "gspmd/engine/numeric.h"

namespace gspmd {

ElementType wide_type(ElementType t) {
  if (is_float(t)) return ElementType::kF64;
  return is_complex(t) ? ElementType::kC128 : t;
}

Buffer narrow(const Buffer& b, ElementType type) {
  if (b.type() == type) return b;
  Buffer out(type, b.dims());
  convert_elements(b.type(), b.raw(), b.size(), type, out.mutable_raw());
  return out;
}

Buffer widen(const Buffer& b) { return narrow(b, wide_type(b.type())); }

}  // namespace gspmd
