// Types and constants as StableHLO text.

#include <absl/strings/ascii.h>
#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include "gspmd/formats/stablehlo/exporter.h"
#include "gspmd/ir/frontend_attributes.h"

namespace gspmd::stablehlo {

std::string element_type_text(ElementType t) {
  if (t == ElementType::kPred) return "i1";
  if (t == ElementType::kC64) return "complex<f32>";
  if (t == ElementType::kC128) return "complex<f64>";
  std::string name(name_of(t));
  if (class_of(t) == TypeClass::kSigned) return "i" + name.substr(1);
  if (class_of(t) == TypeClass::kUnsigned) return "ui" + name.substr(1);
  bool small = name.size() > 3 && name[0] == 'f' && name != "f16" && name != "f32";
  if (!small) return name;
  // f8e4m3fn -> f8E4M3FN
  return "f" + absl::AsciiStrToUpper(name.substr(1));
}

std::string type_text(Shape s) {
  if (s.is_token()) return "!stablehlo.token";
  std::string out = "tensor<";
  for (int64_t d : s.dims()) out += fmt::format("{}x", d);
  return out + element_type_text(s.type()) + ">";
}

std::string array_text(absl::Span<const int64_t> values) {
  if (values.empty()) return "array<i64>";
  return "array<i64: " + absl::StrJoin(values, ", ") + ">";
}

std::string dense_text(absl::Span<const int64_t> values, absl::Span<const int64_t> dims) {
  std::string type = "tensor<";
  for (int64_t d : dims) type += fmt::format("{}x", d);
  type += "i64>";
  std::string out;
  if (values.empty()) return "dense<> : " + type;
  int64_t columns = dims.size() == 2 ? dims[1] : static_cast<int64_t>(values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    bool first = static_cast<int64_t>(k) % columns == 0;
    out +=
        fmt::format("{}{}{}", k == 0 ? "" : ", ", dims.size() == 2 && first ? "[" : "", values[k]);
    if (dims.size() == 2 && static_cast<int64_t>(k + 1) % columns == 0) out += "]";
  }
  return fmt::format("dense<[{}]> : {}", out, type);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 32 || byte > 126) {
      out += fmt::format("\\{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// The elements' bytes, or one element's where all are alike.
std::string dense_text(const Literal& l) {
  std::string type = type_text(l.shape);
  if (l.num_elements() == 0) return "dense<> : " + type;
  std::optional<int64_t> number = integer_at(l, 0);
  bool one = l.splat || l.num_elements() == 1;
  if (one && number && l.shape.type() == ElementType::kPred)
    return fmt::format("dense<{}> : {}", *number != 0 ? "true" : "false", type);
  if (one && number && *number >= 0) return fmt::format("dense<{}> : {}", *number, type);
  std::string hex;
  hex.reserve(2 * l.data.size());
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (std::byte b : l.data) {
    hex += kDigits[static_cast<int>(b) >> 4];
    hex += kDigits[static_cast<int>(b) & 15];
  }
  return fmt::format("dense<\"0x{}\"> : {}", hex, type);
}

}  // namespace gspmd::stablehlo
