// The short forms of stablehlo and chlo operations. Most are operands and keyed values,
//   stablehlo.pad %x, %v, low = [0], high = [1], interior = [0] : (...) -> ...
// whose keys stand for attributes of the generic form.

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "gspmd/formats/mlir/text_reader.h"

namespace gspmd::mlir {
namespace {

Attr of_kind(Attr::Kind kind, std::string text = {}) {
  Attr a;
  a.kind = kind;
  a.text = std::move(text);
  return a;
}
Attr integer(int64_t v) {
  Attr a = of_kind(Attr::Kind::kInt);
  a.integer = v;
  return a;
}

// A word that is no `true` or `false` names an enumerator.
Attr word_or_attribute(TextReader& r) {
  if (r.cursor().peek_number()) return r.number_attribute(false);
  std::string_view word = r.cursor().peek_word();
  if (word.empty() || word == "true" || word == "false" || word == "dense" || word == "array")
    return r.attribute();
  return of_kind(Attr::Kind::kSymbol, std::string(r.cursor().word()));
}

Attr keyed_value(TextReader& r) {
  if (r.cursor().peek("<")) return r.struct_attribute("");
  if (!r.cursor().peek("[")) return word_or_attribute(r);
  Attr a = of_kind(Attr::Kind::kArray);
  r.cursor().list("[", "]", [&] {
    a.elements.push_back(r.cursor().peek("[") ? r.integers() : word_or_attribute(r));
  });
  return a;
}

// The attributes that the keys of short forms stand for; of all operations, or of one.
struct Key {
  std::string_view written, attribute, op = {};
};
constexpr Key kKeys[] = {
    {"dims", "permutation", "transpose"},
    {"dims", "dimensions", "reverse"},
    {"dims", "broadcast_dimensions"},
    {"dim", "iota_dimension", "iota"},
    {"dim", "dimension"},
    {"sizes", "broadcast_sizes", "broadcast"},
    {"sizes", "slice_sizes"},
    {"low", "edge_padding_low"},
    {"high", "edge_padding_high"},
    {"interior", "interior_padding"},
    {"batching_dims", "lhs_batching_dimensions"},
    {"contracting_dims", "lhs_contracting_dimensions"},
    {"precision", "precision_config"},
    {"type", "fft_type", "fft"},
    {"length", "fft_length"},
    {"algorithm", "rng_algorithm", "rng_bit_generator"},
    {"distribution", "rng_distribution"},
    {"stride", "window_strides"},
    {"pad", "padding"},
    {"lhs_dilate", "lhs_dilation"},
    {"rhs_dilate", "rhs_dilation"},
    {"reverse", "window_reversal"},
};

std::string attribute_of(std::string_view key, std::string_view op) {
  for (const Key& k : kKeys) {
    if (k.written == key && (k.op.empty() || op.ends_with(k.op))) return std::string(k.attribute);
  }
  return std::string(key);
}

// key = value; of a dot [0] x [1], for either operand.
void keyed(TextReader& r, Op* op) {
  std::string key = attribute_of(r.cursor().word(), op->name);
  r.cursor().take("=");
  r.set(op, key, keyed_value(r));
  if (r.cursor().try_word("x")) r.set(op, "rhs" + key.substr(3), keyed_value(r));
}

// `: A`, `: A, B` (the result has the last type), `: (A, B) -> C`, `: A, B -> C`, `: A -> (C, D)`.
void types(TextReader& r, Op* op) {
  Cursor& c = r.cursor();
  c.take(":");
  if (c.peek("(")) return r.function_type_tail(op);
  std::vector<Shape> all{r.type()};
  while (c.try_take(",")) all.push_back(r.type());
  if (c.try_take("->")) {
    if (c.try_take("(")) return r.results(r.types_until(")"));
    return r.results({r.type()});
  }
  if (op->name.ends_with("optimization_barrier")) return r.results(all);
  r.results({all.back()});
}

void attributes_and_types(TextReader& r, Op* op) {
  if (r.cursor().peek("{")) r.attribute_dict(&op->attrs);
  types(r, op);
}

void operands_and_keys(TextReader& r, Op* op) {
  do {
    if (r.cursor().peek("%")) {
      r.operand(op);
    } else if (!r.cursor().peek_word().empty()) {
      keyed(r, op);
    }
  } while (r.cursor().try_take(","));
}

void usual(TextReader& r, Op* op) {
  operands_and_keys(r, op);
  attributes_and_types(r, op);
}

// compare LT, %x, %y, TOTALORDER
void compare(TextReader& r, Op* op) {
  r.set(op, "comparison_direction", of_kind(Attr::Kind::kSymbol, std::string(r.cursor().word())));
  r.cursor().take(",");
  r.operand(op);
  r.cursor().take(",");
  r.operand(op);
  if (r.cursor().try_take(",")) {
    r.set(op, "compare_type", of_kind(Attr::Kind::kSymbol, std::string(r.cursor().word())));
  }
  attributes_and_types(r, op);
}

void constant(TextReader& r, Op* op) {
  if (r.cursor().peek("{")) r.attribute_dict(&op->attrs);
  Attr value = r.attribute();
  if (value.literal == nullptr) r.cursor().fail(op->place - 1, "a constant without dense<...>");
  r.results({value.literal->shape});
  r.set(op, "value", std::move(value));
}

// slice %x [0:2, 1:8:3]
void slice(TextReader& r, Op* op) {
  r.operand(op);
  Attr starts = of_kind(Attr::Kind::kArray), limits = starts, strides = starts;
  Cursor& c = r.cursor();
  c.list("[", "]", [&] {
    starts.elements.push_back(integer(c.integer()));
    c.take(":");
    limits.elements.push_back(integer(c.integer()));
    strides.elements.push_back(integer(c.try_take(":") ? c.integer() : 1));
  });
  r.set(op, "start_indices", std::move(starts));
  r.set(op, "limit_indices", std::move(limits));
  r.set(op, "strides", std::move(strides));
  attributes_and_types(r, op);
}

// convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], ...}
void convolution(TextReader& r, Op* op) {
  Cursor& c = r.cursor();
  c.take("(");
  r.operands(op);
  c.take(")");
  c.take_word("dim_numbers");
  c.take("=");
  r.set(op, "dimension_numbers", read_conv_labels(r));
  if (c.try_take(",")) {
    c.take_word("window");
    c.take("=");
    c.list("{", "}", [&] { keyed(r, op); });
  }
  attributes_and_types(r, op);
}

// The region of `applies stablehlo.add`: one operation on the two arguments.
void short_reducer(TextReader& r, Op* op, const std::string& name) {
  Shape scalar = r.context().scalar(r.type_of(op->operands[0]).type());
  Region body;
  body.arguments = {r.define(" a", scalar), r.define(" b", scalar)};
  Op combine, end;
  combine.name = name;
  combine.place = end.place = op->place;
  combine.operands = body.arguments;
  combine.results = {r.define(" r", scalar)};
  end.name = "stablehlo.return";
  end.operands = combine.results;
  body.ops.push_back(std::move(combine));
  body.ops.push_back(std::move(end));
  op->regions.push_back(std::move(body));
}

// reduce(%x init: %v), (%y init: %w) across dimensions = [0] : ... reducer(...) (...) {...}
void reduce(TextReader& r, Op* op) {
  Cursor& c = r.cursor();
  std::vector<ValueId> inits;
  do {
    c.take("(");
    r.operand(op);
    c.take_word("init");
    c.take(":");
    r.operand(op);
    inits.push_back(op->operands.back());
    op->operands.pop_back();
    c.take(")");
  } while (c.try_take(","));
  op->operands.insert(op->operands.end(), inits.begin(), inits.end());
  std::string applied;
  if (c.try_word("applies")) applied = c.word();
  c.take_word("across");
  c.take_word("dimensions");
  c.take("=");
  r.set(op, "dimensions", r.integers());
  attributes_and_types(r, op);
  if (!applied.empty()) {
    if (!r.type_of(op->operands[0]) || !r.type_of(op->operands[0]).is_array())
      c.fail(op->place - 1, "reduces what is no tensor");
    return short_reducer(r, op, applied);
  }
  c.take_word("reducer");
  // (%a: T, %b: T) pairs: an accumulator and an element of one input; all accumulators come first.
  std::vector<std::pair<std::string, Shape>> first, second;
  for (size_t k = 0; k < inits.size(); ++k) {
    auto pair = r.arguments(nullptr);
    if (pair.size() != 2) c.fail_here("a reducer has pairs of arguments");
    first.push_back(pair[0]);
    second.push_back(pair[1]);
  }
  first.insert(first.end(), second.begin(), second.end());
  r.region(op, first);
}

// while(%a = %x, %b = %y) : types attributes {..} cond {...} do {...}
void loop(TextReader& r, Op* op) {
  Cursor& c = r.cursor();
  std::vector<std::pair<std::string, Shape>> state;
  c.list("(", ")", [&] {
    std::string name = r.value_name();
    c.take("=");
    state.emplace_back(std::move(name), r.type_of(r.operand(op)));
  });
  if (!state.empty()) {
    c.take(":");
    do {
      r.type();
    } while (c.try_take(","));
  }
  if (c.try_word("attributes")) r.attribute_dict(&op->attrs);
  c.take_word("cond");
  r.region(op, state);
  c.take_word("do");
  r.region(op, state);
  std::vector<Shape> types;
  for (const auto& [name, type] : state) types.push_back(type);
  r.results(types);
}

void custom_call(TextReader& r, Op* op) {
  Cursor& c = r.cursor();
  c.take("@");
  r.set(op, "call_target_name", of_kind(Attr::Kind::kString, c.name_or_string()));
  c.take("(");
  r.maybe_operands(op);
  c.take(")");
  attributes_and_types(r, op);
}

void composite(TextReader& r, Op* op) {
  r.set(op, "name", of_kind(Attr::Kind::kString, r.cursor().string()));
  r.maybe_operands(op);
  attributes_and_types(r, op);
}

// chlo.top_k(%x, k = 2) : T -> (T, T)
void top_k(TextReader& r, Op* op) {
  r.cursor().take("(");
  operands_and_keys(r, op);
  r.cursor().take(")");
  attributes_and_types(r, op);
}

void tuple_element(TextReader& r, Op* op) {
  r.operand(op);
  r.cursor().take("[");
  r.set(op, "index", integer(r.cursor().integer()));
  r.cursor().take("]");
  attributes_and_types(r, op);
}

struct Form {
  std::string_view name;
  void (*read)(TextReader&, Op*);
};
constexpr Form kForms[] = {
    {"compare", compare},
    {"constant", constant},
    {"slice", slice},
    {"convolution", convolution},
    {"reduce", reduce},
    {"while", loop},
    {"custom_call", custom_call},
    {"composite", composite},
    {"get_tuple_element", tuple_element},
    {"top_k", top_k},
};

}  // namespace

// [b, 0, 1, f] as symbols and integers
static Attr dim_labels(TextReader& r) {
  Attr a = of_kind(Attr::Kind::kArray);
  r.cursor().list("[", "]", [&] {
    a.elements.push_back(r.cursor().peek_number()
                             ? integer(r.cursor().integer())
                             : of_kind(Attr::Kind::kSymbol, std::string(r.cursor().word())));
  });
  return a;
}

Attr read_conv_labels(TextReader& r) {
  Attr labels = of_kind(Attr::Kind::kArray);
  labels.elements.push_back(dim_labels(r));
  r.cursor().take("x");
  labels.elements.push_back(dim_labels(r));
  r.cursor().take("->");
  labels.elements.push_back(dim_labels(r));
  return labels;
}

bool read_stablehlo_form(TextReader& reader, Op* op) {
  std::string_view name = op->name;
  size_t dot = name.find('.');
  std::string_view dialect = name.substr(0, dot);
  bool known = dialect == "stablehlo" || dialect == "chlo" || dialect == "mhlo" || dialect == "sdy";
  if (!known || dot == std::string_view::npos) return false;
  for (const Form& f : kForms) {
    if (f.name != name.substr(dot + 1)) continue;
    f.read(reader, op);
    return true;
  }
  if (dialect == "sdy") return false;
  usual(reader, op);
  return true;
}

}  // namespace gspmd::mlir
