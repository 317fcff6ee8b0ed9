#include "gspmd/ir/literal.h"

#include <bit>
#include <cstring>

#include "gspmd/base/check.h"
#include "gspmd/ir/context.h"

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
    case 1:
      return is_signed ? load<int8_t>(p) : load<uint8_t>(p);
    case 2:
      return is_signed ? load<int16_t>(p) : load<uint16_t>(p);
    case 4:
      return is_signed ? load<int32_t>(p) : load<uint32_t>(p);
    default:
      return load<int64_t>(p);
  }
}

namespace {

// Bit patterns of 1 and of the highest and lowest value (infinities where the type has them).
struct FloatBits {
  ElementType type;
  uint64_t one, highest, lowest;
};
constexpr FloatBits kFloatBits[] = {
    {ElementType::kF64, 0x3FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000},
    {ElementType::kF32, 0x3F800000, 0x7F800000, 0xFF800000},
    {ElementType::kF16, 0x3C00, 0x7C00, 0xFC00},
    {ElementType::kBF16, 0x3F80, 0x7F80, 0xFF80},
    {ElementType::kF8E5M2, 0x3C, 0x7C, 0xFC},
    {ElementType::kF8E4M3, 0x38, 0x78, 0xF8},
    {ElementType::kF8E3M4, 0x30, 0x70, 0xF0},
    {ElementType::kF8E4M3FN, 0x38, 0x7E, 0xFE},
    {ElementType::kF8E4M3FNUZ, 0x40, 0x7F, 0xFF},
    {ElementType::kF8E5M2FNUZ, 0x40, 0x7F, 0xFF},
    {ElementType::kF8E4M3B11FNUZ, 0x58, 0x7F, 0xFF},
    {ElementType::kF8E8M0FNU, 0x7F, 0xFE, 0x00},
    {ElementType::kF4E2M1FN, 0x2, 0x7, 0xF},
    {ElementType::kF6E2M3FN, 0x8, 0x1F, 0x3F},
    {ElementType::kF6E3M2FN, 0xC, 0x1F, 0x3F},
};

const FloatBits& float_bits(ElementType type) {
  for (const FloatBits& f : kFloatBits) {
    if (f.type == type) return f;
  }
  GSPMD_CHECK(false, "no float type");
}

Literal scalar_of_bits(Context& context, ElementType type, uint64_t bits) {
  absl::Span<std::byte> bytes =
      context.arena().array<std::byte>(static_cast<size_t>(storage_bytes(type)));
  std::memcpy(bytes.data(), &bits, std::min(bytes.size(), sizeof(bits)));
  Literal scalar;
  scalar.shape = context.scalar(type);
  scalar.data = bytes;
  return scalar;
}

// The value of a small non-negative whole number in a float type, by repeated doubling of the
// exponent.
uint64_t float_bits_of_integer(ElementType type, int64_t value) {
  if (value == 0) return 0;
  if (value == 1) return float_bits(type).one;
  if (type == ElementType::kF64) return std::bit_cast<uint64_t>(static_cast<double>(value));
  uint32_t f32 = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == ElementType::kF32) return f32;
  GSPMD_CHECK(type == ElementType::kBF16 && (f32 & 0xFFFF) == 0, "not a number of this type");
  return f32 >> 16;
}

uint64_t integer_bits(ElementType type, int64_t value) {
  int bits = bits_of(type);
  bool is_signed = class_of(type) == TypeClass::kSigned;
  if (bits >= 64) return static_cast<uint64_t>(value);
  uint64_t low = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  bool negative = is_signed && (low >> (bits - 1) & 1);
  return negative ? low | ~((uint64_t{1} << bits) - 1) : low;
}

// The highest or lowest value of an integer type or pred.
uint64_t extreme_integer(ElementType type, bool highest) {
  if (type == ElementType::kPred) return highest ? 1 : 0;
  int bits = bits_of(type);
  if (class_of(type) == TypeClass::kUnsigned) return highest ? integer_bits(type, -1) : 0;
  uint64_t lowest = uint64_t{1} << (bits - 1);
  return integer_bits(type, static_cast<int64_t>(highest ? lowest - 1 : lowest));
}

}  // namespace

Literal integer_literal(Context& context, ElementType type, int64_t value) {
  if (type == ElementType::kPred) return scalar_of_bits(context, type, value != 0);
  if (is_integer(type)) return scalar_of_bits(context, type, integer_bits(type, value));
  ElementType part = type == ElementType::kC128 ? ElementType::kF64
                     : is_complex(type)         ? ElementType::kF32
                                                : type;
  return scalar_of_bits(context, type, float_bits_of_integer(part, value));
}

Literal identity_literal(Context& context, Combiner combiner, ElementType type) {
  switch (combiner) {
    case Combiner::kProduct:
      return integer_literal(context, type, 1);
    case Combiner::kAnd:
      return scalar_of_bits(context, type, type == ElementType::kPred ? 1 : ~uint64_t{0});
    case Combiner::kMin:
    case Combiner::kMax: {
      bool highest = combiner == Combiner::kMin;
      if (!is_float(type)) return scalar_of_bits(context, type, extreme_integer(type, highest));
      return scalar_of_bits(context, type,
                            highest ? float_bits(type).highest : float_bits(type).lowest);
    }
    default:
      return integer_literal(context, type, 0);
  }
}

bool is_identity(const Literal& literal, Combiner combiner) {
  if (literal.elided || combiner == Combiner::kNone) return false;
  Context scratch;
  Literal identity = identity_literal(scratch, combiner, literal.shape.type());
  int64_t n = literal.splat ? 1 : literal.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    if (std::memcmp(literal.element(i), identity.element(0), identity.data.size()) != 0)
      return false;
  }
  return true;
}

}  // namespace gspmd
