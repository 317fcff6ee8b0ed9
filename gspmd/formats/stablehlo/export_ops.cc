// Operators whose form differs from StableHLO's operation.

#include <absl/strings/ascii.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include "gspmd/formats/stablehlo/exporter.h"
#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/custom_call.h"

namespace gspmd::stablehlo {
namespace {

// --- Values that are names only
// -------------------------------------------------------------------

void tuple(Exporter& e, const Instr& i) { e.set(i, e.all_operands(i)); }

void tuple_element(Exporter& e, const Instr& i) {
  const Leaves& all = e.leaves(*i.operand(0));
  int64_t index = i.attrs<IndexAttrs>().index;
  int first = 0;
  for (int k = 0; k < index; ++k) first += i.operand(0)->shape.element(k).num_leaves();
  e.set(i, Leaves(all.begin() + first, all.begin() + first + i.shape.num_leaves()));
}

void same(Exporter& e, const Instr& i) {
  if (i.annotation == nullptr || !i.shape.is_array() || e.is_result(i))
    return e.set(i, e.leaves(*i.operand(0)));
  e.emit(i, "stablehlo.custom_call", e.all_operands(i), {"call_target_name = \"Sharding\""});
}

// --- Control flow
// -----------------------------------------------------------------------------------

void loop(Exporter& e, const Instr& i) {
  std::string regions = fmt::format(" ({}, {})", e.region(*i.called[0]), e.region(*i.called[1]));
  e.emit(i, "stablehlo.while", e.all_operands(i), {}, regions);
}

// The branches use their operands from outside.
void conditional(Exporter& e, const Instr& i) {
  bool two = i.operand(0)->shape.type() == ElementType::kPred;
  std::string regions;
  for (size_t k = 0; k < i.called.size(); ++k) {
    std::vector<Leaves> arguments{e.leaves(*i.operand(static_cast<int>(k) + 1))};
    regions += (k == 0 ? " (" : ", ") + e.block(*i.called[k], arguments, "", "stablehlo.return");
  }
  e.emit(i, two ? "stablehlo.if" : "stablehlo.case", {e.operand(i, 0)}, {}, regions + ")");
}

void call(Exporter& e, const Instr& i) {
  std::vector<Leaves> arguments;
  for (const Instr* o : i.operands) arguments.push_back(e.leaves(*o));
  e.set(i, e.body(*i.called[0], arguments));
}

// --- Constants and broadcasts
// -------------------------------------------------------------------------

void constant(Exporter& e, const Instr& i) {
  const Literal& l = *i.attrs<ConstantAttrs>().literal;
  if (l.elided) e.fail(i, "the values of the constant are not known");
  if (!l.shape.is_array()) e.fail(i, "a constant tuple");
  e.emit(i, "stablehlo.constant", {}, {"value = " + dense_text(l)});
}

void rng(Exporter& e, const Instr& i) {
  std::vector<int64_t> sizes(i.shape.dims().begin(), i.shape.dims().end());
  std::string shape = e.fresh();
  std::string type = fmt::format("tensor<{}xi64>", sizes.size());
  e.line(fmt::format("{} = \"stablehlo.constant\"() <{{value = {}}}> : () -> {}", shape,
                     dense_text(sizes, {static_cast<int64_t>(sizes.size())}), type));
  std::string name = e.define(i.shape);
  e.line(fmt::format("{} = \"stablehlo.rng\"({}, {}, {}) <{{{}}}> : ({}, {}, {}) -> {}", name,
                     e.operand(i, 0), e.operand(i, 1), shape,
                     absl::StrJoin(attribute_texts(i), ", "), type_text(i.operand(0)->shape),
                     type_text(i.operand(1)->shape), type, type_text(i.shape)));
  e.set(i, {name});
}

// --- Structs of dimension numbers
// --------------------------------------------------------------------

std::string list(absl::Span<const int64_t> v) { return "[" + absl::StrJoin(v, ", ") + "]"; }

// The words of "{highest,default}".
std::vector<std::string> words_of(std::string_view raw) {
  std::vector<std::string> out(1);
  for (char c : raw) {
    if (c == ',') out.emplace_back();
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') out.back() += c;
  }
  return out;
}

std::string precision(std::string_view raw) {
  if (raw.empty()) return "";
  std::string out;
  for (const std::string& p : words_of(raw))
    out += fmt::format("{}#stablehlo<precision {}>", out.empty() ? "" : ", ",
                       absl::AsciiStrToUpper(std::string(p)));
  return "precision_config = [" + out + "]";
}

// dot_bf16_bf16_f32_x3
std::string algorithm(std::string_view name) {
  std::vector<std::string> parts = absl::StrSplit(std::string(name), '_');
  if (parts.size() < 4 || parts[0] != "dot" || parts[1] == "any") return "";
  std::string n = parts.size() > 4 ? parts[4].substr(1) : "1";
  return fmt::format(
      "algorithm = #stablehlo.dot_algorithm<lhs_precision_type = {}, rhs_precision_type = {}, "
      "accumulation_type = {}, lhs_component_count = 1, rhs_component_count = 1, "
      "num_primitive_operations = {}, allow_imprecise_accumulation = false>",
      parts[1], parts[2], parts[3], n);
}

void dot(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<DotAttrs>();
  std::vector<std::string> attrs{fmt::format(
      "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {}, "
      "rhs_batching_dimensions = {}, lhs_contracting_dimensions = {}, rhs_contracting_dimensions = "
      "{}>",
      list(a.lhs_batch), list(a.rhs_batch), list(a.lhs_contract), list(a.rhs_contract))};
  for (std::string text : {precision(a.operand_precision), algorithm(a.algorithm)}) {
    if (!text.empty()) attrs.push_back(std::move(text));
  }
  e.emit(i, "stablehlo.dot_general", e.all_operands(i), attrs);
}

std::string labels(int64_t first, std::string_view first_name, int64_t second,
                   std::string_view second_name, absl::Span<const int64_t> spatial) {
  std::vector<std::string> out(spatial.size() + 2);
  out[static_cast<size_t>(first)] = first_name;
  out[static_cast<size_t>(second)] = second_name;
  for (size_t k = 0; k < spatial.size(); ++k)
    out[static_cast<size_t>(spatial[k])] = std::to_string(k);
  return "[" + absl::StrJoin(out, ", ") + "]";
}

void convolution(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<ConvAttrs>();
  const ConvDims& d = a.dims;
  std::vector<std::string> attrs = attribute_texts(i);
  attrs.push_back(
      fmt::format("dimension_numbers = #stablehlo.conv<{}x{}->{}>",
                  labels(d.input_batch, "b", d.input_feature, "f", d.input_spatial),
                  labels(d.kernel_input, "i", d.kernel_output, "o", d.kernel_spatial),
                  labels(d.output_batch, "b", d.output_feature, "f", d.output_spatial)));
  std::string p = precision(a.operand_precision);
  if (!p.empty()) attrs.push_back(std::move(p));
  e.emit(i, "stablehlo.convolution", e.all_operands(i), attrs);
}

void gather(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<GatherAttrs>();
  e.emit(i, "stablehlo.gather", e.all_operands(i),
         {fmt::format(
              "dimension_numbers = #stablehlo.gather<offset_dims = {}, collapsed_slice_dims = {}, "
              "operand_batching_dims = {}, start_indices_batching_dims = {}, "
              "start_index_map = {}, index_vector_dim = {}>",
              list(a.offset_dims), list(a.collapsed_slice_dims), list(a.operand_batching_dims),
              list(a.start_indices_batching_dims), list(a.start_index_map), a.index_vector_dim),
          "slice_sizes = " + array_text(a.slice_sizes),
          fmt::format("indices_are_sorted = {}", a.indices_are_sorted)});
}

void scatter(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<ScatterAttrs>();
  e.emit(i, "stablehlo.scatter", e.all_operands(i),
         {fmt::format("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {}, "
                      "inserted_window_dims = {}, input_batching_dims = {}, "
                      "scatter_indices_batching_dims = {}, scatter_dims_to_operand_dims = {}, "
                      "index_vector_dim = {}>",
                      list(a.update_window_dims), list(a.inserted_window_dims),
                      list(a.input_batching_dims), list(a.scatter_indices_batching_dims),
                      list(a.scatter_dims_to_operand_dims), a.index_vector_dim),
          fmt::format("indices_are_sorted = {}", a.indices_are_sorted),
          fmt::format("unique_indices = {}", a.unique_indices)},
         fmt::format(" ({})", e.region(*i.called[0])));
}

// --- Others
// ------------------------------------------------------------------------------------------

void slice(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<SliceAttrs>();
  e.emit(i, "stablehlo.slice", e.all_operands(i),
         {"start_indices = " + array_text(a.starts), "limit_indices = " + array_text(a.limits),
          "strides = " + array_text(a.strides)});
}

void pad(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<PadAttrs>();
  e.emit(i, "stablehlo.pad", e.all_operands(i),
         {"edge_padding_low = " + array_text(a.low), "edge_padding_high = " + array_text(a.high),
          "interior_padding = " + array_text(a.interior)});
}

void reduce_precision(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<ReducePrecisionAttrs>();
  e.emit(i, "stablehlo.reduce_precision", e.all_operands(i),
         {fmt::format("exponent_bits = {} : i32", a.exponent_bits),
          fmt::format("mantissa_bits = {} : i32", a.mantissa_bits)});
}

void all_to_all(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<CollectiveAttrs>();
  if (a.dimensions.size() != 1 || i.shape.is_tuple()) e.fail(i, "an all-to-all of several arrays");
  std::vector<std::string> attrs = attribute_texts(i);
  attrs.push_back(fmt::format("concat_dimension = {} : i64", a.dimensions[0]));
  attrs.push_back(fmt::format("split_count = {} : i64", a.groups->group_size));
  e.emit(i, "stablehlo.all_to_all", e.all_operands(i), attrs);
}

void top_k(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<TopKAttrs>();
  if (!a.largest) e.fail(i, "the smallest elements");
  Leaves results{e.define(i.shape.element(0)), e.define(i.shape.element(1))};
  e.line(fmt::format("{}, {} = chlo.top_k({}, k = {}) : {} -> ({})", results[0], results[1],
                     e.operand(i, 0), a.k, type_text(i.operand(0)->shape), e.types_of(results)));
  e.set(i, std::move(results));
}

// Element-wise functions that are CHLO's.
void chlo(Exporter& e, const Instr& i) {
  e.emit(i, "chlo." + std::string(def(i).name), e.all_operands(i), {});
}

// Through integers of 64 bits, since the operation of chlo does not survive XLA's own conversions.
void mulhi(Exporter& e, const Instr& i) {
  ElementType type = i.shape.type();
  if (bits_of(type) > 32) return chlo(e, i);
  Context& c = i.parent->module().context();
  bool is_signed = class_of(type) == TypeClass::kSigned;
  Shape wide = c.with_type(i.shape, is_signed ? ElementType::kS64 : ElementType::kU64);
  std::string from = type_text(i.shape), to = type_text(wide);
  const auto line = [&](Shape s, std::string_view text) {
    std::string name = e.define(s);
    e.line(fmt::format("{} = {}", name, text));
    return name;
  };
  const auto convert = [&](const std::string& x, Shape s, std::string_view types) {
    return line(s, fmt::format("stablehlo.convert {} : {}", x, types));
  };
  std::string up = fmt::format("({}) -> {}", from, to), down = fmt::format("({}) -> {}", to, from);
  std::string a = convert(e.operand(i, 0), wide, up), b = convert(e.operand(i, 1), wide, up);
  std::string product = line(wide, fmt::format("stablehlo.multiply {}, {} : {}", a, b, to));
  std::string bits =
      line(wide, fmt::format("stablehlo.constant dense<{}> : {}", bits_of(type), to));
  std::string high =
      line(wide, fmt::format("stablehlo.shift_right_arithmetic {}, {} : {}", product, bits, to));
  e.set(i, {convert(high, i.shape, down)});
}

// Minor to major; descending where none is given.
std::vector<int64_t> order_of(Shape s) {
  std::vector<int64_t> order;
  if (s.layout() != nullptr) {
    order.assign(s.layout()->minor_to_major.begin(), s.layout()->minor_to_major.end());
  } else {
    for (int d = s.is_array() ? s.rank() : 0; d-- > 0;) order.push_back(d);
  }
  return order;
}

// The orders of {f32[8,4]{0,1}, s32[]}: the numbers behind each closing bracket.
std::vector<std::vector<int64_t>> orders_of(std::string_view raw) {
  std::vector<std::vector<int64_t>> out;
  for (size_t at = raw.find(']'); at != std::string_view::npos; at = raw.find(']', at + 1)) {
    out.emplace_back();
    if (at + 1 >= raw.size() || raw[at + 1] != '{') continue;
    for (size_t k = at + 2; k < raw.size() && raw[k] != '}'; ++k) {
      if (raw[k] >= '0' && raw[k] <= '9') out.back().push_back(raw[k] - '0');
    }
  }
  return out;
}

std::string layouts(const std::vector<std::vector<int64_t>>& orders) {
  std::string out;
  for (const std::vector<int64_t>& order : orders) {
    std::string type = fmt::format("tensor<{}xindex>", order.size());
    out += fmt::format("{}dense<{}> : {}", out.empty() ? "" : ", ",
                       order.empty() ? "" : "[" + absl::StrJoin(order, ", ") + "]", type);
  }
  return "[" + out + "]";
}

// As JAX writes it, and XLA reads it.
void ragged_all_to_all(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<CollectiveAttrs>();
  e.emit(i, "stablehlo.custom_call", e.all_operands(i),
         {"call_target_name = \"ragged_all_to_all\"", "api_version = 4 : i32",
          fmt::format("backend_config = {{channel_id = {} : i64, replica_groups = {}}}",
                      a.channel_id, groups_text(a.groups))});
}

void custom_call(Exporter& e, const Instr& i) {
  const auto& a = i.attrs<CustomCallAttrs>();
  if (a.target.starts_with("chlo.")) return e.emit(i, std::string(a.target), e.all_operands(i), {});
  std::vector<std::string> attrs{"call_target_name = " + quoted(a.target)};
  int64_t version = number_of_api_version(a.api_version);
  if (version != 1) attrs.push_back(fmt::format("api_version = {} : i32", version));
  if (a.has_side_effect) attrs.push_back("has_side_effect = true");
  if (i.extras != nullptr && !i.extras->backend_config.empty()) {
    std::string_view raw = i.extras->backend_config;
    std::string text =
        raw.starts_with('"') ? unescape(raw.substr(1, raw.size() - 2)) : std::string(raw);
    attrs.push_back("backend_config = " + (version == 4 ? text : quoted(text)));
  }
  if (!a.operand_layout_constraints.empty()) {
    std::vector<std::vector<int64_t>> results;
    for_each_leaf(i.shape, [&](Shape s, int) { results.push_back(order_of(s)); });
    attrs.push_back("operand_layouts = " + layouts(orders_of(a.operand_layout_constraints)));
    attrs.push_back("result_layouts = " + layouts(results));
  }
  e.emit(i, "stablehlo.custom_call", e.all_operands(i), attrs);
}

void refuse(Exporter& e, const Instr& i) {
  e.fail(i, fmt::format("StableHLO has no operation for {}", name_of(i.opcode)));
}

}  // namespace

Form form_of(Opcode op) {
  switch (op) {
    case Opcode::kTuple:
      return tuple;
    case Opcode::kGetTupleElement:
      return tuple_element;
    case Opcode::kCopy:
    case Opcode::kDomain:
      return same;
    case Opcode::kWhile:
      return loop;
    case Opcode::kConditional:
      return conditional;
    case Opcode::kCall:
      return call;
    case Opcode::kConstant:
      return constant;
    case Opcode::kRng:
      return rng;
    case Opcode::kDot:
      return dot;
    case Opcode::kConvolution:
      return convolution;
    case Opcode::kGather:
      return gather;
    case Opcode::kScatter:
      return scatter;
    case Opcode::kSlice:
      return slice;
    case Opcode::kPad:
      return pad;
    case Opcode::kReducePrecision:
      return reduce_precision;
    case Opcode::kAllToAll:
      return all_to_all;
    case Opcode::kRaggedAllToAll:
      return ragged_all_to_all;
    case Opcode::kTopK:
      return top_k;
    case Opcode::kMulhi:
      return mulhi;
    case Opcode::kCustomCall:
      return custom_call;
    case Opcode::kAcos:
    case Opcode::kAcosh:
    case Opcode::kAsin:
    case Opcode::kAsinh:
    case Opcode::kAtanh:
    case Opcode::kCosh:
    case Opcode::kErf:
    case Opcode::kSinh:
      return chlo;
    case Opcode::kFusion:
    case Opcode::kStochasticConvert:
    case Opcode::kBitcast:
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
    case Opcode::kRaggedDot:
    case Opcode::kScan:
      return refuse;
    default:
      return nullptr;
  }
}

}  // namespace gspmd::stablehlo
