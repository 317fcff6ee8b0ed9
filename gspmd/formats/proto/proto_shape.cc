#include "gspmd/formats/proto/proto_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gspmd/formats/hlo_lexer.h"
#include "gspmd/formats/hlo_text.h"

namespace gspmd {
namespace {

constexpr int kMaxTupleDepth = 256;
// How the messages number element types.
constexpr std::pair<int, ElementType> kTypeNumbers[] = {{1, ElementType::kPred},
                                                        {2, ElementType::kS8},
                                                        {3, ElementType::kS16},
                                                        {4, ElementType::kS32},
                                                        {5, ElementType::kS64},
                                                        {6, ElementType::kU8},
                                                        {7, ElementType::kU16},
                                                        {8, ElementType::kU32},
                                                        {9, ElementType::kU64},
                                                        {10, ElementType::kF16},
                                                        {11, ElementType::kF32},
                                                        {12, ElementType::kF64},
                                                        {13, ElementType::kTuple},
                                                        {14, ElementType::kOpaque},
                                                        {15, ElementType::kC64},
                                                        {16, ElementType::kBF16},
                                                        {17, ElementType::kToken},
                                                        {18, ElementType::kC128},
                                                        {19, ElementType::kF8E5M2},
                                                        {20, ElementType::kF8E4M3FN},
                                                        {21, ElementType::kS4},
                                                        {22, ElementType::kU4},
                                                        {23, ElementType::kF8E4M3B11FNUZ},
                                                        {24, ElementType::kF8E5M2FNUZ},
                                                        {25, ElementType::kF8E4M3FNUZ},
                                                        {26, ElementType::kS2},
                                                        {27, ElementType::kU2},
                                                        {28, ElementType::kF8E4M3},
                                                        {29, ElementType::kF8E3M4},
                                                        {30, ElementType::kS1},
                                                        {31, ElementType::kU1},
                                                        {32, ElementType::kF4E2M1FN},
                                                        {33, ElementType::kF8E8M0FNU},
                                                        {35, ElementType::kF6E3M2FN},
                                                        {36, ElementType::kF6E2M3FN}};

ElementType type_of(int64_t number) {
  for (auto [n, type] : kTypeNumbers) {
    if (n == number) return type;
  }
  throw Error(fmt::format("element type number {} is unknown or not supported", number));
}

int number_of(ElementType type) {
  for (auto [n, t] : kTypeNumbers) {
    if (t == type) return n;
  }
  GSPMD_CHECK(false, "an element type without number");
}

// The part of a layout behind the ':', as text.
std::string rest_of_layout(const proto::LayoutProto& from) {
  std::string rest;
  if (from.tiles_size() > 0) rest += "T";
  for (const auto& tile : from.tiles()) {
    std::string sizes;
    for (int64_t d : tile.dimensions()) {
      sizes += sizes.empty() ? "" : ",";
      sizes += d == INT64_MIN ? "*" : fmt::format("{}", d);
    }
    rest += "(" + sizes + ")";
  }
  int64_t tail = from.tail_padding_alignment_in_elements();
  if (tail > 1) rest += fmt::format("L({})", tail);
  if (from.element_size_in_bits() != 0) rest += fmt::format("E({})", from.element_size_in_bits());
  if (from.memory_space() != 0) rest += fmt::format("S({})", from.memory_space());
  bool sparse = std::any_of(from.dim_level_types().begin(), from.dim_level_types().end(),
                            [](int64_t type) { return type != 0; });
  if (sparse || from.has_physical_shape() || from.dynamic_shape_metadata_prefix_bytes() != 0) {
    throw Error("a sparse or dynamic layout is not supported");
  }
  return rest;
}

const Layout* read_layout(Context& context, const proto::LayoutProto& from, int rank) {
  DimVector order(from.minor_to_major().begin(), from.minor_to_major().end());
  uint64_t seen = 0;
  for (int64_t d : order) {
    bool good = d >= 0 && d < rank && (seen >> d & 1) == 0;
    if (!good) throw Error(fmt::format("{} in a layout of {} dimensions", d, rank));
    seen |= uint64_t{1} << d;
  }
  if (static_cast<int>(order.size()) != rank) {
    throw Error(
        fmt::format("a layout of {} dimensions for a shape of rank {}", order.size(), rank));
  }
  return context.layout(order, context.arena().text(rest_of_layout(from)));
}

void write_rest(std::string_view rest, proto::LayoutProto* to) {
  auto refuse = [&] {
    throw Error(fmt::format("the layout '{}' can not be written as a message", rest));
  };
  HloLexer lex(rest, "layout");
  while (!lex.at_end()) {
    std::string_view kind = rest.substr(lex.position(), 1);
    lex.seek(lex.position() + 1);
    if (kind == "T") {
      if (!lex.peek('(')) refuse();
      while (lex.peek('(')) {
        auto* tile = to->add_tiles();
        lex.list('(', ')',
                 [&] { tile->add_dimensions(lex.try_take('*') ? INT64_MIN : lex.integer()); });
      }
      continue;
    }
    lex.take('(');
    int64_t number = lex.integer();
    lex.take(')');
    if (kind == "L") {
      to->set_tail_padding_alignment_in_elements(number);
    } else if (kind == "E") {
      to->set_element_size_in_bits(number);
    } else if (kind == "S") {
      to->set_memory_space(number);
    } else {
      refuse();
    }
  }
}

void write_layout(Shape shape, proto::LayoutProto* to) {
  const Layout* layout = shape.layout();
  to->set_tail_padding_alignment_in_elements(1);
  if (layout == nullptr) {
    for (int d = shape.rank(); d-- > 0;) to->add_minor_to_major(d);
    return;
  }
  to->mutable_minor_to_major()->Add(layout->minor_to_major.begin(), layout->minor_to_major.end());
  write_rest(layout->rest, to);
}

Shape read_array(Context& context, const proto::ShapeProto& from, ElementType type) {
  DimVector dims;
  uint64_t dynamic = 0;
  int64_t bits = std::max(8, bits_of(type));
  if (from.dimensions_size() > 64) throw Error("more than 64 dimensions");
  for (int64_t d : from.dimensions()) {
    if (d == INT64_MIN) dynamic |= uint64_t{1} << dims.size();
    if (d < 0 && d != INT64_MIN) throw Error(fmt::format("a dimension of size {}", d));
    dims.push_back(std::max<int64_t>(d, -1));
    if (d > 0 && __builtin_mul_overflow(bits, d, &bits)) {
      throw Error("an array of more than 2^63 bits");
    }
  }
  int flags = from.is_dynamic_dimension_size();
  if (flags != 0 && flags != from.dimensions_size()) {
    throw Error(
        fmt::format("{} flags of dynamic dimensions for {} dimensions", flags, dims.size()));
  }
  for (int d = 0; d < flags; ++d) {
    if (from.is_dynamic_dimension(d)) dynamic |= uint64_t{1} << d;
  }
  int rank = static_cast<int>(dims.size());
  const Layout* layout = from.has_layout() ? read_layout(context, from.layout(), rank) : nullptr;
  return context.array(type, dims, layout, dynamic);
}

}  // namespace

Shape read_shape(Context& context, const proto::ShapeProto& from, int depth) {
  if (depth > kMaxTupleDepth) throw Error("tuples nested too deep");
  ElementType type = type_of(from.element_type());
  if (type == ElementType::kToken) return context.token();
  if (type != ElementType::kTuple) return read_array(context, from, type);
  std::vector<Shape> elements;
  for (const auto& e : from.tuple_shapes()) elements.push_back(read_shape(context, e, depth + 1));
  return context.tuple(elements);
}

void write_shape(Shape shape, proto::ShapeProto* to) {
  to->set_element_type(number_of(shape.type()));
  for (Shape e : shape.elements()) write_shape(e, to->add_tuple_shapes());
  if (!shape.is_array()) return;
  for (int d = 0; d < shape.rank(); ++d) {
    to->add_dimensions(shape.dim(d) < 0 ? INT64_MIN : shape.dim(d));
    to->add_is_dynamic_dimension(shape.is_dynamic(d));
  }
  write_layout(shape, to->mutable_layout());
}

Shape read_function_shape(Context& context, const proto::ProgramShapeProto& from,
                          std::vector<Shape>* parameters) {
  for (const auto& p : from.parameters()) parameters->push_back(read_shape(context, p));
  return read_shape(context, from.result());
}

Shape shape_of_text(Context& context, const std::string& text) {
  auto module = parse_hlo(std::shared_ptr<Context>(std::shared_ptr<void>(), &context),
                          fmt::format("ENTRY e {{ ROOT p = {} parameter(0) }}", text), "shape");
  return module->entry()->root()->shape;
}

const Literal* literal_of_text(Context& context, std::string_view text) {
  HloLexer lex(text, "literal");
  if (lex.peek('(')) {
    lex.balanced();
  } else {
    lex.word();
    lex.balanced();
    if (lex.here() == '{') lex.balanced();
  }
  size_t end = lex.end();
  auto module = parse_hlo(
      std::shared_ptr<Context>(std::shared_ptr<void>(), &context),
      fmt::format("ENTRY e {{ ROOT c = {} constant({}) }}", text.substr(0, end), text.substr(end)),
      "literal");
  return module->entry()->root()->attrs<ConstantAttrs>().literal;
}

std::string text_of_literal(Context& context, const Literal& literal) {
  Instr constant;
  constant.opcode = Opcode::kConstant;
  constant.name = "c";
  constant.shape = literal.shape;
  constant.attributes = context.attrs(ConstantAttrs{context.attrs(literal)});
  std::string text = print_hlo(constant);
  size_t begin = text.find("constant("), shape = text.find(" = ") + 3;
  return text.substr(shape, begin - shape) + text.substr(begin + 9, text.rfind(')') - begin - 9);
}

}  // namespace gspmd
