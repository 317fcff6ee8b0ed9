// Attributes and types of bytecode: by their numbers, and those of the builtin dialect.

#include <fmt/format.h>

#include <cstring>

#include "gspmd/formats/mlir/bytecode_reader.h"
#include "gspmd/formats/mlir/text_reader.h"
#include "gspmd/ir/float_format.h"

namespace gspmd::mlir {
namespace {

// What attributes may hold, all together: more than that is no program, but a list of itself.
constexpr size_t kMaxParts = size_t{1} << 23;

Attr of_kind(Attr::Kind kind, std::string text = {}) {
  Attr a;
  a.kind = kind;
  a.text = std::move(text);
  return a;
}

// Integers as numbers: the `width` low bits with their sign.
int64_t with_sign(uint64_t bits, unsigned width) {
  if (width == 0 || width >= 64) return static_cast<int64_t>(bits);
  unsigned shift = 64 - width;
  return static_cast<int64_t>(bits << shift) >> shift;
}

}  // namespace

const Attr& BytecodeReader::attr(Bytes* from, uint64_t index) {
  if (index >= attrs_.size()) from->fail(fmt::format("there is no attribute {}", index));
  Entry<Attr>& e = attrs_[static_cast<size_t>(index)];
  using State = Entry<Attr>::State;
  if (e.state == State::kBusy) from->fail(fmt::format("attribute {} holds itself", index));
  if (e.state == State::kEncoded) {
    DepthGuard guard(this, *from);
    e.state = State::kBusy;
    size_t before = std::exchange(parts_, 1);
    Bytes b = e.bytes;
    if (e.is_text) {
      e.value = text_attr(&b);
    } else if (e.dialect.dialect == Dialect::kBuiltin) {
      e.value = builtin_attr(&b);
    } else if (e.dialect.dialect == Dialect::kVhlo) {
      e.value = vhlo_attr(&b);
    } else if (e.dialect.dialect == Dialect::kSdy) {
      e.value = sdy_attr(&b);
    } else {
      b.fail(fmt::format("attributes of the dialect {} are not known", e.dialect.name),
             "portable artifacts of StableHLO can be read, as jax.export and PJRT write them");
    }
    b.expect_end(fmt::format("an attribute of {}", e.dialect.name));
    e.parts = parts_;
    parts_ = before;
    e.state = State::kDecoded;
  }
  parts_ += e.parts;
  if (parts_ > kMaxParts) from->fail("attributes of too many parts");
  return e.value;
}

const BytecodeReader::Type& BytecodeReader::type(Bytes* from, uint64_t index) {
  if (index >= types_.size()) from->fail(fmt::format("there is no type {}", index));
  Entry<Type>& e = types_[static_cast<size_t>(index)];
  using State = Entry<Type>::State;
  if (e.state == State::kBusy) from->fail(fmt::format("type {} holds itself", index));
  if (e.state == State::kDecoded) return e.value;
  DepthGuard guard(this, *from);
  e.state = State::kBusy;
  Bytes b = e.bytes;
  if (e.is_text) {
    e.value = text_type(&b);
  } else if (e.dialect.dialect == Dialect::kBuiltin) {
    e.value = builtin_type(&b);
  } else if (e.dialect.dialect == Dialect::kVhlo) {
    e.value = vhlo_type(&b);
  } else {
    b.fail(fmt::format("types of the dialect {} are not known", e.dialect.name));
  }
  b.expect_end(fmt::format("a type of {}", e.dialect.name));
  e.state = State::kDecoded;
  return e.value;
}

// Of dialects that had no encoding of their own: as in texts.
Attr BytecodeReader::text_attr(Bytes* b) {
  auto source = std::make_shared<const SourceText>(file_, std::string(b->zero_terminated()));
  return TextReader(context_, source).attribute();
}

BytecodeReader::Type BytecodeReader::text_type(Bytes* b) {
  auto source = std::make_shared<const SourceText>(file_, std::string(b->zero_terminated()));
  return {.shape = TextReader(context_, source).type()};
}

Attr BytecodeReader::attr_list(Bytes* b) {
  Attr a = of_kind(Attr::Kind::kArray);
  size_t n = b->count();
  for (size_t k = 0; k < n; ++k) a.elements.push_back(attr_ref(b));
  return a;
}

Attr BytecodeReader::dictionary(Bytes* b) {
  Attr a = of_kind(Attr::Kind::kDict);
  size_t n = b->count();
  for (size_t k = 0; k < n; ++k) {
    std::string key = text_of(b);
    Attr value = attr_ref(b);
    bool bare =
        key == "sdy.sharding" && value.text.starts_with('<');  // as inside of other attributes
    if (bare) value.text.insert(0, "#sdy.sharding");
    a.entries.emplace_back(std::move(key), std::move(value));
  }
  return a;
}

// The type's number as well, since functions' types are no shapes.
Attr BytecodeReader::type_attr(Bytes* b) {
  uint64_t index = b->varint();
  const Type& t = type(b, index);
  Attr a = of_kind(t.is_tf32 ? Attr::Kind::kSymbol : Attr::Kind::kType, t.is_tf32 ? "tf32" : "");
  a.integer = static_cast<int64_t>(index);
  a.type = t.shape;
  return a;
}

Attr BytecodeReader::number(Bytes* b, bool real) {
  const Type& t = type_ref(b);
  bool fits =
      t.width > 0 && t.shape && is_float(t.shape.type()) == real && !is_complex(t.shape.type());
  if (!fits) b->fail("a number of no number type");
  Attr a = of_kind(real ? Attr::Kind::kFloat : Attr::Kind::kInt);
  a.type = t.shape;
  uint64_t bits = b->bits(t.width);
  if (real) {
    a.real = float_value(t.shape.type(), bits);
    return a;
  }
  bool is_bool = t.shape.type() == ElementType::kPred;
  if (is_bool) a.kind = Attr::Kind::kBool;
  a.integer = is_bool ? bits & 1 : with_sign(bits, t.is_unsigned ? 0 : t.width);
  a.real = static_cast<double>(a.integer);
  return a;
}

Attr BytecodeReader::builtin_attr(Bytes* b) {
  uint64_t code = b->varint();
  switch (code) {
    case 0:
      return attr_list(b);
    case 1:
      return dictionary(b);
    case 2:
      return of_kind(Attr::Kind::kString, std::string(string(b)));
    case 3: {
      Attr a = of_kind(Attr::Kind::kString, std::string(string(b)));
      a.type = type_ref(b).shape;
      return a;
    }
    case 4:
      return of_kind(Attr::Kind::kSymbol, text_of(b));
    case 6:
      return type_attr(b);
    case 7:
      return Attr();
    case 8:
    case 9:
      return number(b, code == 9);
    case 16:
      return dense_resource(b);
    case 17:
      return dense_array(b);
    case 18: {
      Attr a = of_kind(Attr::Kind::kDense);
      Shape shape = type_ref(b).shape;
      a.literal = literal(b, shape, b->blob());
      return a;
    }
    default:
      return builtin_location(b, code);
  }
}

// As kOpaque: the name as text, the file and its line as the only entry. Of several locations the
// first counts, which is the callee's.
Attr BytecodeReader::builtin_location(Bytes* b, uint64_t code) {
  Attr a = of_kind(Attr::Kind::kOpaque);
  if (code == 10) {
    a = attr_ref(b);
    attr_ref(b);
  } else if (code == 11 || code == 22) {
    std::string file = text_of(b);
    Attr line;
    line.kind = Attr::Kind::kInt;
    uint64_t numbers = code == 11 ? 2 : b->varint();
    if (numbers > 4) b->fail("a location of too many numbers");
    for (uint64_t k = 0; k < numbers; ++k) {
      uint64_t n = b->varint();
      if (k == 0) line.integer = static_cast<int64_t>(n & 0x7FFFFFFF);
    }
    a.entries.emplace_back(std::move(file), std::move(line));
  } else if (code == 12 || code == 13) {
    size_t n = b->count();
    for (size_t k = 0; k < n; ++k) {
      const Attr& part = attr_ref(b);
      if (k == 0) a = part;
    }
    if (code == 13) attr_ref(b);
  } else if (code == 14) {
    std::string name = text_of(b);
    a = attr_ref(b);
    a.text = std::move(name);
  } else if (code != 15) {
    b->fail(fmt::format("the builtin attribute with the code {} is not known", code));
  }
  return a;
}

Attr BytecodeReader::dense_array(Bytes* b) {
  const Type& t = type_ref(b);
  uint64_t n = b->varint();
  std::string_view data = b->blob();
  size_t size = (t.width + 7) / 8;
  bool fits = t.width > 0 && t.width <= 64 && t.shape && !is_complex(t.shape.type()) &&
              data.size() % size == 0 && data.size() / size == n;
  if (!fits) b->fail("an array whose size does not fit its type");
  Attr a = of_kind(Attr::Kind::kArray);
  ElementType e = t.shape.type();
  for (size_t at = 0; at < data.size(); at += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, data.data() + at, size);
    Attr v = of_kind(is_float(e) ? Attr::Kind::kFloat : Attr::Kind::kInt);
    if (e == ElementType::kPred) v.kind = Attr::Kind::kBool;
    if (is_float(e)) {
      v.real = float_value(e, bits);
    } else {
      v.integer =
          e == ElementType::kPred ? bits != 0 : with_sign(bits, t.is_unsigned ? 0 : t.width);
    }
    a.elements.push_back(std::move(v));
  }
  parts_ += a.elements.size();
  return a;
}

Attr BytecodeReader::dense_resource(Bytes* b) {
  Shape shape = type_ref(b).shape;
  uint64_t index = b->varint();
  if (index >= resources_.size()) b->fail(fmt::format("there is no resource {}", index));
  Attr a = of_kind(Attr::Kind::kDense);
  a.literal = literal(b, shape, resources_[static_cast<size_t>(index)]);
  return a;
}

// Elements in row-major order, or one for all; those of i1 a bit each (in old files a byte).
const Literal* BytecodeReader::literal(Bytes* b, Shape shape, std::string_view data) {
  if (!shape || !shape.is_array()) b->fail("a constant of no tensor type");
  ElementType e = shape.type();
  size_t size = static_cast<size_t>(storage_bytes(e));
  size_t n = static_cast<size_t>(shape.num_elements()), packed = n / 8 + (n % 8 != 0);
  bool predicate = e == ElementType::kPred;
  bool full_splat = data == "\xFF" || data == std::string_view("\0", 1);
  bool splat = n > 1 && data.size() == size && (!predicate || full_splat || packed != 1);
  bool bits = predicate && !splat && data.size() == packed && (n != 1 || !full_splat);
  if (!splat && !bits && (data.size() / size != n || data.size() % size != 0)) {
    b->fail(fmt::format("{} bytes where {} has {} elements of {}", data.size(), to_string(shape), n,
                        size));
  }
  std::vector<std::byte> out;
  if (bits) {
    for (size_t k = 0; k < n; ++k) out.push_back(static_cast<std::byte>(data[k / 8] >> k % 8 & 1));
  } else {
    const std::byte* first = reinterpret_cast<const std::byte*>(data.data());
    out.assign(first, first + data.size());
  }
  bool sub_byte = predicate || (bits_of(e) < 8 && class_of(e) == TypeClass::kSigned);
  for (std::byte& x : out) {  // one-byte types: as literals hold them
    if (!sub_byte || bits) break;
    uint8_t v = static_cast<uint8_t>(x);
    x = static_cast<std::byte>(predicate ? v != 0
                                         : with_sign(v, static_cast<unsigned>(bits_of(e))));
  }
  Literal l{
      .shape = shape, .data = context_.arena().copy(absl::MakeConstSpan(out)), .splat = splat};
  return context_.arena().make<Literal>(l);
}

BytecodeReader::Type BytecodeReader::scalar(Bytes* b, std::string_view name) {
  std::optional<ElementType> e = parse_element_type(name);
  if (!e) b->fail(fmt::format("the type {} is not supported", name));
  Type t{.shape = context_.scalar(*e)};
  t.width = static_cast<unsigned>(*e == ElementType::kPred ? 1 : bits_of(*e));
  t.is_unsigned = class_of(*e) == TypeClass::kUnsigned;
  return t;
}

BytecodeReader::Type BytecodeReader::complex(Bytes* b) {
  Shape part = type_ref(b).shape;
  if (part && part.is_scalar() && part.type() == ElementType::kF32) return scalar(b, "c64");
  if (part && part.is_scalar() && part.type() == ElementType::kF64) return scalar(b, "c128");
  b->fail("complex numbers have parts of f32 or f64");
}

// Sizes, then the type of the elements.
BytecodeReader::Type BytecodeReader::tensor(Bytes* b) {
  size_t rank = b->count();
  DimVector dims;
  for (size_t k = 0; k < rank; ++k) {
    dims.push_back(b->svarint());
    if (dims.back() < 0) {
      b->fail("tensors of dynamic size are not supported", "export the program for static shapes");
    }
  }
  if (too_large(dims)) b->fail("a tensor of too many elements");
  Shape element = type_ref(b).shape;
  if (!element || !element.is_scalar()) b->fail("a tensor of no element type");
  return {.shape = context_.array(element.type(), dims)};
}

BytecodeReader::Type BytecodeReader::tuple(Bytes* b) {
  constexpr int kMaxLeaves = 1 << 20;
  std::vector<Shape> elements(b->count());
  int64_t leaves = 0;
  for (Shape& s : elements) {
    s = type_ref(b).shape;
    if (!s) b->fail("a tuple of no tensor types");
    leaves += s.num_leaves();
    if (leaves > kMaxLeaves) b->fail("a tuple of too many elements");
  }
  return {.shape = context_.tuple(elements)};
}

BytecodeReader::Type BytecodeReader::function(Bytes* b) {
  Type t;
  t.is_function = true;
  t.arguments.resize(b->count());
  for (uint64_t& a : t.arguments) a = b->varint();
  t.results.resize(b->count());
  for (uint64_t& r : t.results) r = b->varint();
  return t;
}

BytecodeReader::Type BytecodeReader::builtin_type(Bytes* b) {
  static constexpr std::string_view kFloats[] = {
      "f8e5m2", "f8e4m3",   "f8e4m3fn", "f8e5m2fnuz", "f8e4m3fnuz", "f8e4m3b11fnuz",
      "f8e3m4", "f4e2m1fn", "f6e2m3fn", "f6e3m2fn",   "f8e8m0fnu"};
  static constexpr std::string_view kWide[] = {"bf16", "f16", "f32", "f64"};
  uint64_t code = b->varint();
  if (code >= 3 && code <= 6) return scalar(b, kWide[code - 3]);
  if (code >= 22 && code <= 32) return scalar(b, kFloats[code - 22]);
  switch (code) {
    case 0: {
      uint64_t u = b->varint(), width = u >> 2;
      if (width == 1 && (u & 3) == 0) return scalar(b, "pred");
      return scalar(b, fmt::format("{}{}", (u & 3) == 2 ? "u" : "s", width));
    }
    case 1:
      return scalar(b, "s64");
    case 2:
      return function(b);
    case 9:
      return complex(b);
    case 12:
      return {};
    case 13:
      return tensor(b);
    case 14:
      attr_ref(b);
      return tensor(b);
    case 15:
      return tuple(b);
    case 21:
      return {.is_tf32 = true};
    case 18:
      b->fail("tensors of unknown rank are not supported");
    default:
      b->fail(fmt::format("the builtin type with the code {} is not supported", code));
  }
}

}  // namespace gspmd::mlir
