#pragma once

#include <cstdint>
#include <string_view>

#include "gspmd/ir/attrs.h"

namespace gspmd {

// The value type of an attribute in a program text: what a reader parses and a printer prints.
enum class FieldKind : uint8_t {
  kInt,              // int64_t
  kBool,             // bool
  kDouble,           // double
  kDims,             // Dims: {0,1}
  kSlices,           // SliceAttrs (whole): {[0:4:2], [1:3]}
  kPadding,          // PadAttrs (whole): 0_1_2x3_4
  kWindow,           // Window: {size=3x3 ...}
  kConvDims,         // ConvDims: b01f_01io->b01f
  kConvDimsPointer,  // const ConvDims*: the same, null if not written
  kEnum,             // one-byte enum: position in `Field::names`
  kRaw,              // std::string_view: one balanced value, kept as written
  kString,           // std::string_view: a quoted string, kept without its quotes, unescaped
  kDeviceGroups,     // const DeviceGroups*
  kPairs,            // PermuteAttrs (whole): {{0,1},{1,0}}
  kShape,            // Shape
};

// One attribute of an operator, declared once: the text parser, printers, protobuf and Python read
// this.
struct Field {
  std::string_view name;  // in HLO text
  FieldKind kind;
  void* (*member)(void* attrs);  // address of the value inside its attrs struct
  bool required = false;
  bool always_printed = false;                    // even where it is empty or the default
  absl::Span<const std::string_view> names = {};  // kEnum
  std::string_view stablehlo = {};  // its name there; empty = the same, "-" = it has none
};

namespace field_internal {
template <auto Member>
struct MemberOf;
template <typename S, typename T, T S::* Member>
struct MemberOf<Member> {
  using Struct = S;
  static void* get(void* attrs) { return &(static_cast<S*>(attrs)->*Member); }
};
template <typename S>
void* whole(void* attrs) {
  return static_cast<S*>(attrs);
}
}  // namespace field_internal

// field<&DotAttrs::lhs_batch>("lhs_batch_dims", FieldKind::kDims)
template <auto Member>
constexpr Field field(std::string_view name, FieldKind kind) {
  return Field{name, kind, &field_internal::MemberOf<Member>::get};
}
template <typename S>
constexpr Field whole_field(std::string_view name, FieldKind kind) {
  return Field{name, kind, &field_internal::whole<S>};
}
constexpr Field required(Field f) {
  f.required = f.always_printed = true;
  return f;
}
constexpr Field always_printed(Field f) {
  f.always_printed = true;
  return f;
}
constexpr Field enum_names(Field f, absl::Span<const std::string_view> names) {
  f.names = names;
  return f;
}
constexpr Field stablehlo_name(Field f, std::string_view name) {
  f.stablehlo = name;
  return f;
}

}  // namespace gspmd
