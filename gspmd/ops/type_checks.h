#pragma once

#include <string_view>

#include "gspmd/ir/shape.h"

namespace gspmd {

// What operators ask of their operands' element types. Errors are as in shape_checks.h.

// Sets of classes of element types, by the bits 1 << TypeClass.
using Types = unsigned;
constexpr Types bit(TypeClass c) { return 1u << static_cast<unsigned>(c); }
inline constexpr Types kInts = bit(TypeClass::kSigned) | bit(TypeClass::kUnsigned);
inline constexpr Types kFloats = bit(TypeClass::kFloat);
inline constexpr Types kFloating = kFloats | bit(TypeClass::kComplex);
inline constexpr Types kBits = bit(TypeClass::kPredicate) | kInts;
inline constexpr Types kReals = kInts | kFloats;
inline constexpr Types kNumbers = kInts | kFloating;
inline constexpr Types kOrdered = kBits | kFloats;
inline constexpr Types kAny = kBits | kFloating;

// Operand number `operand` must be of one of these types.
void check_type(std::string_view op, Shape s, size_t operand, Types types);

// The wider of two operands whose float types differ, as old programs mix them; other types must be
// the same.
Shape wider(std::string_view op, Shape a, size_t operand_a, Shape b, size_t operand_b);

}  // namespace gspmd
