#include "gspmd/ops/field_value.h"

#include <algorithm>
#include <array>
#include <memory>

namespace gspmd {
namespace {

// Attributes of every kind as they are before anything is read.
class Defaults {
 public:
  Defaults() {
    for (size_t k = 0; k < kKinds; ++k) data_[k] = make_attrs(static_cast<AttrsKind>(k), arena_);
  }
  void* of(AttrsKind kind) const { return data_[static_cast<size_t>(kind)]; }

 private:
  static constexpr size_t kKinds = 1
#define X(type) +1
      GSPMD_ATTRS(X)
#undef X
      ;
  Arena arena_;
  std::array<void*, kKinds> data_{};
};

template <typename T>
bool equal_as(const void* a, const void* b) {
  return *static_cast<const T*>(a) == *static_cast<const T*>(b);
}

template <typename T>
bool equal_pointees(const void* a, const void* b, const T& standard) {
  const T* x = *static_cast<const T* const*>(a);
  const T* y = *static_cast<const T* const*>(b);
  if (x == y) return true;
  return (x ? *x : standard) == (y ? *y : standard);
}

bool same_conv(const ConvDims& a, const ConvDims& b) {
  return a.input_batch == b.input_batch && a.input_feature == b.input_feature &&
         a.kernel_input == b.kernel_input && a.kernel_output == b.kernel_output &&
         a.output_batch == b.output_batch && a.output_feature == b.output_feature &&
         a.input_spatial == b.input_spatial && a.kernel_spatial == b.kernel_spatial &&
         a.output_spatial == b.output_spatial;
}

bool same_pairs(const PermuteAttrs& a, const PermuteAttrs& b) {
  auto list = [](const PermuteAttrs& p) {
    if (p.permutation != nullptr) return expand(*p.permutation, *p.mesh);
    return std::vector<std::pair<int64_t, int64_t>>(p.pairs.begin(), p.pairs.end());
  };
  return list(a) == list(b);
}

bool same_shape_of_any_context(Shape a, Shape b) {
  if (a == b) return true;
  return a && b && to_string(a, true) == to_string(b, true);
}

}  // namespace

bool same_value(const Field& f, const void* a, const void* b) {
  switch (f.kind) {
    case FieldKind::kInt:
      return equal_as<int64_t>(a, b);
    case FieldKind::kBool:
      return equal_as<bool>(a, b);
    case FieldKind::kDouble:
      return equal_as<double>(a, b);
    case FieldKind::kDims:
      return equal_as<Dims>(a, b);
    case FieldKind::kSlices: {
      const auto &x = *static_cast<const SliceAttrs*>(a), &y = *static_cast<const SliceAttrs*>(b);
      return x.starts == y.starts && x.limits == y.limits && x.strides == y.strides;
    }
    case FieldKind::kPadding: {
      const auto &x = *static_cast<const PadAttrs*>(a), &y = *static_cast<const PadAttrs*>(b);
      return x.low == y.low && x.high == y.high && x.interior == y.interior;
    }
    case FieldKind::kWindow:
      return equal_as<Window>(a, b);
    case FieldKind::kConvDims:
      return same_conv(*static_cast<const ConvDims*>(a), *static_cast<const ConvDims*>(b));
    case FieldKind::kConvDimsPointer: {
      const auto* x = *static_cast<const ConvDims* const*>(a);
      const auto* y = *static_cast<const ConvDims* const*>(b);
      return x == y || (x != nullptr && y != nullptr && same_conv(*x, *y));
    }
    case FieldKind::kEnum:
      return equal_as<uint8_t>(a, b);
    case FieldKind::kRaw:
    case FieldKind::kString:
      return equal_as<std::string_view>(a, b);
    case FieldKind::kDeviceGroups:
      return equal_pointees<DeviceGroups>(a, b, DeviceGroups());
    case FieldKind::kPairs:
      return same_pairs(*static_cast<const PermuteAttrs*>(a), *static_cast<const PermuteAttrs*>(b));
    case FieldKind::kShape:
      return same_shape_of_any_context(*static_cast<const Shape*>(a),
                                       *static_cast<const Shape*>(b));
  }
  return false;
}

bool is_default(const Field& f, AttrsKind kind, const void* member) {
  static const Defaults kDefaults;
  return same_value(f, f.member(kDefaults.of(kind)), member);
}

size_t hash_of_attributes(Opcode op, Attrs a) {
  if (op == Opcode::kConstant) {
    absl::Span<const std::byte> bits = a.get<ConstantAttrs>().literal->data;
    bits = bits.subspan(0, std::min<size_t>(bits.size(), 64));
    return absl::HashOf(std::string_view(reinterpret_cast<const char*>(bits.data()), bits.size()));
  }
  size_t hash = 0;
  void* attrs = const_cast<void*>(a.data());
  for (const Field& f : def(op).fields) {
    if (f.kind == FieldKind::kDims)
      hash = absl::HashOf(hash, absl::Span<const int64_t>(*static_cast<Dims*>(f.member(attrs))));
    if (f.kind == FieldKind::kInt && f.name != "channel_id")
      hash = absl::HashOf(hash, *static_cast<int64_t*>(f.member(attrs)));
  }
  return hash;
}

bool same_attributes(Opcode op, Attrs a, Attrs b) {
  if (a.data() == b.data()) return true;
  if (op == Opcode::kConstant) {
    const Literal &x = *a.get<ConstantAttrs>().literal, &y = *b.get<ConstantAttrs>().literal;
    return !x.elided && !y.elided && x.splat == y.splat && x.data.size() == y.data.size() &&
           std::equal(x.data.begin(), x.data.end(), y.data.begin());
  }
  for (const Field& f : def(op).fields) {
    if (f.name == "channel_id") continue;
    if (!same_value(f, f.member(const_cast<void*>(a.data())),
                    f.member(const_cast<void*>(b.data()))))
      return false;
  }
  return true;
}

}  // namespace gspmd
