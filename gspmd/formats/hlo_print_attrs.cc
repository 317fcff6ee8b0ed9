#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "gspmd/formats/hlo_printer.h"
#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/field_value.h"

namespace gspmd {
namespace {

template <typename T>
const T& as(const void* member) {
  return *static_cast<const T*>(member);
}

}  // namespace

void HloPrinter::attribute(std::string_view name, std::string_view raw) {
  if (raw.empty()) return;
  out_.append(", ").append(name).append("=").append(raw);
}

void HloPrinter::own_attributes(const Instr& i) {
  for (const Field& f : def(i).fields) {
    void* member = f.member(const_cast<void*>(i.attributes.data()));
    if (!f.always_printed && is_default(f, i.attributes.kind(), member)) continue;
    out_.append(", ").append(f.name).append("=");
    field_value(f, member);
  }
}

void HloPrinter::field_value(const Field& f, void* member) {
  switch (f.kind) {
    case FieldKind::kInt:
      return integer(as<int64_t>(member));
    case FieldKind::kBool:
      out_ += as<bool>(member) ? "true" : "false";
      return;
    case FieldKind::kDouble:
      out_ += fmt::format("{}", as<double>(member));
      return;
    case FieldKind::kDims:
      return dims(as<Dims>(member));
    case FieldKind::kSlices:
      return slices(as<SliceAttrs>(member));
    case FieldKind::kPadding:
      return padding(as<PadAttrs>(member));
    case FieldKind::kWindow:
      return window(as<Window>(member));
    case FieldKind::kConvDims:
      return conv_dims(as<ConvDims>(member));
    case FieldKind::kConvDimsPointer:
      return conv_dims(*as<const ConvDims*>(member));
    case FieldKind::kEnum:
      out_.append(f.names[as<uint8_t>(member)]);
      return;
    case FieldKind::kRaw:
      out_.append(as<std::string_view>(member));
      return;
    case FieldKind::kString:
      return string(as<std::string_view>(member));
    case FieldKind::kDeviceGroups:
      return groups(as<const DeviceGroups*>(member));
    case FieldKind::kPairs:
      return pairs(as<PermuteAttrs>(member));
    case FieldKind::kShape:
      return append_shape(&out_, as<Shape>(member), true);
  }
}

void HloPrinter::dims(absl::Span<const int64_t> d) {
  out_.push_back('{');
  for (size_t k = 0; k < d.size(); ++k) {
    if (k > 0) out_.push_back(',');
    integer(d[k]);
  }
  out_.push_back('}');
}

void HloPrinter::slices(const SliceAttrs& a) {
  bool strided = std::any_of(a.strides.begin(), a.strides.end(), [](int64_t s) { return s != 1; });
  out_.push_back('{');
  for (size_t k = 0; k < a.starts.size(); ++k) {
    if (k > 0) out_ += ", ";
    out_ += fmt::format("[{}:{}", a.starts[k], a.limits[k]);
    if (strided) out_ += fmt::format(":{}", a.strides[k]);
    out_.push_back(']');
  }
  out_.push_back('}');
}

void HloPrinter::padding(const PadAttrs& a) {
  bool interior =
      std::any_of(a.interior.begin(), a.interior.end(), [](int64_t n) { return n != 0; });
  for (size_t k = 0; k < a.low.size(); ++k) {
    if (k > 0) out_.push_back('x');
    out_ += fmt::format("{}_{}", a.low[k], a.high[k]);
    if (interior) out_ += fmt::format("_{}", a.interior[k]);
  }
}

void HloPrinter::window(Window w) {
  // Parts that have their default in every dimension are left out.
  std::string_view separator = "";
  auto part = [&](std::string_view name, auto value, auto standard) {
    bool all_standard =
        std::all_of(w.begin(), w.end(), [&](auto& d) { return value(d) == standard; });
    if (all_standard && name != "size") return;
    out_ += fmt::format("{}{}=", separator, name);
    separator = " ";
    for (size_t k = 0; k < w.size(); ++k) {
      if (k > 0) out_.push_back('x');
      out_ += fmt::format("{}", value(w[k]));
    }
  };
  out_.push_back('{');
  if (!w.empty()) {
    part("size", [](const WindowDim& d) { return d.size; }, 1);
    part("stride", [](const WindowDim& d) { return d.stride; }, 1);
    part(
        "pad", [](const WindowDim& d) { return fmt::format("{}_{}", d.pad_low, d.pad_high); },
        std::string("0_0"));
    part("lhs_dilate", [](const WindowDim& d) { return d.base_dilation; }, 1);
    part("rhs_dilate", [](const WindowDim& d) { return d.window_dilation; }, 1);
    part("rhs_reversal", [](const WindowDim& d) { return int{d.reversal}; }, 0);
  }
  out_.push_back('}');
}

void HloPrinter::conv_dims(const ConvDims& c) {
  auto labels = [&](char first, int64_t first_at, char second, int64_t second_at,
                    const Dims& spatial) {
    int64_t last = std::max(first_at, second_at);
    for (int64_t s : spatial) last = std::max(last, s);
    std::string text(static_cast<size_t>(last) + 1, '?');
    text[static_cast<size_t>(first_at)] = first;
    text[static_cast<size_t>(second_at)] = second;
    for (size_t k = 0; k < spatial.size(); ++k) {
      text[static_cast<size_t>(spatial[k])] = static_cast<char>('0' + k);
    }
    out_ += text;
  };
  labels('b', c.input_batch, 'f', c.input_feature, c.input_spatial);
  out_.push_back('_');
  labels('i', c.kernel_input, 'o', c.kernel_output, c.kernel_spatial);
  out_ += "->";
  labels('b', c.output_batch, 'f', c.output_feature, c.output_spatial);
}

void HloPrinter::groups(const DeviceGroups* g) {
  if (g == nullptr) {
    out_ += "{}";
    return;
  }
  bool as_iota = options_.replica_groups == PrintOptions::ReplicaGroups::kIota;
  if (!as_iota || g->mesh_form.empty()) {
    out_ += print_replica_groups(*g);
    return;
  }
  DeviceGroups plain = *g;
  plain.mesh_form.clear();
  out_ += print_replica_groups(plain);
}

void HloPrinter::pairs(const PermuteAttrs& a) {
  std::string_view before = "{";
  const auto pair = [&](int64_t source, int64_t target) {
    out_ += before;
    integer(source);
    out_.push_back(',');
    integer(target);
    out_.push_back('}');
    before = ",{";
    hand_on(kPiece);
  };
  out_.push_back('{');
  if (a.permutation != nullptr) {
    GSPMD_CHECK(a.mesh != nullptr, "a device permutation without mesh");
    for_each_pair(*a.permutation, *a.mesh, pair);
  }
  for (auto [source, target] : a.pairs) pair(source, target);
  out_.push_back('}');
}

void HloPrinter::called(const Instr& i) {
  if (i.called.empty()) return;
  const OpDef& op = def(i);
  // Where an operator has both forms (conditional), the names serve a predicate.
  bool by_predicate = i.num_operands() > 0 && i.operand(0)->shape.is_array() &&
                      i.operand(0)->shape.type() == ElementType::kPred;
  bool named = op.called_list.empty() || (by_predicate && i.called.size() == op.called.size());
  if (!named) {
    out_.append(", ").append(op.called_list).append("={");
    for (size_t k = 0; k < i.called.size(); ++k) {
      if (k > 0) out_ += ", ";
      name(i.called[k]->name());
    }
    out_.push_back('}');
    return;
  }
  GSPMD_CHECK(i.called.size() <= op.called.size(), describe(i));
  for (size_t k = 0; k < i.called.size(); ++k) {
    out_.append(", ").append(op.called[k]).append("=");
    name(i.called[k]->name());
  }
}

void HloPrinter::metadata(const Metadata& m) {
  size_t begin = out_.size();
  std::string_view separator = "";
  auto text = [&](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    out_.append(separator).append(key).append("=");
    string(value);
    separator = " ";
  };
  auto number = [&](std::string_view key, int32_t value) {
    if (value == 0) return;
    out_.append(separator).append(key).append("=");
    integer(value);
    separator = " ";
  };
  out_ += ", metadata={";
  text("op_type", m.op_type);
  text("op_name", m.op_name);
  text("source_file", m.source_file);
  number("source_line", m.source_line);
  number("source_end_line", m.source_end_line);
  number("source_column", m.source_column);
  number("source_end_column", m.source_end_column);
  number("stack_frame_id", m.stack_frame_id);
  if (!m.rest.empty()) out_.append(separator).append(m.rest);
  if (separator.empty() && m.rest.empty()) {
    out_.resize(begin);
  } else {
    out_.push_back('}');
  }
}

void HloPrinter::common_attributes(const Instr& i) {
  static const Extras kNone;
  const Extras& x = i.extras != nullptr ? *i.extras : kNone;
  attribute("parameter_replication", x.parameter_replication);
  if (i.annotation != nullptr && options_.shardings) {
    attribute("sharding", print_hlo_sharding(*i.annotation));
  }
  attribute("frontend_attributes", x.frontend_attributes);
  for (size_t k = 0; k < x.control_predecessors.size(); ++k) {
    out_ += k == 0 ? ", control-predecessors={" : ", ";
    name_of_instr(*x.control_predecessors[k]);
    if (k + 1 == x.control_predecessors.size()) out_.push_back('}');
  }
  attribute("statistics", x.statistics);
  attribute("result_accuracy", x.result_accuracy);
  attribute("origin", x.origin);
  if (i.metadata != nullptr && options_.metadata) metadata(*i.metadata);
  attribute("backend_config", x.backend_config);
  if (!x.unknown.empty()) out_.append(", ").append(x.unknown);
}

}  // namespace gspmd
