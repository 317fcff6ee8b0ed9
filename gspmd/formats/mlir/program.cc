#include "gspmd/formats/mlir/program.h"

#include <algorithm>

namespace gspmd::mlir {

const Attr* find(const Attrs& attrs, std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

const Attr* Attr::find(std::string_view name) const { return mlir::find(entries, name); }

bool too_large(absl::Span<const int64_t> dims) {
  constexpr int64_t kMost = int64_t{1} << 52;
  int64_t n = 1;
  for (int64_t d : dims) {
    int64_t factor = std::max<int64_t>(d, 1);
    if (factor > kMost / n) return true;
    n *= factor;
  }
  return false;
}

}  // namespace gspmd::mlir
