// Attributes, by the fields that the operators' definitions declare.

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "gspmd/formats/stablehlo/importer.h"

namespace gspmd::stablehlo {
namespace {

using mlir::Attr;

template <typename T>
T& as(void* member) {
  return *static_cast<T*>(member);
}

// "TF32" or "THREE_FRY" for "three_fry", "rng_three_fry".
bool names(std::string_view hlo, std::string_view word) {
  std::string a = absl::AsciiStrToLower(std::string(hlo)),
              b = absl::AsciiStrToLower(std::string(word));
  return a == b || a.ends_with("_" + b);
}

}  // namespace

// Of the operation itself, or of a struct among its attributes: `dimension_numbers`.
const Attr* Importer::find(const mlir::Op& op, std::string_view key) const {
  if (const Attr* a = op.attr(key)) return a;
  for (const auto& [name, a] : op.attrs) {
    if (a.kind != Attr::Kind::kDict || a.text.empty()) continue;
    if (const Attr* inner = a.find(key)) return inner;
  }
  return nullptr;
}

// Lists of lists one after the other: padding = [[1, 1], [0, 2]].
DimVector Importer::dims(const mlir::Op& op, const Attr& a) const {
  DimVector out;
  if (a.kind == Attr::Kind::kDense) {
    constexpr int64_t kMost = int64_t{1} << 24;
    if (a.literal->num_elements() > kMost) fail(op, "a list of too many numbers");
    for (int64_t k = 0; k < a.literal->num_elements(); ++k) {
      std::optional<int64_t> v = integer_at(*a.literal, k);
      if (!v) fail(op, "expected whole numbers");
      out.push_back(*v);
    }
    return out;
  }
  if (a.kind == Attr::Kind::kInt) return {a.integer};
  if (a.kind != Attr::Kind::kArray) fail(op, "expected a list of whole numbers");
  for (const Attr& e : a.elements) {
    if (e.kind == Attr::Kind::kArray) {
      DimVector row = dims(op, e);
      out.insert(out.end(), row.begin(), row.end());
      continue;
    }
    bool number = e.kind == Attr::Kind::kInt || e.kind == Attr::Kind::kBool;
    if (!number) fail(op, "expected a list of whole numbers");
    out.push_back(e.integer);
  }
  return out;
}

DimVector Importer::dims_or(const mlir::Op& op, std::string_view key, size_t rank,
                            int64_t value) const {
  const Attr* a = find(op, key);
  if (a == nullptr) return DimVector(rank, value);
  DimVector d = dims(op, *a);
  if (d.size() == 1 && rank > 1) d.assign(rank, d[0]);  // a splat
  if (d.size() != rank) fail(op, fmt::format("{} has {} values, needs {}", key, d.size(), rank));
  return d;
}

int64_t Importer::integer_or(const mlir::Op& op, std::string_view key, int64_t value) const {
  const Attr* a = find(op, key);
  if (a == nullptr) return value;
  if (a->kind == Attr::Kind::kUnit) return 1;
  return a->kind == Attr::Kind::kDense ? integer_at(*a->literal, 0).value_or(value) : a->integer;
}

std::string_view Importer::text_of(const mlir::Op& op, std::string_view key) const {
  const Attr* a = find(op, key);
  return a == nullptr ? std::string_view() : a->text;
}

namespace {

// Empty lists and zeros are left out of structs such as #stablehlo.gather<...>.
bool has_struct(const mlir::Op& op) {
  for (const auto& [name, a] : op.attrs) {
    if (a.kind == Attr::Kind::kDict && !a.text.empty()) return true;
  }
  return false;
}

}  // namespace

void* Importer::fields(const mlir::Op& op, const OpDef& def) {
  void* attrs = make_attrs(def.attrs, context_->arena());
  for (const Field& f : def.fields) {
    bool made_of_several = f.kind == FieldKind::kWindow || f.kind == FieldKind::kSlices ||
                           f.kind == FieldKind::kPadding || f.kind == FieldKind::kConvDims;
    if (made_of_several) continue;
    if (f.kind == FieldKind::kRaw && f.name == "operand_precision") {
      as<std::string_view>(f.member(attrs)) = precision(op);
      continue;
    }
    if (f.kind == FieldKind::kRaw && f.name == "algorithm") {
      as<std::string_view>(f.member(attrs)) = algorithm(op);
      continue;
    }
    const Attr* a = find(op, f.stablehlo.empty() ? f.name : f.stablehlo);
    if (a != nullptr) {
      field(op, f, *a, attrs);
    } else if (bool optional = f.kind == FieldKind::kDims || f.kind == FieldKind::kInt;
               f.required && !(optional && has_struct(op))) {
      fail(op, fmt::format("{} is missing", f.stablehlo.empty() ? f.name : f.stablehlo));
    }
  }
  window(op, def, attrs);
  whole(op, def, attrs);
  return attrs;
}

void Importer::field(const mlir::Op& op, const Field& f, const Attr& a, void* attrs) {
  void* member = f.member(attrs);
  switch (f.kind) {
    case FieldKind::kInt: {
      // A channel's number stands in its handle.
      const Attr* handle = a.kind == Attr::Kind::kDict ? a.find("handle") : nullptr;
      as<int64_t>(member) = handle != nullptr ? handle->integer : a.integer;
      return;
    }
    case FieldKind::kBool:
      as<bool>(member) = a.kind == Attr::Kind::kUnit || a.integer != 0;
      return;
    case FieldKind::kDouble:
      as<double>(member) = a.real;
      return;
    case FieldKind::kDims:
      as<Dims>(member) = context_->dims(dims(op, a));
      return;
    case FieldKind::kEnum:
      return enumerated(op, f, a, member);
    case FieldKind::kString:
      as<std::string_view>(member) = context_->name(a.text);
      return;
    case FieldKind::kDeviceGroups:
      as<const DeviceGroups*>(member) = groups(op, a);
      return;
    case FieldKind::kPairs: {
      DimVector flat = dims(op, a);
      std::vector<std::pair<int64_t, int64_t>> pairs;
      for (size_t k = 0; k + 1 < flat.size(); k += 2) pairs.emplace_back(flat[k], flat[k + 1]);
      static_cast<PermuteAttrs*>(member)->pairs =
          context_->arena().copy(absl::MakeConstSpan(pairs));
      return;
    }
    default:
      return;
  }
}

void Importer::enumerated(const mlir::Op& op, const Field& f, const Attr& a, void* member) {
  // The comparisons of a type that is the operands' own go without saying in HLO.
  if (f.name == "type" && a.text != "TOTALORDER") return;
  for (size_t k = 0; k < f.names.size(); ++k) {
    if (!names(f.names[k], a.text)) continue;
    as<uint8_t>(member) = static_cast<uint8_t>(k);
    return;
  }
  fail(op, fmt::format("there is no {} {}", f.name, a.text));
}

// window_dimensions and the like of reduce_window and select_and_scatter; stride and the like of
// convolution.
void Importer::window(const mlir::Op& op, const OpDef& def, void* attrs) {
  const Field* f = nullptr;
  for (const Field& candidate : def.fields) {
    if (candidate.kind == FieldKind::kWindow) f = &candidate;
  }
  if (f == nullptr || def.opcode == Opcode::kCustomCall) return;
  bool convolution = def.attrs == AttrsKind::kConvAttrs;
  if (convolution) conv_dims(op, &static_cast<ConvAttrs*>(attrs)->dims);
  std::vector<WindowDim> dims;
  if (convolution) {
    const ConvDims& labels = static_cast<ConvAttrs*>(attrs)->dims;
    for (int64_t d : labels.kernel_spatial)
      dims.push_back({.size = operand(op, 1)->shape.dim(static_cast<int>(d))});
  } else {
    const Attr* sizes = find(op, "window_dimensions");
    if (sizes == nullptr) fail(op, "window_dimensions are missing");
    for (int64_t s : this->dims(op, *sizes)) dims.push_back({.size = s});
  }
  size_t rank = dims.size();
  DimVector strides = dims_or(op, "window_strides", rank, 1),
            padding = dims_or(op, "padding", 2 * rank, 0);
  DimVector base = dims_or(op, convolution ? "lhs_dilation" : "base_dilations", rank, 1);
  DimVector dilation = dims_or(op, convolution ? "rhs_dilation" : "window_dilations", rank, 1);
  DimVector reversal = dims_or(op, "window_reversal", rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    dims[d].stride = strides[d];
    dims[d].pad_low = padding[2 * d];
    dims[d].pad_high = padding[2 * d + 1];
    dims[d].base_dilation = base[d];
    dims[d].window_dilation = dilation[d];
    dims[d].reversal = reversal[d] != 0;
  }
  as<Window>(f->member(attrs)) = context_->arena().copy(absl::MakeConstSpan(dims));
}

void Importer::whole(const mlir::Op& op, const OpDef& def, void* attrs) {
  if (def.attrs == AttrsKind::kSliceAttrs) {
    auto* a = static_cast<SliceAttrs*>(attrs);
    size_t rank = static_cast<size_t>(operand(op, 0)->shape.rank());
    a->starts = context_->dims(dims_or(op, "start_indices", rank, 0));
    a->limits = context_->dims(dims_or(op, "limit_indices", rank, 0));
    a->strides = context_->dims(dims_or(op, "strides", rank, 1));
  } else if (def.attrs == AttrsKind::kPadAttrs) {
    auto* a = static_cast<PadAttrs*>(attrs);
    size_t rank = static_cast<size_t>(operand(op, 0)->shape.rank());
    a->low = context_->dims(dims_or(op, "edge_padding_low", rank, 0));
    a->high = context_->dims(dims_or(op, "edge_padding_high", rank, 0));
    a->interior = context_->dims(dims_or(op, "interior_padding", rank, 0));
  }
}

namespace {

// The labels of one tensor: two named dimensions, the others by number.
struct Labels {
  int64_t first = -1, second = -1;
  DimVector spatial;
};

bool read_labels(const Attr& list, std::string_view first, std::string_view second, Labels* out) {
  if (list.kind != Attr::Kind::kArray || list.elements.size() < 2) return false;
  out->spatial.assign(list.elements.size() - 2, -1);
  for (size_t k = 0; k < list.elements.size(); ++k) {
    const Attr& e = list.elements[k];
    int64_t at = static_cast<int64_t>(k);
    if (e.kind == Attr::Kind::kSymbol) {
      (e.text == first ? out->first : out->second) = at;
      if (e.text != first && e.text != second) return false;
    } else {
      if (e.integer < 0 || e.integer >= static_cast<int64_t>(out->spatial.size())) return false;
      out->spatial[static_cast<size_t>(e.integer)] = at;
    }
  }
  if (out->first < 0 || out->second < 0) return false;
  for (int64_t d : out->spatial) {
    if (d < 0) return false;
  }
  return true;
}

}  // namespace

void Importer::conv_dims(const mlir::Op& op, ConvDims* to) {
  const Attr* all = find(op, "dimension_numbers");
  Labels in, kernel, out;
  bool good = all != nullptr && all->elements.size() == 3 &&
              read_labels(all->elements[0], "b", "f", &in) &&
              read_labels(all->elements[1], "o", "i", &kernel) &&
              read_labels(all->elements[2], "b", "f", &out);
  if (!good)
    fail(op, "dim_numbers are missing or wrong", "as in [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]");
  to->input_batch = in.first;
  to->input_feature = in.second;
  to->input_spatial = context_->dims(in.spatial);
  to->kernel_output = kernel.first;
  to->kernel_input = kernel.second;
  to->kernel_spatial = context_->dims(kernel.spatial);
  to->output_batch = out.first;
  to->output_feature = out.second;
  to->output_spatial = context_->dims(out.spatial);
}

const DeviceGroups* Importer::groups(const mlir::Op& op, const Attr& a) {
  if (a.kind != Attr::Kind::kDense || a.literal->shape.rank() != 2)
    fail(op, "replica groups in another form than dense<[[0, 1], [2, 3]]>");
  DeviceGroups g;
  g.num_groups = a.literal->shape.dim(0);
  g.group_size = a.literal->shape.dim(1);
  DimVector ids = dims(op, a);
  for (int64_t id : ids) {
    if (id < 0) fail(op, "replica groups of different sizes are not supported");
  }
  g.ids.ids.assign(ids.begin(), ids.end());
  return context_->groups(g);
}

// [HIGHEST, DEFAULT] as HLO writes it: {highest,default}; nothing where all are default.
std::string_view Importer::precision(const mlir::Op& op) {
  const Attr* a = find(op, "precision_config");
  if (a == nullptr || a->kind != Attr::Kind::kArray) return {};
  std::string out;
  bool any = false;
  for (const Attr& e : a->elements) {
    any |= e.text != "DEFAULT";
    out += (out.empty() ? "" : ",") + absl::AsciiStrToLower(e.text);
  }
  return any ? context_->name("{" + out + "}") : std::string_view();
}

// dot_tf32_tf32_f32_x3 for the struct with these types and three primitive operations.
std::string_view Importer::algorithm(const mlir::Op& op) {
  const Attr* a = op.attr("algorithm");
  if (a == nullptr || a->kind != Attr::Kind::kDict) return {};
  const auto type_name = [&](std::string_view key) -> std::string {
    const Attr* t = a->find(key);
    if (t == nullptr) return "";
    if (t->kind == Attr::Kind::kSymbol) return t->text;
    return t->type ? std::string(name_of(t->type.type())) : "";
  };
  std::string lhs = type_name("lhs_precision_type"), rhs = type_name("rhs_precision_type"),
              sum = type_name("accumulation_type");
  const Attr* n = a->find("num_primitive_operations");
  const Attr* imprecise = a->find("allow_imprecise_accumulation");
  if (lhs.starts_with("f8") && imprecise != nullptr) {
    return context_->name(imprecise->integer != 0 ? "dot_any_f8_any_f8_f32_fast_accum"
                                                  : "dot_any_f8_any_f8_f32");
  }
  std::string out = fmt::format("dot_{}_{}_{}", lhs, rhs, sum);
  if (n != nullptr && n->integer > 1) out += fmt::format("_x{}", n->integer);
  return context_->name(out);
}

}  // namespace gspmd::stablehlo
