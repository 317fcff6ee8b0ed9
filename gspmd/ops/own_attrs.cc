#include "gspmd/ops/own_attrs.h"

#include <fmt/format.h>

namespace gspmd {
namespace {

void* copy_struct(Attrs attrs, Arena& arena) {
  switch (attrs.kind()) {
    case AttrsKind::kNone:
      return nullptr;
#define X(type)            \
  case AttrsKind::k##type: \
    return arena.make<type>(attrs.get<type>());
      GSPMD_ATTRS(X)
#undef X
  }
  return nullptr;
}

void own(Dims* dims, Arena& arena) { *dims = arena.dims(*dims); }

void own(ConvDims* dims, Arena& arena) {
  own(&dims->input_spatial, arena);
  own(&dims->kernel_spatial, arena);
  own(&dims->output_spatial, arena);
}

// The value of one attribute, at `member`.
void own_member(FieldKind kind, void* member, Arena& arena) {
  switch (kind) {
    case FieldKind::kDims:
      return own(static_cast<Dims*>(member), arena);
    case FieldKind::kSlices: {
      auto* a = static_cast<SliceAttrs*>(member);
      for (Dims* d : {&a->starts, &a->limits, &a->strides}) own(d, arena);
      return;
    }
    case FieldKind::kPadding: {
      auto* a = static_cast<PadAttrs*>(member);
      for (Dims* d : {&a->low, &a->high, &a->interior}) own(d, arena);
      return;
    }
    case FieldKind::kWindow: {
      auto* w = static_cast<Window*>(member);
      *w = arena.copy(*w);
      return;
    }
    case FieldKind::kConvDims:
      return own(static_cast<ConvDims*>(member), arena);
    case FieldKind::kConvDimsPointer: {
      auto** dims = static_cast<const ConvDims**>(member);
      if (*dims == nullptr) return;
      auto* copy = arena.make<ConvDims>(**dims);
      own(copy, arena);
      *dims = copy;
      return;
    }
    case FieldKind::kRaw:
    case FieldKind::kString: {
      auto* text = static_cast<std::string_view*>(member);
      *text = arena.text(*text);
      return;
    }
    case FieldKind::kPairs: {
      auto* a = static_cast<PermuteAttrs*>(member);
      a->pairs = arena.copy(a->pairs);
      return;
    }
    case FieldKind::kInt:
    case FieldKind::kBool:
    case FieldKind::kDouble:
    case FieldKind::kEnum:
    case FieldKind::kDeviceGroups:
    case FieldKind::kShape:
      return;
  }
}

}  // namespace

Attrs own_attrs(const OpDef& op, Attrs attrs, Context& context) {
  if (op.attrs == AttrsKind::kNone && attrs.kind() == AttrsKind::kNone) return {};
  if (attrs.kind() == AttrsKind::kNone) return {op.attrs, make_attrs(op.attrs, context.arena())};
  if (attrs.kind() != op.attrs) {
    throw Error(fmt::format("{}: attributes of another operator", op.name),
                "ir/attrs.h says which struct is whose");
  }
  void* copy = copy_struct(attrs, context.arena());
  for (const Field& f : op.fields) own_member(f.kind, f.member(copy), context.arena());
  return {op.attrs, copy};
}

}  // namespace gspmd
