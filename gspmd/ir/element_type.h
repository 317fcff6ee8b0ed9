#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gspmd {

// HLO's primitive types: enumerator, spelling, bits as counted in buffers and by `stats`, class.
// clang-format off
#define GSPMD_ELEMENT_TYPES(X)             \
  X(kPred, "pred", 8, kPredicate)          \
  X(kS1, "s1", 1, kSigned) X(kS2, "s2", 2, kSigned) X(kS4, "s4", 4, kSigned) X(kS8, "s8", 8, kSigned) \
  X(kS16, "s16", 16, kSigned) X(kS32, "s32", 32, kSigned) X(kS64, "s64", 64, kSigned)                 \
  X(kU1, "u1", 1, kUnsigned) X(kU2, "u2", 2, kUnsigned) X(kU4, "u4", 4, kUnsigned) X(kU8, "u8", 8, kUnsigned) \
  X(kU16, "u16", 16, kUnsigned) X(kU32, "u32", 32, kUnsigned) X(kU64, "u64", 64, kUnsigned)           \
  X(kF4E2M1FN, "f4e2m1fn", 4, kFloat) X(kF6E2M3FN, "f6e2m3fn", 6, kFloat) X(kF6E3M2FN, "f6e3m2fn", 6, kFloat) \
  X(kF8E3M4, "f8e3m4", 8, kFloat) X(kF8E4M3, "f8e4m3", 8, kFloat) X(kF8E4M3B11FNUZ, "f8e4m3b11fnuz", 8, kFloat) \
  X(kF8E4M3FN, "f8e4m3fn", 8, kFloat) X(kF8E4M3FNUZ, "f8e4m3fnuz", 8, kFloat) X(kF8E5M2, "f8e5m2", 8, kFloat) \
  X(kF8E5M2FNUZ, "f8e5m2fnuz", 8, kFloat) X(kF8E8M0FNU, "f8e8m0fnu", 8, kFloat)                       \
  X(kF16, "f16", 16, kFloat) X(kBF16, "bf16", 16, kFloat) X(kF32, "f32", 32, kFloat) X(kF64, "f64", 64, kFloat) \
  X(kC64, "c64", 64, kComplex) X(kC128, "c128", 128, kComplex)                                        \
  X(kToken, "token", 0, kOther) X(kOpaque, "opaque", 0, kOther) X(kTuple, "tuple", 0, kOther)
// clang-format on

enum class ElementType : uint8_t {
#define X(id, name, bits, kind) id,
  GSPMD_ELEMENT_TYPES(X)
#undef X
};

enum class TypeClass : uint8_t { kPredicate, kSigned, kUnsigned, kFloat, kComplex, kOther };

std::string_view name_of(ElementType t);
std::optional<ElementType> parse_element_type(std::string_view name);
inline constexpr uint8_t kElementBits[] = {
#define X(id, name, bits, kind) bits,
    GSPMD_ELEMENT_TYPES(X)
#undef X
};
constexpr int bits_of(ElementType t) { return kElementBits[static_cast<size_t>(t)]; }
TypeClass class_of(ElementType t);

inline bool is_integer(ElementType t) {
  return class_of(t) == TypeClass::kSigned || class_of(t) == TypeClass::kUnsigned;
}
inline bool is_float(ElementType t) { return class_of(t) == TypeClass::kFloat; }
inline bool is_complex(ElementType t) { return class_of(t) == TypeClass::kComplex; }
// Bytes of one element in a Literal and in the engine's buffers: types under 8 bits take one byte
// each.
inline int storage_bytes(ElementType t) { return (bits_of(t) + 7) / 8; }

}  // namespace gspmd
