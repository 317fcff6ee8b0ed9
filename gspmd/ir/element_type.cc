#include "gspmd/ir/element_type.h"

#include <array>

namespace gspmd {
namespace {

struct TypeInfo {
  std::string_view name;
  TypeClass type_class;
};

constexpr TypeInfo kTypes[] = {
#define X(id, name, bits, kind) {name, TypeClass::kind},
    GSPMD_ELEMENT_TYPES(X)
#undef X
};

}  // namespace

std::string_view name_of(ElementType t) { return kTypes[static_cast<size_t>(t)].name; }
TypeClass class_of(ElementType t) { return kTypes[static_cast<size_t>(t)].type_class; }

std::optional<ElementType> parse_element_type(std::string_view name) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].name == name && static_cast<ElementType>(i) != ElementType::kTuple) {
      return static_cast<ElementType>(i);
    }
  }
  return std::nullopt;
}

}  // namespace gspmd
