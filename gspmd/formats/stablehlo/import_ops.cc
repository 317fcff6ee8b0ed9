// Operations whose form differs from that of HLO's operator.

#include <fmt/format.h>

#include <charconv>

#include "gspmd/formats/stablehlo/importer.h"
#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/custom_call.h"

namespace gspmd::stablehlo {
namespace {

using mlir::Attr;
using mlir::Op;

void constant(Importer& in, const Op& op) {
  const Attr* value = in.find(op, "value");
  if (value == nullptr || value->literal == nullptr) in.fail(op, "a constant without a value");
  const Literal& l = *value->literal;
  if (!l.splat || l.elided || l.shape.rank() == 0) {
    Instr* c = in.add(op, Opcode::kConstant, l.shape, {}, ConstantAttrs{&l});
    return in.finish(op, c);
  }
  Literal scalar{.shape = in.context().scalar(l.shape.type()), .data = l.data};
  Instr* c = in.add(op, Opcode::kConstant, scalar.shape, {},
                    ConstantAttrs{in.context().arena().make<Literal>(scalar)});
  Instr* all = in.splat(op, c, l.shape);
  in.finish(op, all);
}

// The order of the dimensions may change on the way, which HLO's broadcast does as well.
void broadcast_in_dim(Importer& in, const Op& op) {
  Instr* x = in.operand(op, 0);
  Shape shape = in.result_type(op);
  const Attr* mapping = in.find(op, "broadcast_dimensions");
  if (mapping == nullptr) in.fail(op, "broadcast_dimensions are missing");
  DimVector dims = in.dims(op, *mapping);
  if (static_cast<int>(dims.size()) != x->shape.rank()) {
    in.fail(op, fmt::format("broadcast_dimensions has {} entries for a tensor of rank {}",
                            dims.size(), x->shape.rank()));
  }
  for (int64_t to : dims) {
    if (to < 0 || to >= shape.rank()) in.fail(op, fmt::format("there is no dimension {}", to));
  }
  in.finish(op, in.stretch(op, x, shape, dims));
}

void broadcast(Importer& in, const Op& op) {
  Instr* x = in.operand(op, 0);
  Shape shape = in.result_type(op);
  DimVector dims;
  for (int d = shape.rank() - x->shape.rank(); d < shape.rank(); ++d) dims.push_back(d);
  x = in.add(op, Opcode::kBroadcast, shape, {x}, DimsAttrs{in.context().dims(dims)});
  in.finish(op, x);
}

// The old form: the last dimension of the left operand with the first of the right one.
void dot(Importer& in, const Op& op) {
  Instr *x = in.operand(op, 0), *y = in.operand(op, 1);
  auto* a = static_cast<DotAttrs*>(in.fields(op, def(Opcode::kDot)));
  a->lhs_contract = in.context().dims({x->shape.rank() - 1});
  a->rhs_contract = in.context().dims({0});
  Instr* i = in.add(op, Opcode::kDot, in.result_type(op), {x, y}, *a);
  in.finish(op, i);
}

// A scalar predicate holds for all elements.
void select(Importer& in, const Op& op) {
  Instr* p = in.operand(op, 0);
  Shape shape = in.result_type(op);
  if (p->shape.rank() == 0)
    p = in.splat(op, p, in.context().array(ElementType::kPred, shape.dims()));
  Instr* i = in.add(op, Opcode::kSelect, shape, {p, in.operand(op, 1), in.operand(op, 2)});
  in.finish(op, i);
}

void loop(Importer& in, const Op& op) {
  if (op.regions.size() != 2) in.fail(op, "a loop has a condition and a body");
  if (op.results.size() != op.operands.size()) in.fail(op, "the results do not fit the operands");
  std::vector<mlir::ValueId> captured = in.captured_by(op, op.regions);
  std::vector<Instr*> state = in.operands(op);
  for (mlir::ValueId v : captured) state.push_back(in.value(op, v));
  Computation* called[] = {in.body_of_region(op, op.regions[0], captured, false),
                           in.body_of_region(op, op.regions[1], captured, true)};
  Instr* start = in.tuple(op, state);
  Instr* w = in.add(op, Opcode::kWhile, start->shape, {start});
  w->called = in.module().computation_array(called);
  for (size_t k = 0; k < op.results.size(); ++k)
    in.alias(op.results[k], in.element(op, w, static_cast<int64_t>(k)));
}

// Each branch gets a tuple of what it uses.
void branches(Importer& in, const Op& op) {
  std::vector<Instr*> operands{in.operand(op, 0)};
  std::vector<Computation*> called;
  for (const mlir::Region& r : op.regions) {
    std::vector<mlir::ValueId> captured = in.captured_by(op, {&r, 1});
    std::vector<Instr*> used;
    for (mlir::ValueId v : captured) used.push_back(in.value(op, v));
    operands.push_back(in.tuple(op, used));
    called.push_back(in.body_of_region(op, r, captured, false));
  }
  Instr* c = in.add(op, Opcode::kConditional, in.result_type(op), operands);
  c->called = in.module().computation_array(called);
  in.define(op, c);
}

void optimization_barrier(Importer& in, const Op& op) {
  if (op.results.size() != op.operands.size()) in.fail(op, "the results do not fit the operands");
  std::vector<Instr*> all = in.operands(op);
  Instr* together = in.tuple(op, all);
  Instr* b = in.add(op, Opcode::kOptimizationBarrier, together->shape, {together});
  for (size_t k = 0; k < op.results.size(); ++k)
    in.alias(op.results[k], in.element(op, b, static_cast<int64_t>(k)));
}

bool whole_number(std::string_view text, int64_t* n) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), *n);
  return fault == std::errc() && end == text.data() + text.size();
}

// format = e5m10
void reduce_precision(Importer& in, const Op& op) {
  ReducePrecisionAttrs a{in.integer_or(op, "exponent_bits", 0),
                         in.integer_or(op, "mantissa_bits", 0)};
  std::string_view format = in.text_of(op, "format");
  size_t m = format.find('m');
  if (format.starts_with("e") && m != std::string_view::npos) {
    if (!whole_number(format.substr(1, m - 1), &a.exponent_bits) ||
        !whole_number(format.substr(m + 1), &a.mantissa_bits))
      in.fail(op, fmt::format("'{}' is no format", format), "such as e5m10");
  }
  Instr* i = in.add(op, Opcode::kReducePrecision, in.result_type(op), {in.operand(op, 0)}, a);
  in.finish(op, i);
}

void get_dimension_size(Importer& in, const Op& op) {
  Instr* x = in.operand(op, 0);
  int64_t d = in.integer_or(op, "dimension", -1);
  if (d < 0 || d >= x->shape.rank()) in.fail(op, fmt::format("there is no dimension {}", d));
  int64_t size = x->shape.dim(static_cast<int>(d));
  in.define(op, in.number(op, ElementType::kS32, static_cast<double>(size)));
}

// split_dimension and concat_dimension: HLO's all-to-all has one, so the parts are moved.
void all_to_all(Importer& in, const Op& op) {
  auto* a = static_cast<CollectiveAttrs*>(in.fields(op, def(Opcode::kAllToAll)));
  Instr* x = in.operand(op, 0);
  int64_t split = in.integer_or(op, "split_dimension", -1);
  int64_t concat = in.integer_or(op, "concat_dimension", -1);
  int64_t n = in.integer_or(op, "split_count", 0), rank = x->shape.rank();
  bool good = split >= 0 && split < rank && concat >= 0 && concat < rank && n > 0 &&
              x->shape.dim(static_cast<int>(split)) % n == 0;
  if (!good || op.operands.size() != 1) in.fail(op, "the dimensions do not fit");
  Instr* y = in.add(op, Opcode::kAllToAll, x->shape, {x}, *a);
  if (split != concat) {
    DimVector parts, order;
    for (int d = 0; d < rank; ++d) {
      if (d == split) parts.push_back(n);
      parts.push_back(d == split ? x->shape.dim(d) / n : x->shape.dim(d));
    }
    // The number of the part moves before the dimension that it extends.
    for (int64_t d = 0; d < static_cast<int64_t>(parts.size()); ++d) {
      if (d == split) continue;
      int64_t original = d > split ? d - 1 : d;
      if (original == concat) order.push_back(split);
      order.push_back(d);
    }
    DimVector moved;
    for (int64_t d : order) moved.push_back(parts[static_cast<size_t>(d)]);
    Context& c = in.context();
    y = in.add(op, Opcode::kReshape, c.with_dims(x->shape, parts).plain(), {y}, ReshapeAttrs{});
    y = in.add(op, Opcode::kTranspose, c.array(x->shape.type(), moved), {y},
               DimsAttrs{c.dims(order)});
    y = in.add(op, Opcode::kReshape, in.result_type(op), {y}, ReshapeAttrs{});
  }
  in.finish(op, y);
}

void rng(Importer& in, const Op& op) {
  const auto* a = static_cast<RngAttrs*>(in.fields(op, def(Opcode::kRng)));
  Instr* i =
      in.add(op, Opcode::kRng, in.result_type(op), {in.operand(op, 0), in.operand(op, 1)}, *a);
  in.finish(op, i);
}

// An attribute in HLO's spelling of backend_config: a dictionary as {a = 1 : i32}, else a string.
std::string as_text(const Attr& a) {
  switch (a.kind) {
    case Attr::Kind::kDict: {
      std::string out;
      for (const auto& [key, value] : a.entries)
        out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", key, as_text(value));
      return "{" + out + "}";
    }
    case Attr::Kind::kArray: {
      std::string out;
      for (const Attr& e : a.elements) out += (out.empty() ? "" : ", ") + as_text(e);
      return "[" + out + "]";
    }
    case Attr::Kind::kInt:
      return fmt::format(
          "{}{}", a.integer,
          a.type
              ? fmt::format(" : {}{}", class_of(a.type.type()) == TypeClass::kUnsigned ? "ui" : "i",
                            bits_of(a.type.type()))
              : "");
    case Attr::Kind::kFloat:
      return fmt::format("{:e} : f32", a.real);
    case Attr::Kind::kBool:
      return a.integer != 0 ? "true" : "false";
    case Attr::Kind::kString: {
      std::string out = "\"";
      append_escaped(&out, a.text);
      return out + "\"";
    }
    default:
      return a.text;
  }
}

// As XLA's text has it: a dictionary for what is called by the typed interface, else a string.
void set_backend_config(Importer& in, const Op& op, Instr* call) {
  const Attr* config = op.attr("backend_config");
  if (const Attr* beside = op.attr("mhlo.backend_config")) config = beside;
  if (config == nullptr) return;
  if (config->kind == Attr::Kind::kString && config->text.empty()) return;
  std::string text = as_text(*config);
  Extras e = call->extras == nullptr ? Extras() : *call->extras;
  e.backend_config = in.context().name(text);
  call->extras = in.context().arena().make<Extras>(e);
}

std::string_view api_version(Importer& in, const Op& op) {
  const Attr* beside = op.attr("mhlo.backend_config");  // the form before the typed interface
  bool typed = beside != nullptr && beside->kind == Attr::Kind::kDict;
  return api_version_named(typed ? 4 : in.integer_or(op, "api_version", 1));
}

// operand_layouts and result_layouts, each minor to major; the call's shape.
Shape set_layouts(Importer& in, const Op& op, absl::Span<Instr* const> operands,
                  CustomCallAttrs* to) {
  Shape shape = in.result_type(op);
  const Attr *of_operands = op.attr("operand_layouts"), *of_results = op.attr("result_layouts");
  if (of_operands == nullptr || of_results == nullptr) return shape;
  Context& c = in.context();
  const auto laid_out = [&](Shape s, const Attr& order) {
    return s.is_array() ? c.array(s.type(), s.dims(), c.layout(in.dims(op, order), "")) : s;
  };
  if (of_operands->elements.size() != operands.size() ||
      of_results->elements.size() != op.results.size())
    in.fail(op, "as many layouts as operands and results are needed");
  std::string raw;
  for (size_t k = 0; k < operands.size(); ++k) {
    raw += fmt::format("{}{}", k == 0 ? "" : ", ",
                       to_string(laid_out(operands[k]->shape, of_operands->elements[k]), true));
  }
  to->operand_layout_constraints = c.name("{" + raw + "}");
  if (!shape.is_tuple()) return laid_out(shape, of_results->elements[0]);
  std::vector<Shape> parts;
  for (size_t k = 0; k < op.results.size(); ++k)
    parts.push_back(laid_out(shape.element(static_cast<int>(k)), of_results->elements[k]));
  return c.tuple(parts);
}

// The best `top_k` of a dimension, exactly: sorted by the comparator, the head kept. This is what
// XLA makes of the call where the hardware has no operator for it.
void approximate_top_k(Importer& in, const Op& op, const Attr& config) {
  const Attr* comparator = op.attr("called_computations");
  const Attr *dimension = config.find("reduction_dim"), *k = config.find("top_k");
  const Attr* whole = config.find("aggregate_to_topk");
  if (comparator == nullptr || comparator->elements.size() != 1 || dimension == nullptr ||
      k == nullptr || whole == nullptr || whole->integer == 0) {
    in.fail(op, "an approximate top-k that is not aggregated", "use aggregate_to_topk=True");
  }
  size_t n = op.operands.size() / 2;  // the rest are initial values
  std::vector<Instr*> sorted;
  for (size_t i = 0; i < n; ++i) sorted.push_back(in.operand(op, i));
  std::vector<Shape> shapes;
  for (const Instr* o : sorted) shapes.push_back(o->shape);
  Context& c = in.context();
  Shape shape = n == 1 ? shapes[0] : c.tuple(shapes);
  SortAttrs a{.dimensions = c.dims({dimension->integer}), .is_stable = true};
  Instr* sort = in.add(op, Opcode::kSort, shape, sorted, Attrs(c.attrs(a)));
  Computation* order = in.computation_of(op, comparator->elements[0].text);
  sort->called = in.module().computation_array({&order, 1});
  std::vector<Instr*> heads;
  for (size_t i = 0; i < n; ++i) {
    Instr* values = n == 1 ? sort : in.element(op, sort, static_cast<int64_t>(i));
    DimVector starts(shapes[i].rank(), 0), strides(shapes[i].rank(), 1);
    DimVector limits(shapes[i].dims().begin(), shapes[i].dims().end());
    limits[dimension->integer] = std::min(k->integer, limits[dimension->integer]);
    SliceAttrs head{c.dims(starts), c.dims(limits), c.dims(strides)};
    heads.push_back(in.add(op, Opcode::kSlice, c.with_dims(shapes[i], limits), {values}, head));
  }
  in.define(op, n == 1 ? heads[0] : in.tuple(op, heads));
}

// JAX writes this operator as a call, its groups in the dictionary of the call.
void ragged_all_to_all(Importer& in, const Op& op, const Attr& config) {
  Op plain = op;
  for (const auto& entry : config.entries) plain.attrs.push_back(entry);
  const OpDef& d = def(Opcode::kRaggedAllToAll);
  auto* a = static_cast<CollectiveAttrs*>(in.fields(plain, d));
  a->channel_id = in.integer_or(plain, "channel_id", 0);
  in.finish(op, in.add(op, d.opcode, in.result_type(op), in.operands(op), Attrs(d.attrs, a)));
}

void custom_call(Importer& in, const Op& op) {
  CustomCallAttrs a;
  const Attr* config = op.attr("mhlo.backend_config");
  const Attr* typed = op.attr("backend_config");
  bool ragged = in.text_of(op, "call_target_name") == "ragged_all_to_all";
  if (ragged && typed != nullptr && typed->kind == Attr::Kind::kDict) {
    return ragged_all_to_all(in, op, *typed);
  }
  if (in.text_of(op, "call_target_name") == "ApproxTopK" && config != nullptr) {
    return approximate_top_k(in, op, *config);
  }
  a.target = in.context().name(in.text_of(op, "call_target_name"));
  a.has_side_effect = in.integer_or(op, "has_side_effect", 0) != 0;
  a.api_version = api_version(in, op);
  std::vector<Instr*> operands = in.operands(op);
  Shape shape = set_layouts(in, op, operands, &a);
  Instr* call = in.add(op, Opcode::kCustomCall, shape, operands, Attrs(in.context().attrs(a)));
  set_backend_config(in, op, call);
  in.finish(op, call);
}

// Operations of CHLO are composites in portable artifacts.
bool chlo_composite(Importer& in, const Op& op) {
  std::string_view name = in.text_of(op, "name");
  if (!name.starts_with("chlo.") || !in.can_translate(name)) return false;
  Op original;
  original.name = std::string(name);
  original.operands = op.operands;
  original.results = op.results;
  original.place = op.place;
  original.location = op.location;
  for (const auto& [key, value] : op.attrs) {
    bool of_composite = key == "name" || key == "decomposition" || key == "version";
    if (key == "composite_attributes") {
      original.attrs.insert(original.attrs.end(), value.entries.begin(), value.entries.end());
    } else if (!of_composite) {
      original.attrs.emplace_back(key, value);
    }
  }
  in.translate(original);
  return true;
}

void composite(Importer& in, const Op& op) {
  if (chlo_composite(in, op)) return;
  const Attr* body = op.attr("decomposition");
  if (body == nullptr) in.fail(op, "a composite without decomposition");
  std::vector<Instr*> operands = in.operands(op);
  Computation* c = in.computation_of(op, body->text);
  Instr* call = in.add(op, Opcode::kCall, in.result_type(op), operands,
                       Attrs(in.context().attrs(CallAttrs{})));
  call->called = in.module().computation_array({&c, 1});
  in.finish(op, call);
}

// What takes its sizes at run time, if they are not folded.
void dynamic(Importer& in, const Op& op) {
  in.fail(op, "sizes that are only known at run time are not supported",
          "refine the program to static shapes first");
}

constexpr std::pair<std::string_view, Translation> kTranslations[] = {
    {"constant", constant},
    {"broadcast_in_dim", broadcast_in_dim},
    {"broadcast", broadcast},
    {"dot", dot},
    {"select", select},
    {"while", loop},
    {"if", branches},
    {"case", branches},
    {"optimization_barrier", optimization_barrier},
    {"reduce_precision", reduce_precision},
    {"get_dimension_size", get_dimension_size},
    {"all_to_all", all_to_all},
    {"rng", rng},
    {"custom_call", custom_call},
    {"composite", composite},
    {"dynamic_broadcast_in_dim", dynamic},
    {"dynamic_iota", dynamic},
    {"dynamic_reshape", dynamic},
    {"dynamic_pad", dynamic},
    {"dynamic_conv", dynamic},
    {"dynamic_gather", dynamic},
    {"real_dynamic_slice", dynamic},
    {"set_dimension_size", dynamic},
};

}  // namespace

Translation translation_of(std::string_view name) {
  for (const auto& [known, translation] : kTranslations) {
    if (known == name) return translation;
  }
  return nullptr;
}

}  // namespace gspmd::stablehlo
