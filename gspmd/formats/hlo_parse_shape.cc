#include <fmt/format.h>

#include "gspmd/formats/hlo_parser.h"

namespace gspmd {
namespace {

// Bytes of an array must be countable in an int64_t.
bool too_big(ElementType type, absl::Span<const int64_t> dims) {
  int64_t bits = std::max(8, bits_of(type));
  for (int64_t d : dims) {
    if (d > 0 && __builtin_mul_overflow(bits, d, &bits)) return true;
  }
  return false;
}

}  // namespace

// Whether a shape stands here: `(`, or a type followed by `[`.
bool HloParser::starts_shape() {
  if (lex_.peek('(')) return true;
  size_t begin = lex_.position();
  std::string_view w = lex_.word();
  bool result = !w.empty() && (lex_.peek('[') || (w == "b" && lex_.here() == '('));
  lex_.seek(begin);
  return result;
}

Shape HloParser::shape() {
  if (!lex_.peek('(')) return array_shape();
  DepthGuard guard(this);
  absl::InlinedVector<Shape, 8> elements;
  lex_.list('(', ')', [&] { elements.push_back(shape()); });
  return context_.tuple(elements);
}

Shape HloParser::array_shape() {
  // Most shapes stand many times in a text: the same spelling is the same shape.
  size_t begin = lex_.position();
  std::string_view type_name = lex_.word();
  size_t after_type = lex_.end();
  std::string_view rest = lex_.text().substr(after_type);
  size_t length = rest.starts_with('[') ? rest.find(']') : std::string_view::npos;
  if (length != std::string_view::npos && length + 1 < rest.size() && rest[length + 1] == '{') {
    size_t close = rest.find_first_of("}\n", length);
    length = close;
  }
  std::string_view spelling;
  if (length != std::string_view::npos) {
    spelling = lex_.text().substr(begin, after_type - begin + length + 1);
    if (auto it = shapes_.find(spelling); it != shapes_.end()) {
      lex_.seek(begin + spelling.size());
      return it->second;
    }
  }

  std::optional<ElementType> type = parse_element_type(type_name);
  if (!type) {
    bool buffer = type_name == "b" && lex_.here() == '(';
    lex_.seek(begin);
    if (buffer) lex_.fail(begin, "buffer shapes, b(...), are not supported");
    lex_.fail_here("a shape", "as in f32[8,4] or (f32[8], s32[])");
  }
  DimVector dims;
  uint64_t dynamic = 0;
  lex_.list('[', ']', [&] {
    size_t at = lex_.position();
    if (dims.size() == 64) lex_.fail(at, "more than 64 dimensions");
    uint64_t bit = uint64_t{1} << dims.size();
    if (lex_.try_take('?')) {
      dynamic |= bit;
      dims.push_back(-1);
      return;
    }
    if (lex_.try_take("<=")) dynamic |= bit;
    dims.push_back(lex_.integer());
    if (dims.back() < 0) lex_.fail(at, fmt::format("a dimension of size {}", dims.back()));
  });
  if (too_big(*type, dims)) {
    lex_.fail(begin, "an array of more than 2^63 bits", "no machine holds such an array");
  }
  const Layout* l = layout(static_cast<int>(dims.size()));
  Shape result = context_.array(*type, dims, l, dynamic);
  if (lex_.end() == begin + spelling.size() && !spelling.empty()) shapes_.emplace(spelling, result);
  return result;
}

// `{1,0:T(8,128)S(5)}` behind a shape, where a '{' is followed by an integer, ':' or, for scalars,
// '}'.
const Layout* HloParser::layout(int rank) {
  size_t begin = lex_.end();
  if (lex_.here() != '{') return nullptr;
  lex_.take('{');
  char next = lex_.peek();
  bool is_layout = (next >= '0' && next <= '9') || next == ':';
  if (next == '}' && rank == 0) {
    lex_.take('}');
    return nullptr;
  }
  if (!is_layout) {
    lex_.seek(begin);
    return nullptr;
  }
  DimVector minor_to_major;
  uint64_t seen = 0;
  while (!lex_.peek(':') && !lex_.peek('}')) {
    size_t at = lex_.position();
    int64_t d = lex_.integer();
    if (d < 0 || d >= rank || (seen >> d & 1)) {
      lex_.fail(
          at,
          fmt::format("{} in the layout of a shape of rank {} is out of range or stands twice", d,
                      rank),
          "name each dimension once, as in f32[8,4]{1,0}");
    }
    seen |= uint64_t{1} << d;
    minor_to_major.push_back(d);
    if (!lex_.try_take(',')) break;
  }
  if (static_cast<int>(minor_to_major.size()) != rank) {
    lex_.fail(begin,
              fmt::format("a layout of {} dimensions for a shape of rank {}", minor_to_major.size(),
                          rank),
              "name each dimension once, as in f32[8,4]{1,0}");
  }
  std::string_view rest;
  if (lex_.try_take(':')) {
    size_t rest_at = lex_.position();
    while (lex_.here() != '}') {
      if (lex_.here() == '(') {
        lex_.balanced();
      } else if (lex_.end() == lex_.text().size() || lex_.here() == '\n' || lex_.here() == '{') {
        lex_.fail_here("'}'");
      } else {
        lex_.seek(lex_.end() + 1);
      }
    }
    rest = lex_.text().substr(rest_at, lex_.end() - rest_at);
  }
  lex_.take('}');
  return context_.layout(minor_to_major, rest);
}

}  // namespace gspmd
