#include "gspmd/formats/mlir/program.h"

namespace gspmd::mlir {

const Attr* find(const Attrs& attrs, std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

const Attr* Attr::find(std::string_view name) const { return mlir::find(entries, name); }

}  // namespace gspmd::mlir
