// dense<...> constants.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "gspmd/formats/mlir/text_reader.h"
#include "gspmd/ir/float_format.h"

namespace gspmd::mlir {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The bytes of "0x00FF"; empty where that is not what it is.
std::optional<std::string> bytes_of_hex(std::string_view text) {
  if (!text.starts_with("0x") || text.size() % 2 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 2);
  for (size_t k = 2; k < text.size(); k += 2) {
    int high = hex_value(text[k]), low = hex_value(text[k + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

}  // namespace

// After `dense`: <1.0> : tensor<4xf32>.
Attr TextReader::dense() {
  Attr a;
  a.kind = Attr::Kind::kDense;
  size_t begin = cursor_.position();
  std::string_view body = cursor_.balanced();
  size_t end = cursor_.end();
  cursor_.take(":");
  Shape shape = type();
  if (!shape || !shape.is_array()) cursor_.fail(begin, "a constant of no tensor type");
  size_t after = cursor_.end();
  cursor_.seek(begin + 1);
  if (cursor_.peek("\"")) {
    std::optional<std::string> bytes = bytes_of_hex(cursor_.string());
    if (!bytes) cursor_.fail(begin + 1, "expected bytes in hexadecimal, as \"0x0000803F\"");
    a.literal = literal_of_bytes(begin, shape, *bytes);
  } else if (body.size() <= 2 || cursor_.position() + 1 == end) {
    if (shape.num_elements() != 0)
      cursor_.fail(begin, fmt::format("{} has elements, and none are given", to_string(shape)));
    a.literal = literal_of(begin, shape, false);
  } else {
    bytes_.clear();
    bool splat = !cursor_.peek("[");
    // Every element takes at least one character.
    if (!splat && shape.num_elements() > static_cast<int64_t>(body.size()))
      cursor_.fail(begin, fmt::format("fewer elements than {} has", to_string(shape)));
    if (splat) {
      dense_element(shape.type());
    } else {
      dense_elements(shape, 0, &splat);
    }
    if (cursor_.position() + 1 != end) cursor_.fail_here("more elements than the type says");
    a.literal = literal_of(begin, shape, splat);
  }
  cursor_.seek(after);
  return a;
}

void TextReader::dense_elements(Shape shape, int d, bool* is_splat) {
  if (d == shape.rank()) return dense_element(shape.type());
  int64_t n = 0;
  size_t at = cursor_.position();
  cursor_.list("[", "]", [&] {
    dense_elements(shape, d + 1, is_splat);
    ++n;
  });
  if (n != shape.dim(d)) {
    cursor_.fail(at, fmt::format("{} elements where {} has {}", n, to_string(shape), shape.dim(d)));
  }
}

void TextReader::append(uint64_t bits, int bytes) {
  for (int k = 0; k < bytes; ++k) bytes_.push_back(static_cast<std::byte>(bits >> (8 * k)));
}

void TextReader::dense_element(ElementType type) {
  if (is_complex(type)) {
    ElementType part = type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
    cursor_.take("(");
    dense_element(part);
    cursor_.take(",");
    dense_element(part);
    cursor_.take(")");
    return;
  }
  int bytes = storage_bytes(type);
  if (type == ElementType::kPred) {
    bool value = cursor_.try_word("true");
    if (!value && !cursor_.try_word("false")) value = cursor_.integer() != 0;
    return append(value, bytes);
  }
  size_t at = cursor_.position();
  std::string_view n = cursor_.number();
  if (!is_float(type) || n.starts_with("0x")) {
    cursor_.seek(at);
    return append(static_cast<uint64_t>(cursor_.integer()), bytes);
  }
  double value = 0;
  auto [end, fault] = std::from_chars(n.data(), n.data() + n.size(), value);
  if (end != n.data() + n.size()) cursor_.fail(at, fmt::format("'{}' is no number", n));
  if (fault == std::errc::result_out_of_range) value = std::strtod(std::string(n).c_str(), nullptr);
  append(float_bits(type, value), bytes);
}

const Literal* TextReader::literal_of(size_t at, Shape shape, bool splat) {
  Literal l;
  l.shape = shape;
  size_t size = static_cast<size_t>(storage_bytes(shape.type()));
  bool alike = bytes_.size() > size &&
               std::memcmp(bytes_.data(), bytes_.data() + size, bytes_.size() - size) == 0;
  if (shape.num_elements() == 0) {
    bytes_.clear();
  } else if (bytes_.empty()) {
    cursor_.fail(at, fmt::format("no elements for {}", to_string(shape)));
  }
  l.splat = (splat || alike) && shape.num_elements() > 1;
  if (l.splat) bytes_.resize(size);
  l.data = context_.arena().copy(absl::MakeConstSpan(bytes_));
  bytes_.clear();
  return context_.arena().make<Literal>(l);
}

// All elements, or one for all; i1 a byte each.
const Literal* TextReader::literal_of_bytes(size_t at, Shape shape, std::string_view bytes) {
  size_t size = static_cast<size_t>(storage_bytes(shape.type()));
  size_t elements = static_cast<size_t>(shape.num_elements());
  bool splat = bytes.size() == size && elements != 1;
  size_t packed_pred = (elements + 7) / 8;  // as older MLIR packs i1
  bool packed = shape.type() == ElementType::kPred && !splat && bytes.size() == packed_pred &&
                bytes.size() != elements;
  if (!splat && !packed &&
      (size == 0 || bytes.size() / size != elements || bytes.size() % size != 0)) {
    cursor_.fail(at, fmt::format("{} bytes where {} has {} elements of {}", bytes.size(),
                                 to_string(shape), elements, size));
  }
  const std::byte* first = reinterpret_cast<const std::byte*>(bytes.data());
  bytes_.assign(first, first + bytes.size());
  if (packed) {
    bytes_.resize(elements);
    for (size_t k = 0; k < elements; ++k)
      bytes_[k] = static_cast<std::byte>(bytes[k / 8] >> (k % 8) & 1);
  }
  return literal_of(at, shape, splat);
}

// After `dense_resource`: <name> : tensor<4xf32>. The bytes stand at the end of the file.
Attr TextReader::dense_resource() {
  size_t at = cursor_.position();
  cursor_.take("<");
  cursor_.next_char();
  std::string name = cursor_.name_or_string();
  cursor_.take(">");
  cursor_.take(":");
  Shape shape = type();
  if (!shape || !shape.is_array()) cursor_.fail(at, "a constant of no tensor type");
  Literal* l = context_.arena().make<Literal>(Literal{.shape = shape, .elided = true});
  if (name != "__elided__") pending_resources_.emplace_back(l, name);
  Attr a;
  a.kind = Attr::Kind::kDense;
  a.literal = l;
  return a;
}

// {-# dialect_resources: { builtin: { name: "0x04000000..." } } #-}
void TextReader::resources() {
  absl::flat_hash_map<std::string, std::pair<size_t, std::string>> found;
  cursor_.take("{-#");
  while (!cursor_.try_take("#-}")) {
    cursor_.take_word("dialect_resources");
    cursor_.take(":");
    cursor_.list("{", "}", [&] {
      cursor_.word();
      cursor_.take(":");
      cursor_.list("{", "}", [&] {
        cursor_.next_char();
        std::string key = cursor_.name_or_string();
        cursor_.take(":");
        size_t at = cursor_.position();
        found[key] = {at, cursor_.string()};
      });
    });
    cursor_.try_take(",");
  }
  for (auto& [literal, name] : pending_resources_) {
    auto it = found.find(name);
    if (it == found.end()) continue;
    std::optional<std::string> bytes = bytes_of_hex(it->second.second);
    if (!bytes || bytes->size() < 4)
      cursor_.fail(it->second.first, "expected bytes in hexadecimal");
    *literal =
        *literal_of_bytes(it->second.first, literal->shape, std::string_view(*bytes).substr(4));
  }
}

}  // namespace gspmd::mlir
