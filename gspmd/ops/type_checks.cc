#include "gspmd/ops/type_checks.h"

#include <fmt/format.h>

#include <string>

#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

std::string names(Types types) {
  switch (types) {
    case kInts:
      return "integers are needed";
    case kFloats:
      return "floating-point numbers are needed";
    case kFloating:
      return "floating-point or complex numbers are needed";
    case kBits:
      return "integers or pred are needed";
    case kReals:
      return "integers or floating-point numbers are needed";
    case kNumbers:
      return "numbers are needed, not pred";
    case kOrdered:
      return "complex numbers have no order";
    default:
      return "";
  }
}

}  // namespace

void check_type(std::string_view name, Shape s, size_t operand, Types types) {
  if (types & bit(class_of(s.type()))) return;
  refuse(name, fmt::format("operand {} is {}", operand, to_string(s)), names(types));
}

Shape wider(std::string_view name, Shape a, size_t at_a, Shape b, size_t at_b) {
  if (a.type() == b.type()) return a;
  if (!is_float(a.type()) || !is_float(b.type())) {
    refuse(name,
           fmt::format("operand {} has type {} and operand {} has {}", at_a, name_of(a.type()),
                       at_b, name_of(b.type())),
           "convert one of them");
  }
  return bits_of(b.type()) > bits_of(a.type()) ? b : a;
}

}  // namespace gspmd
