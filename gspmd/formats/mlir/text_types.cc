#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <limits>

#include "gspmd/base/dims.h"
#include "gspmd/formats/mlir/text_reader.h"

namespace gspmd::mlir {
namespace {

// i32 -> s32 (signless integers are signed), i1 -> pred, ui8 -> u8, bf16, f8E4M3FN -> f8e4m3fn.
std::optional<ElementType> scalar_named(std::string_view name) {
  if (name == "i1") return ElementType::kPred;
  if (name == "index") return ElementType::kS64;
  if (name.starts_with("ui")) return parse_element_type("u" + std::string(name.substr(2)));
  if (name.starts_with("si")) return parse_element_type("s" + std::string(name.substr(2)));
  bool integer = name.size() > 1 && name[0] == 'i' && absl::ascii_isdigit(name[1]);
  if (integer) return parse_element_type("s" + std::string(name.substr(1)));
  bool floating = name.starts_with("f") || name == "bf16";
  return floating ? parse_element_type(absl::AsciiStrToLower(std::string(name))) : std::nullopt;
}

}  // namespace

std::optional<ElementType> TextReader::try_element_type() {
  size_t at = cursor_.position();
  if (cursor_.try_word("complex")) {
    cursor_.take("<");
    ElementType part = element_type();
    cursor_.take(">");
    if (part == ElementType::kF32) return ElementType::kC64;
    if (part == ElementType::kF64) return ElementType::kC128;
    cursor_.fail(at, "complex numbers have parts of f32 or f64");
  }
  std::optional<ElementType> t = scalar_named(cursor_.peek_word());
  if (t) cursor_.word();
  return t;
}

ElementType TextReader::element_type() {
  if (std::optional<ElementType> t = try_element_type()) return *t;
  if (cursor_.peek("!quant")) cursor_.fail_here("quantized types are not supported");
  cursor_.fail_here(fmt::format("expected an element type, not {}", cursor_.found()),
                    "such as f32, bf16, i32, ui8, i1 or complex<f32>");
}

// After `tensor`: <2x?x3xf32>, <f32>, <?x8xf32, #stablehlo.bounds<4, ?>>.
Shape TextReader::tensor_type() {
  cursor_.take("<");
  if (cursor_.peek("*")) cursor_.fail_here("tensors of unknown rank are not supported");
  DimVector dims;
  bool dynamic = false;
  size_t at = cursor_.position();
  while (cursor_.peek_number() || cursor_.peek("?")) {
    dynamic |= cursor_.try_take("?");
    size_t digits = cursor_.position();
    std::string_view rest = cursor_.text().substr(digits);
    size_t n = 0;
    while (n < rest.size() && absl::ascii_isdigit(rest[n])) ++n;
    int64_t size = 0;
    for (char c : rest.substr(0, n)) {
      if (size > (std::numeric_limits<int64_t>::max() - 9) / 10)
        cursor_.fail(digits, "a dimension of more than 2^63 elements");
      size = size * 10 + (c - '0');
    }
    cursor_.seek(digits + n);
    dims.push_back(size);
    cursor_.take("x");
  }
  ElementType type = element_type();
  if (cursor_.try_take(",")) attribute();
  cursor_.take(">");
  if (dynamic) {
    cursor_.fail(at, "tensors of dynamic size are not supported",
                 "export the program for static shapes");
  }
  if (too_large(dims)) cursor_.fail(at, "a tensor of too many elements");
  return context_.array(type, dims);
}

std::vector<Shape> TextReader::types_until(std::string_view close) {
  std::vector<Shape> out;
  if (cursor_.try_take(close)) return out;
  do {
    out.push_back(type());
    if (cursor_.peek("{")) {  // attributes of a function's result
      Attrs ignored;
      attribute_dict(&ignored);
    }
  } while (cursor_.try_take(","));
  cursor_.take(close);
  return out;
}

Shape TextReader::type() {
  DepthGuard guard(this);
  size_t at = cursor_.position();
  if (cursor_.try_word("tensor")) return tensor_type();
  if (cursor_.try_word("tuple")) {
    cursor_.take("<");
    return context_.tuple(types_until(">"));
  }
  if (cursor_.try_take("!")) {
    std::string name = cursor_.name_or_string();
    if (name == "stablehlo.token" || name == "mhlo.token") return context_.token();
    if (auto alias = aliases_.find("!" + name); alias != aliases_.end()) {
      size_t after = cursor_.end();
      cursor_.seek(alias->second);
      Shape s = type();
      cursor_.seek(after);
      return s;
    }
    if (cursor_.peek("<")) cursor_.balanced();
    return Shape();
  }
  if (cursor_.try_take("(")) {  // a function's type
    types_until(")");
    cursor_.take("->");
    if (cursor_.try_take("(")) {
      types_until(")");
    } else {
      type();
    }
    return Shape();
  }
  if (std::optional<ElementType> t = try_element_type()) return context_.scalar(*t);
  std::string_view name = cursor_.word();
  if (name == "none") return Shape();
  if (name == "memref" || name == "vector") {
    cursor_.balanced();
    return Shape();
  }
  cursor_.fail(at, fmt::format("expected a type, not '{}'", name), "such as tensor<8x4xf32>");
}

}  // namespace gspmd::mlir
