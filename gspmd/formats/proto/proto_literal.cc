// Constants: elements lie in the order of the literal's layout, each type in a field of its own.
#include <fmt/format.h>

#include <cstring>

#include "gspmd/base/error.h"
#include "gspmd/formats/proto/proto_shape.h"

namespace gspmd {
namespace {

using proto::LiteralProto;

// Calls f(row-major index) for each element in the order of the layout.
template <typename F>
void in_layout_order(Shape shape, F f) {
  int64_t n = shape.num_elements();
  if (shape.layout() == nullptr) {
    for (int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  Dims order = shape.layout()->minor_to_major;
  DimVector stride(static_cast<size_t>(shape.rank())), at(stride.size());
  for (int64_t d = shape.rank(), s = 1; d-- > 0; s *= shape.dim(static_cast<int>(d))) {
    stride[static_cast<size_t>(d)] = s;
  }
  int64_t index = 0;
  for (int64_t i = 0; i < n; ++i) {
    f(index);
    for (int64_t d : order) {
      size_t k = static_cast<size_t>(d);
      index += stride[k];
      if (++at[k] < shape.dim(static_cast<int>(d))) break;
      index -= stride[k] * at[k];
      at[k] = 0;
    }
  }
}

template <typename T, typename Field>
void write_numbers(const Literal& l, int parts, Field* to) {
  to->Reserve(static_cast<int>(l.num_elements()) * parts);
  in_layout_order(l.shape, [&](int64_t i) {
    for (int part = 0; part < parts; ++part) {
      T value;
      std::memcpy(&value, l.element(i) + part * static_cast<int>(sizeof(T)), sizeof(T));
      to->AddAlreadyReserved(value);
    }
  });
}

void write_bytes(const Literal& l, std::string* to) {
  size_t width = static_cast<size_t>(storage_bytes(l.shape.type()));
  int bits = bits_of(l.shape.type());
  to->reserve(static_cast<size_t>(l.num_elements()) * width);
  in_layout_order(l.shape, [&](int64_t i) {
    to->append(reinterpret_cast<const char*>(l.element(i)), width);
    if (bits < 8) to->back() = static_cast<char>(to->back() & ((1 << bits) - 1));
  });
}

template <typename T, typename Field>
void read_numbers(const Field& from, std::string* to) {
  to->reserve(static_cast<size_t>(from.size()) * sizeof(T));
  for (T value : from) to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The field of an element type that is stored as bytes; null for the others.
std::string* bytes_field(LiteralProto* l, ElementType type) {
  switch (type) {
#define BYTES(id, field)   \
  case ElementType::k##id: \
    return l->mutable_##field()
    BYTES(U8, u8s);
    BYTES(S8, s8s);
    BYTES(U16, u16s);
    BYTES(S16, s16s);
    BYTES(F16, f16s);
    BYTES(BF16, bf16s);
    BYTES(S4, s4s);
    BYTES(U4, u4s);
    BYTES(S2, s2s);
    BYTES(U2, u2s);
    BYTES(S1, s1s);
    BYTES(U1, u1s);
    BYTES(F8E5M2, f8e5m2s);
    BYTES(F8E4M3FN, f8e4m3fns);
    BYTES(F8E4M3B11FNUZ, f8e4m3b11fnuzs);
    BYTES(F8E5M2FNUZ, f8e5m2fnuzs);
    BYTES(F8E4M3FNUZ, f8e4m3fnuzs);
    BYTES(F8E4M3, f8e4m3s);
    BYTES(F8E3M4, f8e3m4s);
    BYTES(F4E2M1FN, f4e2m1fns);
    BYTES(F8E8M0FNU, f8e8m0fnus);
    BYTES(F6E3M2FN, f6e3m2fns);
    BYTES(F6E2M3FN, f6e2m3fns);
#undef BYTES
    default:
      return nullptr;
  }
}

// The elements as bytes, in the order of the message.
std::string elements(const LiteralProto& from, ElementType type) {
  std::string out;
  switch (type) {
#define NUMBERS(id, c_type, field)            \
  case ElementType::k##id:                    \
    read_numbers<c_type>(from.field(), &out); \
    return out
    NUMBERS(Pred, bool, preds);
    NUMBERS(S32, int32_t, s32s);
    NUMBERS(S64, int64_t, s64s);
    NUMBERS(U32, uint32_t, u32s);
    NUMBERS(U64, uint64_t, u64s);
    NUMBERS(F32, float, f32s);
    NUMBERS(F64, double, f64s);
    NUMBERS(C64, float, c64s);
    NUMBERS(C128, double, c128s);
#undef NUMBERS
    default:
      break;
  }
  std::string* bytes = bytes_field(const_cast<LiteralProto*>(&from), type);
  if (bytes == nullptr) throw Error("a constant of a type that has no elements");
  return *bytes;
}

// Elements under 8 bits fill their byte, with their sign where they have one.
void widen(std::string* bytes, ElementType type) {
  int bits = bits_of(type);
  bool is_signed = class_of(type) == TypeClass::kSigned;
  for (char& c : *bytes) {
    int value = static_cast<unsigned char>(c) & ((1 << bits) - 1);
    if (is_signed && (value >> (bits - 1) & 1) != 0) value -= 1 << bits;
    c = static_cast<char>(value);
  }
}

}  // namespace

Literal read_literal(Context& context, const LiteralProto& from, Shape shape) {
  Literal l;
  l.shape = shape;
  l.elided = from.gspmd_elided();
  if (shape.is_token() || l.elided) return l;
  if (shape.is_tuple()) {
    int n = static_cast<int>(shape.elements().size());
    if (from.tuple_literals_size() != n) {
      throw Error(fmt::format("a constant of {} elements for a tuple of {}",
                              from.tuple_literals_size(), n));
    }
    std::vector<Literal> parts;
    for (int k = 0; k < n; ++k) {
      parts.push_back(read_literal(context, from.tuple_literals(k), shape.element(k)));
    }
    l.elements = context.arena().copy(absl::MakeConstSpan(parts));
    return l;
  }
  std::string bytes = elements(from, shape.type());
  size_t width = static_cast<size_t>(storage_bytes(shape.type()));
  size_t wanted = static_cast<size_t>(shape.num_elements()) * width;
  if (bytes.size() != wanted || shape.is_dynamic()) {
    throw Error(fmt::format("a constant {} with {} bytes of values in place of {}",
                            to_string(shape), bytes.size(), wanted));
  }
  if (bits_of(shape.type()) < 8) widen(&bytes, shape.type());
  absl::Span<std::byte> data = context.arena().array<std::byte>(wanted);
  size_t next = 0;
  in_layout_order(shape, [&](int64_t i) {
    std::memcpy(data.data() + static_cast<size_t>(i) * width, bytes.data() + next, width);
    next += width;
  });
  l.data = data;
  return l;
}

void write_literal(const Literal& l, LiteralProto* to) {
  write_shape(l.shape, to->mutable_shape());
  to->set_gspmd_elided(l.elided);
  if (l.elided) return;
  for (const Literal& e : l.elements) write_literal(e, to->add_tuple_literals());
  if (!l.shape.is_array()) return;
  switch (l.shape.type()) {
#define NUMBERS(id, c_type, parts, field)                   \
  case ElementType::k##id:                                  \
    write_numbers<c_type>(l, parts, to->mutable_##field()); \
    return
    NUMBERS(Pred, bool, 1, preds);
    NUMBERS(S32, int32_t, 1, s32s);
    NUMBERS(S64, int64_t, 1, s64s);
    NUMBERS(U32, uint32_t, 1, u32s);
    NUMBERS(U64, uint64_t, 1, u64s);
    NUMBERS(F32, float, 1, f32s);
    NUMBERS(F64, double, 1, f64s);
    NUMBERS(C64, float, 2, c64s);
    NUMBERS(C128, double, 2, c128s);
#undef NUMBERS
    default:
      write_bytes(l, bytes_field(to, l.shape.type()));
  }
}

}  // namespace gspmd
