#include "gspmd/ir/literal.h"

#include <cstring>

namespace gspmd {
namespace {

template <typename T>
int64_t load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return static_cast<int64_t>(v);
}

}  // namespace

std::optional<int64_t> integer_at(const Literal& literal, int64_t i) {
  ElementType t = literal.shape.type();
  if (literal.elided || !(is_integer(t) || t == ElementType::kPred)) return std::nullopt;
  const std::byte* p = literal.element(i);
  bool is_signed = class_of(t) == TypeClass::kSigned;
  switch (storage_bytes(t)) {
    case 1: return is_signed ? load<int8_t>(p) : load<uint8_t>(p);
    case 2: return is_signed ? load<int16_t>(p) : load<uint16_t>(p);
    case 4: return is_signed ? load<int32_t>(p) : load<uint32_t>(p);
    default: return load<int64_t>(p);
  }
}

}  // namespace gspmd
