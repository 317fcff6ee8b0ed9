#include "gspmd/formats/proto/proto_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gspmd/formats/proto/proto_places.h"
#include "gspmd/formats/proto/proto_raw.h"
#include "gspmd/formats/proto/proto_shape.h"
#include "gspmd/formats/proto/proto_sharding.h"
#include "gspmd/ops/field_value.h"

namespace gspmd {
namespace {

using google::protobuf::FieldDescriptor;
using proto::HloInstructionProto;

template <typename T>
T& as(void* member) {
  return *static_cast<T*>(member);
}

int64_t get_integer(const ProtoField& p) {
  if (p.field->is_repeated()) {
    int n = p.access().FieldSize(*p.message, p.field);
    if (n > 1) throw Error(fmt::format("{} numbers for {}, which is one", n, p.field->name()));
    return n == 0 ? 0 : p.access().GetRepeatedInt64(*p.message, p.field, 0);
  }
  bool narrow = p.field->cpp_type() == FieldDescriptor::CPPTYPE_INT32;
  return narrow ? p.access().GetInt32(*p.message, p.field)
                : p.access().GetInt64(*p.message, p.field);
}

void set_integer(const ProtoField& p, int64_t value) {
  if (p.field->is_repeated()) return p.access().AddInt64(p.message, p.field, value);
  if (p.field->cpp_type() != FieldDescriptor::CPPTYPE_INT32) {
    return p.access().SetInt64(p.message, p.field, value);
  }
  if (value != static_cast<int32_t>(value)) {
    throw Error(fmt::format("{}={} does not fit into its message", p.field->name(), value));
  }
  p.access().SetInt32(p.message, p.field, static_cast<int32_t>(value));
}

// Whether the message says anything of a number: those that stay at 0 are not written.
bool is_present(const ProtoField& p) {
  if (p.field->is_repeated()) return p.access().FieldSize(*p.message, p.field) > 0;
  return p.access().HasField(*p.message, p.field);
}

bool get_boolean(const ProtoField& p) {
  if (p.field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    return p.access().GetBool(*p.message, p.field);
  }
  return get_integer(p) == 1;  // of unspecified, true, false
}

void set_boolean(const ProtoField& p, bool value) {
  if (p.field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    return p.access().SetBool(p.message, p.field, value);
  }
  set_integer(p, value ? 1 : 2);
}

// The double whose decimal is the shortest of the message's float: 0.001 and not 0.00100000005.
double get_double(const ProtoField& p) {
  char text[40];
  auto [end, error] =
      std::to_chars(text, text + sizeof text, p.access().GetFloat(*p.message, p.field));
  double value = 0;
  std::from_chars(text, end, value);
  return value;
}

Dims get_dims(Context& context, const ProtoField& p) {
  DimVector dims;
  for (int k = 0; k < p.access().FieldSize(*p.message, p.field); ++k) {
    dims.push_back(p.access().GetRepeatedInt64(*p.message, p.field, k));
  }
  return context.dims(dims);
}

uint8_t get_enum(const ProtoPlace& place, const Field& f, const ProtoField& p) {
  if (p.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    std::string word = p.access().GetString(*p.message, p.field);
    for (size_t k = 0; k < f.names.size(); ++k) {
      if (f.names[k] == word) return static_cast<uint8_t>(k);
    }
    throw Error(fmt::format("'{}' is no {}", word, f.name));
  }
  // 0 is "invalid" where the names start at 1; it is what is not written.
  int64_t k = std::max(get_integer(p), place.first_number) - place.first_number;
  if (k >= 0 && k < static_cast<int64_t>(f.names.size())) return static_cast<uint8_t>(k);
  throw Error(fmt::format("{} number {} is unknown", f.name, k));
}

void set_enum(const ProtoPlace& place, const Field& f, const ProtoField& p, uint8_t value) {
  if (p.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    p.access().SetString(p.message, p.field, std::string(f.names[value]));
  } else {
    set_integer(p, value + place.first_number);
  }
}

void read_slices(Context& context, const HloInstructionProto& from, SliceAttrs* to) {
  DimVector starts, limits, strides;
  for (const auto& s : from.slice_dimensions()) {
    starts.push_back(s.start());
    limits.push_back(s.limit());
    strides.push_back(s.stride());
  }
  *to = {context.dims(starts), context.dims(limits), context.dims(strides)};
}

void write_slices(const SliceAttrs& a, HloInstructionProto* to) {
  for (size_t k = 0; k < a.starts.size(); ++k) {
    auto* s = to->add_slice_dimensions();
    s->set_start(a.starts[k]);
    s->set_limit(a.limits[k]);
    s->set_stride(a.strides[k]);
  }
}

void read_padding(Context& context, const proto::PaddingConfig& from, PadAttrs* to) {
  DimVector low, high, interior;
  for (const auto& d : from.dimensions()) {
    low.push_back(d.edge_padding_low());
    high.push_back(d.edge_padding_high());
    interior.push_back(d.interior_padding());
  }
  *to = {context.dims(low), context.dims(high), context.dims(interior)};
}

void write_padding(const PadAttrs& a, proto::PaddingConfig* to) {
  for (size_t k = 0; k < a.low.size(); ++k) {
    auto* d = to->add_dimensions();
    d->set_edge_padding_low(a.low[k]);
    d->set_edge_padding_high(a.high[k]);
    d->set_interior_padding(a.interior[k]);
  }
}

Window read_window(Context& context, const proto::WindowProto& from) {
  std::vector<WindowDim> dims;
  auto or_one = [](int64_t n) { return n == 0 ? 1 : n; };
  for (const auto& d : from.dimensions()) {
    dims.push_back({d.size(), or_one(d.stride()), d.padding_low(), d.padding_high(),
                    or_one(d.base_dilation()), or_one(d.window_dilation()), d.window_reversal()});
  }
  return context.arena().copy(absl::MakeConstSpan(dims));
}

void write_window(Window window, proto::WindowProto* to) {
  for (const WindowDim& w : window) {
    auto* d = to->add_dimensions();
    d->set_size(w.size);
    d->set_stride(w.stride);
    d->set_padding_low(w.pad_low);
    d->set_padding_high(w.pad_high);
    d->set_window_dilation(w.window_dilation);
    d->set_base_dilation(w.base_dilation);
    d->set_window_reversal(w.reversal);
  }
}

// Every dimension has one role, or the texts could not spell it.
void check_roles(int64_t first, int64_t second, const Dims& spatial, std::string_view tensor) {
  uint64_t seen = 0;
  size_t rank = spatial.size() + 2;
  auto take = [&](int64_t d) {
    bool good = d >= 0 && d < static_cast<int64_t>(rank) && rank <= 64 && (seen >> d & 1) == 0;
    if (!good) throw Error(fmt::format("dimension {} of the {} has no place or two", d, tensor));
    seen |= uint64_t{1} << d;
  };
  take(first);
  take(second);
  for (int64_t d : spatial) take(d);
}

ConvDims read_conv_dims(Context& context, const proto::ConvolutionDimensionNumbers& from) {
  auto dims = [&](const auto& list) {
    return context.dims(absl::MakeConstSpan(list.data(), static_cast<size_t>(list.size())));
  };
  ConvDims c{.input_batch = from.input_batch_dimension(),
             .input_feature = from.input_feature_dimension(),
             .kernel_input = from.kernel_input_feature_dimension(),
             .kernel_output = from.kernel_output_feature_dimension(),
             .output_batch = from.output_batch_dimension(),
             .output_feature = from.output_feature_dimension(),
             .input_spatial = dims(from.input_spatial_dimensions()),
             .kernel_spatial = dims(from.kernel_spatial_dimensions()),
             .output_spatial = dims(from.output_spatial_dimensions())};
  check_roles(c.input_batch, c.input_feature, c.input_spatial, "input");
  check_roles(c.kernel_input, c.kernel_output, c.kernel_spatial, "kernel");
  check_roles(c.output_batch, c.output_feature, c.output_spatial, "output");
  bool same_rank = c.input_spatial.size() == c.kernel_spatial.size() &&
                   c.input_spatial.size() == c.output_spatial.size();
  if (!same_rank) throw Error("input, kernel and output differ in their spatial dimensions");
  return c;
}

void write_conv_dims(const ConvDims& c, proto::ConvolutionDimensionNumbers* to) {
  to->set_input_batch_dimension(c.input_batch);
  to->set_input_feature_dimension(c.input_feature);
  to->set_kernel_input_feature_dimension(c.kernel_input);
  to->set_kernel_output_feature_dimension(c.kernel_output);
  to->set_output_batch_dimension(c.output_batch);
  to->set_output_feature_dimension(c.output_feature);
  to->mutable_input_spatial_dimensions()->Add(c.input_spatial.begin(), c.input_spatial.end());
  to->mutable_kernel_spatial_dimensions()->Add(c.kernel_spatial.begin(), c.kernel_spatial.end());
  to->mutable_output_spatial_dimensions()->Add(c.output_spatial.begin(), c.output_spatial.end());
}

void read_pairs(Context& context, const HloInstructionProto& from, PermuteAttrs* to) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const auto& p : from.source_target_pairs()) pairs.emplace_back(p.source(), p.target());
  to->pairs = context.arena().copy(absl::MakeConstSpan(pairs));
}

void write_pairs(const PermuteAttrs& a, HloInstructionProto* to) {
  auto write = [&](int64_t source, int64_t target) {
    auto* p = to->add_source_target_pairs();
    p->set_source(source);
    p->set_target(target);
  };
  if (a.permutation != nullptr) for_each_pair(*a.permutation, *a.mesh, write);
  for (auto [source, target] : a.pairs) write(source, target);
}

// Messages always say how numbers are compared; we do where it is not the usual way of their type.
CompareType usual_comparison(Shape operand) {
  TypeClass kind = class_of(operand.type());
  if (kind == TypeClass::kSigned) return CompareType::kSigned;
  bool is_unsigned = kind == TypeClass::kUnsigned || kind == TypeClass::kPredicate;
  return is_unsigned ? CompareType::kUnsigned : CompareType::kFloat;
}

void read_simple(Context& context, const OpDef& op, const Field& f, const HloInstructionProto& from,
                 void* member) {
  ProtoPlace place = place_of(op, f);
  ProtoField p = field_for_reading(from, place);
  if (p.message == nullptr) return;
  switch (f.kind) {
    case FieldKind::kInt:
      if (is_present(p)) as<int64_t>(member) = get_integer(p);
      return;
    case FieldKind::kBool:
      as<bool>(member) = get_boolean(p);
      return;
    case FieldKind::kDouble:
      as<double>(member) = get_double(p);
      return;
    case FieldKind::kDims:
      as<Dims>(member) = get_dims(context, p);
      return;
    case FieldKind::kEnum:
      as<uint8_t>(member) = get_enum(place, f, p);
      return;
    case FieldKind::kString:
      as<std::string_view>(member) =
          context.arena().text(p.access().GetString(*p.message, p.field));
      return;
    default:
      GSPMD_CHECK(false, "a kind of attribute that has no message");
  }
}

void write_simple(const OpDef& op, const Field& f, void* member, HloInstructionProto* to) {
  ProtoPlace place = place_of(op, f);
  ProtoField p = field_for_writing(to, place);
  switch (f.kind) {
    case FieldKind::kInt:
      return set_integer(p, as<int64_t>(member));
    case FieldKind::kBool:
      return set_boolean(p, as<bool>(member));
    case FieldKind::kDouble:
      return p.access().SetFloat(p.message, p.field, static_cast<float>(as<double>(member)));
    case FieldKind::kDims:
      for (int64_t d : as<Dims>(member)) p.access().AddInt64(p.message, p.field, d);
      return;
    case FieldKind::kEnum:
      return set_enum(place, f, p, as<uint8_t>(member));
    case FieldKind::kString:
      return p.access().SetString(p.message, p.field, std::string(as<std::string_view>(member)));
    default:
      GSPMD_CHECK(false, "a kind of attribute that has no message");
  }
}

void read_field(Context& context, const OpDef& op, const Field& f, const HloInstructionProto& from,
                void* member) {
  switch (f.kind) {
    case FieldKind::kSlices:
      return read_slices(context, from, &as<SliceAttrs>(member));
    case FieldKind::kPadding:
      return read_padding(context, from.padding_config(), &as<PadAttrs>(member));
    case FieldKind::kWindow:
      as<Window>(member) = read_window(context, from.window());
      return;
    case FieldKind::kConvDims:
      as<ConvDims>(member) = read_conv_dims(context, from.convolution_dimension_numbers());
      return;
    case FieldKind::kConvDimsPointer:
      if (!from.has_convolution_dimension_numbers()) return;
      as<const ConvDims*>(member) =
          context.attrs(read_conv_dims(context, from.convolution_dimension_numbers()));
      return;
    case FieldKind::kDeviceGroups:
      as<const DeviceGroups*>(member) = read_groups(context, from);
      return;
    case FieldKind::kPairs:
      return read_pairs(context, from, &as<PermuteAttrs>(member));
    case FieldKind::kShape:
      if (from.has_outfeed_shape()) as<Shape>(member) = read_shape(context, from.outfeed_shape());
      return;
    case FieldKind::kRaw:
      as<std::string_view>(member) = context.arena().text(read_raw(context, place_of(op, f), from));
      return;
    default:
      return read_simple(context, op, f, from, member);
  }
}

void write_field(Context& context, const OpDef& op, const Field& f, void* member,
                 HloInstructionProto* to) {
  switch (f.kind) {
    case FieldKind::kSlices:
      return write_slices(as<SliceAttrs>(member), to);
    case FieldKind::kPadding:
      return write_padding(as<PadAttrs>(member), to->mutable_padding_config());
    case FieldKind::kWindow:
      return write_window(as<Window>(member), to->mutable_window());
    case FieldKind::kConvDims:
      return write_conv_dims(as<ConvDims>(member), to->mutable_convolution_dimension_numbers());
    case FieldKind::kConvDimsPointer:
      return write_conv_dims(*as<const ConvDims*>(member),
                             to->mutable_convolution_dimension_numbers());
    case FieldKind::kPairs:
      return write_pairs(as<PermuteAttrs>(member), to);
    case FieldKind::kShape:
      return write_shape(as<Shape>(member), to->mutable_outfeed_shape());
    case FieldKind::kRaw:
      return write_raw(context, place_of(op, f), as<std::string_view>(member), to);
    default:
      return write_simple(op, f, member, to);
  }
}

// Our default need not be the message's, which is 0, false and a word's first name.
bool differs_from_zero(const OpDef& op, const Field& f, void* member) {
  if (f.kind == FieldKind::kInt) return as<int64_t>(member) > 0;
  if (f.kind == FieldKind::kBool) return as<bool>(member);
  if (f.kind != FieldKind::kRaw) return false;
  absl::Span<const std::string_view> names = place_of(op, f).names;
  bool has_empty = std::find(names.begin(), names.end(), "") != names.end();
  return has_empty && names[0] != as<std::string_view>(member);
}

}  // namespace

void read_fields(Context& context, const OpDef& op, const HloInstructionProto& from,
                 absl::Span<const Shape> shapes, void* to) {
  for (const Field& f : op.fields) read_field(context, op, f, from, f.member(to));
  if (op.attrs != AttrsKind::kCompareAttrs || shapes.empty() || !shapes[0].is_array()) return;
  auto* compare = static_cast<CompareAttrs*>(to);
  if (compare->type == usual_comparison(shapes[0])) compare->type = CompareType::kDefault;
}

void write_fields(Context& context, const Instr& i, bool mesh_groups, HloInstructionProto* to) {
  const OpDef& op = def(i);
  for (const Field& f : op.fields) {
    void* member = f.member(const_cast<void*>(i.attributes.data()));
    bool is_written = f.always_printed || differs_from_zero(op, f, member) ||
                      !is_default(f, i.attributes.kind(), member);
    if (!is_written) continue;
    if (f.kind == FieldKind::kDeviceGroups) {
      write_groups(as<const DeviceGroups*>(member), mesh_groups, to);
    } else {
      write_field(context, op, f, member, to);
    }
  }
  const auto* compare = i.attributes.get_if<CompareAttrs>();
  if (compare == nullptr || compare->type != CompareType::kDefault) return;
  constexpr std::string_view kNames[] = {"", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
  size_t usual = static_cast<size_t>(usual_comparison(i.operand(0)->shape));
  to->set_comparison_type(std::string(kNames[usual]));
}

}  // namespace gspmd
