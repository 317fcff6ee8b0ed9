// Attributes and types of VHLO, the stable form of StableHLO.

#include <fmt/format.h>

#include "gspmd/formats/mlir/bytecode_reader.h"

namespace gspmd::mlir {
namespace {

Attr of_kind(Attr::Kind kind, std::string text = {}) {
  Attr a;
  a.kind = kind;
  a.text = std::move(text);
  return a;
}

// Enumerations: words by number.
struct Enumeration {
  uint64_t code;
  std::string_view words[6];
};
constexpr Enumeration kEnumerations[] = {
    {3, {"EQ", "NE", "GE", "GT", "LE", "LT"}},
    {4, {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}},
    {7, {"FFT", "IFFT", "RFFT", "IRFFT"}},
    {11, {"DEFAULT", "HIGH", "HIGHEST"}},
    {12, {"DEFAULT", "THREE_FRY", "PHILOX"}},
    {13, {"", "UNIFORM", "NORMAL"}},
    {16, {"", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    {19, {"DEFAULT", "HIGHEST", "TOLERANCE"}},
};

}  // namespace

Attr BytecodeReader::vhlo_enum(Bytes* b, uint64_t code) {
  uint64_t value = b->varint();
  for (const Enumeration& e : kEnumerations) {
    if (e.code != code) continue;
    if (value >= std::size(e.words) || e.words[value].empty()) break;
    return of_kind(Attr::Kind::kSymbol, std::string(e.words[value]));
  }
  b->fail(fmt::format("the VHLO enumeration {} has no value {}", code, value));
}

Attr BytecodeReader::vhlo_attr(Bytes* b) {
  const auto svarints = [&] {
    Attr a = of_kind(Attr::Kind::kArray);
    size_t n = b->count();
    for (size_t k = 0; k < n; ++k)
      a.elements.emplace_back(of_kind(Attr::Kind::kInt)).integer = b->svarint();
    parts_ += n;
    return a;
  };
  uint64_t code = b->varint();
  switch (code) {
    case 1:
      return attr_list(b);
    case 2:
    case 5: {
      Attr a = of_kind(code == 2 ? Attr::Kind::kBool : Attr::Kind::kInt);
      a.integer = static_cast<int64_t>(b->varint());
      return a;
    }
    case 6:
      return dictionary(b);
    case 8:
    case 9:
      return number(b, code == 8);
    case 10: {
      Attr a = of_kind(Attr::Kind::kDict, "stablehlo.output_operand_alias");
      a.entries.emplace_back("output_tuple_indices", svarints());
      a.entries.emplace_back("operand_index", of_kind(Attr::Kind::kInt));
      a.entries.back().second.integer = b->svarint();
      a.entries.emplace_back("operand_tuple_indices", svarints());
      return a;
    }
    case 14:
      return of_kind(Attr::Kind::kString, std::string(string(b)));
    case 15: {
      Attr a = of_kind(Attr::Kind::kDense);
      Shape shape = type_ref(b).shape;
      a.literal = literal(b, shape, b->blob());
      return a;
    }
    case 17:
      return type_attr(b);
    case 18:
      return svarints();
    case 20: {
      Attr a = of_kind(Attr::Kind::kDict, "stablehlo.result_accuracy");
      b->bits(64);
      b->bits(64);
      b->svarint();
      a.entries.emplace_back("mode", attr_ref(b));
      return a;
    }
    case 21:
    case 22:
    case 23:
    case 24:
    case 25:
      b->fail("replica groups as axes of a mesh are not supported",
              "write them as lists of devices");
    default:
      return vhlo_enum(b, code);
  }
}

BytecodeReader::Type BytecodeReader::vhlo_type(Bytes* b) {
  static constexpr std::string_view kScalars[] = {
      "pred",     "",         "bf16",     "f16",        "f32",        "f64",
      "f8e4m3fn", "f8e5m2",   "",         "s64",        "s4",         "s8",
      "s16",      "s32",      "s64",      "u4",         "u8",         "u16",
      "u32",      "u64",      "",         "",           "",           "",
      "",         "",         "",         "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3b11fnuz",
      "",         "s2",       "u2",       "",           "tf32",       "f8e4m3",
      "f8e3m4",   "f4e2m1fn", "f6e2m3fn", "f6e3m2fn",   "f8e8m0fnu"};
  uint64_t code = b->varint();
  if (code < std::size(kScalars) && !kScalars[code].empty() && kScalars[code] != "tf32")
    return scalar(b, kScalars[code]);
  switch (code) {
    case 1:
      return complex(b);
    case 8:
      return function(b);
    case 20:
      return tensor(b);
    case 21:
      attr_ref(b);
      return tensor(b);
    case 22:
      return {.shape = context_.token()};
    case 23:
      return tuple(b);
    case 24:
    case 30:
      b->fail("quantized types are not supported");
    case 25:
      b->fail("tensors of unknown rank are not supported");
    case 33:
    case 34:  // tf32 stands in algorithms of dots only
      return {.is_tf32 = code == 34};
    default:
      b->fail(fmt::format("the VHLO type with the code {} is not supported", code));
  }
}

}  // namespace gspmd::mlir
