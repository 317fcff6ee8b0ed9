// Attributes as generic operation forms have them, by the fields of the OpDefs.

#include <absl/strings/ascii.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include "gspmd/formats/stablehlo/exporter.h"
#include "gspmd/ops/field_value.h"

namespace gspmd::stablehlo {

std::string groups_text(const DeviceGroups* g) {
  if (g == nullptr || g->num_groups == 0) return "dense<> : tensor<0x0xi64>";
  std::vector<int64_t> flat;
  for (const std::vector<int64_t>& row : expand(*g, g->num_groups * g->group_size))
    flat.insert(flat.end(), row.begin(), row.end());
  return dense_text(flat, {g->num_groups, g->group_size});
}

namespace {

template <typename T>
const T& as(const void* member) {
  return *static_cast<const T*>(member);
}

// Lists that are one number in StableHLO: concatenate's dimension, all_gather's.
bool is_single(std::string_view name) {
  return name == "dimension" || name == "all_gather_dim" || name == "scatter_dimension" ||
         name == "split_dimension";
}

std::string enum_text(const Field& f, uint8_t value) {
  std::string name(f.names[value]);
  for (std::string_view prefix : {"rng_"}) {
    if (name.starts_with(prefix)) name = name.substr(prefix.size());
  }
  std::string kind(f.stablehlo.empty() ? f.name : f.stablehlo);
  if (kind == "compare_type") kind = "comparison_type";
  if (kind == "transpose_a") kind = "transpose";
  return fmt::format("#stablehlo<{} {}>", kind, absl::AsciiStrToUpper(name));
}

std::string pairs_text(const PermuteAttrs& a) {
  std::vector<int64_t> flat;
  std::vector<std::pair<int64_t, int64_t>> pairs(a.pairs.begin(), a.pairs.end());
  if (a.permutation != nullptr) pairs = expand(*a.permutation, *a.mesh);
  for (const auto& [from, to] : pairs) flat.insert(flat.end(), {from, to});
  int64_t n = static_cast<int64_t>(pairs.size());
  return n == 0 ? "dense<> : tensor<0x2xi64>" : dense_text(flat, {n, 2});
}

// Window attributes of reduce_window and select_and_scatter, and of convolution.
void window_texts(Window w, bool convolution, bool has_dilations, std::vector<std::string>* out) {
  std::vector<int64_t> sizes, strides, padding, base, dilations, reversal;
  for (const WindowDim& d : w) {
    sizes.push_back(d.size);
    strides.push_back(d.stride);
    padding.insert(padding.end(), {d.pad_low, d.pad_high});
    base.push_back(d.base_dilation);
    dilations.push_back(d.window_dilation);
    reversal.push_back(d.reversal);
  }
  int64_t rank = static_cast<int64_t>(w.size());
  if (!convolution) out->push_back("window_dimensions = " + array_text(sizes));
  out->push_back("window_strides = " + array_text(strides));
  if (rank > 0) out->push_back("padding = " + dense_text(padding, {rank, 2}));
  if (convolution) {
    out->push_back("lhs_dilation = " + array_text(base));
    out->push_back("rhs_dilation = " + array_text(dilations));
    std::string flags;
    for (int64_t r : reversal)
      flags += fmt::format("{}{}", flags.empty() ? "" : ", ", r != 0 ? "true" : "false");
    out->push_back(flags.empty() ? "window_reversal = array<i1>"
                                 : fmt::format("window_reversal = array<i1: {}>", flags));
  } else if (has_dilations) {
    out->push_back("base_dilations = " + array_text(base));
    out->push_back("window_dilations = " + array_text(dilations));
  }
}

std::string field_text(const Field& f, const void* member) {
  std::string_view name = f.stablehlo.empty() ? f.name : f.stablehlo;
  switch (f.kind) {
    case FieldKind::kInt:
      if (name == "channel_handle") {
        return as<int64_t>(member) == 0
                   ? ""
                   : fmt::format("#stablehlo.channel_handle<handle = {}, type = 1>",
                                 as<int64_t>(member));
      }
      return fmt::format("{} : i64", as<int64_t>(member));
    case FieldKind::kBool:
      return as<bool>(member) ? "true" : "false";
    case FieldKind::kDouble:
      return fmt::format("{:.9e} : f32", as<double>(member));
    case FieldKind::kDims:
      return is_single(name) && as<Dims>(member).size() == 1
                 ? fmt::format("{} : i64", as<Dims>(member)[0])
                 : array_text(as<Dims>(member));
    case FieldKind::kEnum:
      return enum_text(f, as<uint8_t>(member));
    case FieldKind::kDeviceGroups:
      return groups_text(as<const DeviceGroups*>(member));
    case FieldKind::kPairs:
      return pairs_text(*static_cast<const PermuteAttrs*>(member));
    case FieldKind::kString:
      return quoted(as<std::string_view>(member));
    default:
      return "";
  }
}

}  // namespace

std::vector<std::string> attribute_texts(const Instr& i) {
  std::vector<std::string> out;
  const OpDef& d = def(i);
  void* attrs = const_cast<void*>(i.attributes.data());
  for (const Field& f : d.fields) {
    const void* member = f.member(attrs);
    std::string_view name = f.stablehlo.empty() ? f.name : f.stablehlo;
    if (f.kind == FieldKind::kWindow) {
      window_texts(as<Window>(member), d.attrs == AttrsKind::kConvAttrs,
                   i.opcode == Opcode::kReduceWindow, &out);
      continue;
    }
    if (f.stablehlo == "-") continue;
    if (f.name == "use_global_device_ids") {
      if (as<bool>(member)) out.push_back("use_global_device_ids");
      continue;
    }
    if (f.name == "type" && as<uint8_t>(member) == 0) continue;
    std::string text = field_text(f, member);
    if (!text.empty()) out.push_back(fmt::format("{} = {}", name, text));
  }
  return out;
}

}  // namespace gspmd::stablehlo
