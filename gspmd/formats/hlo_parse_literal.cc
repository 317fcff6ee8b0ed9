#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "gspmd/formats/hlo_parser.h"
#include "gspmd/ir/float_format.h"

namespace gspmd {

const Literal* HloParser::literal(Shape shape) {
  return context_.arena().make<Literal>(literal_value(shape));
}

// `{...}`: the values were left out when the text was printed.
bool HloParser::elided_literal() {
  size_t begin = lex_.position();
  if (lex_.try_take('{') && lex_.try_take("...") && lex_.try_take('}')) return true;
  lex_.seek(begin);
  return false;
}

Literal HloParser::literal_value(Shape shape) {
  Literal out;
  out.shape = shape;
  size_t at = lex_.position();
  if (elided_literal()) {
    warn(at, fmt::format("the values of a constant {} are not in the text", to_string(shape)));
    out.elided = true;
    return out;
  }
  if (shape.is_tuple()) return tuple_literal(shape);
  if (!shape.is_array()) lex_.fail(at, fmt::format("a constant of type {}", to_string(shape)));
  if (shape.is_dynamic()) lex_.fail(at, "a constant with dynamic dimensions");
  int64_t n = shape.num_elements();
  if (n == 0) {
    skip_empty(shape.rank());
    return out;
  }
  // Every element takes at least one character.
  int64_t left = static_cast<int64_t>(lex_.text().size() - lex_.end());
  if (n > left)
    lex_.fail(at, fmt::format("{} needs {} elements; the text ends before", to_string(shape), n));
  literal_bytes_.clear();
  elements(shape, 0);
  size_t size = static_cast<size_t>(storage_bytes(shape.type()));
  const std::byte* first = literal_bytes_.data();
  size_t all = literal_bytes_.size();
  out.splat = n > 1 && std::memcmp(first, first + size, all - size) == 0;
  out.data = context_.arena().copy(absl::MakeConstSpan(first, out.splat ? size : all));
  return out;
}

Literal HloParser::tuple_literal(Shape shape) {
  DepthGuard guard(this);
  Literal out;
  out.shape = shape;
  lex_.take('(');
  size_t n = shape.elements().size();
  absl::Span<Literal> elements = context_.arena().array<Literal>(n);
  for (size_t k = 0; k < n; ++k) {
    if (k > 0) lex_.take(',');
    elements[k] = literal_value(shape.element(static_cast<int>(k)));
    if (k == 0 && n > 1 && elements[0].elided && lex_.peek(')')) {  // ({...}): the whole tuple
      out.elided = true;
      break;
    }
  }
  lex_.take(')');
  if (!out.elided) out.elements = elements;
  return out;
}

// Elements of dimension d and the ones inside.
void HloParser::elements(Shape shape, int d) {
  if (d == shape.rank()) return element(shape.type());
  lex_.take('{');
  int64_t n = shape.dim(d);
  for (int64_t k = 0; k < n; ++k) {
    if (k > 0 && !lex_.try_take(',')) {
      lex_.fail_here(fmt::format("','"),
                     fmt::format("dimension {} of {} has {} elements; here are {}", d,
                                 to_string(shape), n, k));
    }
    elements(shape, d + 1);
  }
  if (!lex_.try_take('}')) {
    lex_.fail_here("'}'",
                   fmt::format("dimension {} of {} has {} elements", d, to_string(shape), n));
  }
}

// Braces around nothing: `{}`, `{ {}, {} }`; a scalar is never empty.
void HloParser::skip_empty(int rank) {
  size_t at = lex_.position();
  std::string_view raw = lex_.balanced();
  if (rank == 0 || raw.find_first_not_of("{}, \n\t\r") != std::string_view::npos) {
    lex_.fail(at, "an element in an array without elements");
  }
}

namespace {

void append(std::vector<std::byte>* out, uint64_t bits, int bytes) {
  size_t at = out->size();
  out->resize(at + static_cast<size_t>(bytes));
  std::memcpy(out->data() + at, &bits, static_cast<size_t>(bytes));
}

}  // namespace

void HloParser::element(ElementType type) {
  int bytes = storage_bytes(type);
  switch (class_of(type)) {
    case TypeClass::kPredicate:
    case TypeClass::kSigned:
    case TypeClass::kUnsigned:
      return append(&literal_bytes_, integer_element(type), bytes);
    case TypeClass::kFloat:
      return append(&literal_bytes_, float_element(type), bytes);
    case TypeClass::kComplex: {
      ElementType part = type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
      bool is_pair = lex_.try_take('(');
      append(&literal_bytes_, float_element(part), bytes / 2);
      if (is_pair) lex_.take(',');
      append(&literal_bytes_, is_pair ? float_element(part) : 0, bytes / 2);
      if (is_pair) lex_.take(')');
      return;
    }
    case TypeClass::kOther:
      lex_.fail_here("no element");
  }
}

uint64_t HloParser::integer_element(ElementType type) {
  size_t at = lex_.position();
  std::string_view token = lex_.number();
  if (token == "true" || token == "false") {
    if (type == ElementType::kPred) return token == "true";
    lex_.fail(at, fmt::format("'{}' as an element of type {}", token, name_of(type)));
  }
  const char* last = token.data() + token.size();
  auto bad = [&] {
    lex_.fail(
        at, fmt::format("'{}' is no {}", token, name_of(type)),
        fmt::format("elements of {} are {}", name_of(type),
                    type == ElementType::kPred ? "true, false, 1 or 0" : "integers in its range"));
  };
  int bits = type == ElementType::kPred ? 1 : bits_of(type);
  if (class_of(type) == TypeClass::kSigned) {
    int64_t value = 0;
    auto [end, fault] = std::from_chars(token.data(), last, value);
    bool fits =
        bits == 64 || (value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1));
    if (fault != std::errc() || end != last || !fits) bad();
    return static_cast<uint64_t>(value);
  }
  uint64_t value = 0;
  auto [end, fault] = std::from_chars(token.data(), last, value);
  bool fits = bits == 64 || value < uint64_t{1} << bits;
  if (fault != std::errc() || end != last || !fits) bad();
  return value;
}

uint64_t HloParser::float_element(ElementType type) {
  size_t at = lex_.position();
  std::string_view token = lex_.number();
  std::string_view unsigned_token = token.starts_with('-') ? token.substr(1) : token;
  if (unsigned_token.starts_with("nan")) return nan_element(type, token, at);
  double value = 0;
  const char* last = token.data() + token.size();
  if (unsigned_token == "inf") {
    value = token.size() > 3 ? -std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::infinity();
  } else {
    auto [end, fault] = std::from_chars(token.data(), last, value);
    bool word =
        unsigned_token.empty() || std::isalpha(static_cast<unsigned char>(unsigned_token[0]));
    if (word || end != last || fault == std::errc::invalid_argument) {
      lex_.fail(at, fmt::format("'{}' is no {}", token, name_of(type)));
    }
    if (fault == std::errc::result_out_of_range) {  // 1e999 or 1e-999
      value = std::strtod(std::string(token).c_str(), nullptr);
    }
  }
  uint64_t bits = float_bits(type, value);
  bool overflow = !std::isinf(value) && !std::isfinite(float_value(type, bits));
  if (overflow || (std::isinf(value) && unsigned_token != "inf")) {
    lex_.fail(at, fmt::format("'{}' is too large for {}", token, name_of(type)),
              "write inf for the infinity");
  }
  return bits;
}

// nan, -nan, nan(0x200): the payload is the mantissa.
uint64_t HloParser::nan_element(ElementType type, std::string_view token, size_t at) {
  FloatFormat f = format_of(type);
  bool negative = token.starts_with('-');
  uint64_t bits = float_bits(type, std::numeric_limits<double>::quiet_NaN());
  if (f.nan == FloatFormat::Nan::kNone) {
    lex_.fail(at, fmt::format("{} has no NaN", name_of(type)));
  }
  if (size_t open = token.find('('); open != std::string_view::npos) {
    std::string_view digits = token.substr(open + 1, token.size() - open - 2);
    if (digits.starts_with("0x")) digits.remove_prefix(2);
    uint64_t payload = 0;
    auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), payload, 16);
    bool fits = f.nan == FloatFormat::Nan::kIeee && payload != 0 && payload >> f.mantissa_bits == 0;
    if (fault != std::errc() || end != digits.data() + digits.size() || !fits) {
      lex_.fail(at, fmt::format("'{}' is no NaN of {}", token, name_of(type)));
    }
    bits = (bits >> f.mantissa_bits << f.mantissa_bits) | payload;
  } else if (token.substr(negative) != "nan") {
    lex_.fail(at, fmt::format("'{}' is no {}", token, name_of(type)));
  }
  bool sign = negative && f.has_sign && f.nan != FloatFormat::Nan::kNegativeZero;
  return sign ? bits | uint64_t{1} << (f.exponent_bits + f.mantissa_bits) : bits;
}

}  // namespace gspmd
