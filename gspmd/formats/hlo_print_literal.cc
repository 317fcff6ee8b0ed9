#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "gspmd/formats/hlo_printer.h"
#include "gspmd/ir/float_format.h"

namespace gspmd {
namespace {

uint64_t load(const std::byte* from, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(bytes));
  return bits;
}

void append_nan(std::string* out, ElementType type, uint64_t bits) {
  const FloatFormat f = format_of(type);
  const uint64_t standard = float_bits(type, std::nan(""));
  const uint64_t mantissa = bits & ((uint64_t{1} << f.mantissa_bits) - 1);
  const bool ieee = f.nan == FloatFormat::Nan::kIeee;
  const bool signed_nan = f.has_sign && f.nan != FloatFormat::Nan::kNegativeZero;
  const bool negative = signed_nan && (bits >> (f.exponent_bits + f.mantissa_bits) & 1);
  *out += negative ? "-nan" : "nan";
  const uint64_t standard_mantissa = standard & ((uint64_t{1} << f.mantissa_bits) - 1);
  if (ieee && mantissa != standard_mantissa) *out += fmt::format("(0x{:x})", mantissa);
}

// A decimal that reads back as the same bits of `type`: the shortest one, or as many digits as XLA
// prints for f16 and bf16. Narrower types are printed exactly, so that 448 is 448 and not 4e+02.
void append_decimal(std::string* out, ElementType type, double value) {
  char text[40];
  char* end = text + sizeof text;
  std::to_chars_result result{};
  if (type == ElementType::kF64) {
    result = std::to_chars(text, end, value);
  } else if (type == ElementType::kF16 || type == ElementType::kBF16) {
    int digits = type == ElementType::kF16 ? 5 : 4;
    result = std::to_chars(text, end, value, std::chars_format::general, digits);
  } else {
    result = std::to_chars(text, end, static_cast<float>(value));
  }
  out->append(text, result.ptr);
}

void append_float(std::string* out, ElementType type, uint64_t bits) {
  double value = float_value(type, bits);
  if (std::isnan(value)) return append_nan(out, type, bits);
  if (std::isinf(value)) {
    *out += value < 0 ? "-inf" : "inf";
  } else if (value == 0) {
    *out += std::signbit(value) ? "-0.0" : "0";  // `-0` would be read as an integer
  } else {
    append_decimal(out, type, value);
  }
}

}  // namespace

void append_element(std::string* out, const Literal& literal, int64_t i) {
  ElementType type = literal.shape.type();
  const std::byte* from = literal.element(i);
  int bytes = storage_bytes(type);
  switch (class_of(type)) {
    case TypeClass::kPredicate:
    case TypeClass::kSigned:
    case TypeClass::kUnsigned: {
      int64_t value = *integer_at(literal, i);
      if (type == ElementType::kPred && literal.shape.rank() == 0) {
        *out += value != 0 ? "true" : "false";
      } else if (class_of(type) == TypeClass::kUnsigned) {
        *out += fmt::format_int(static_cast<uint64_t>(value)).c_str();
      } else {
        *out += fmt::format_int(value).c_str();
      }
      return;
    }
    case TypeClass::kFloat:
      return append_float(out, type, load(from, bytes));
    case TypeClass::kComplex: {
      ElementType part = type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
      out->push_back('(');
      append_float(out, part, load(from, bytes / 2));
      *out += ", ";
      append_float(out, part, load(from + bytes / 2, bytes / 2));
      out->push_back(')');
      return;
    }
    case TypeClass::kOther:
      break;
  }
  GSPMD_CHECK(false, "a literal of type " + to_string(literal.shape));
}

void HloPrinter::literal(const Literal& l) {
  if (l.shape.is_tuple() && !l.elided) {
    out_.push_back('(');
    for (size_t k = 0; k < l.elements.size(); ++k) {
      if (k > 0) out_ += ", ";
      literal(l.elements[k]);
    }
    out_.push_back(')');
    return;
  }
  bool elide = l.elided || (options_.elide_constants && l.num_elements() > 10);
  if (elide) {
    out_ += "{...}";
  } else if (l.num_elements() == 0 && l.shape.rank() > 0) {
    out_ += "{}";
  } else {
    array(l, 0, 0);
  }
}

// The elements from number `first` on that dimension d and the ones inside hold.
void HloPrinter::array(const Literal& l, int d, int64_t first) {
  if (d == l.shape.rank()) return append_element(&out_, l, first);
  int64_t inside = 1;
  for (int k = d + 1; k < l.shape.rank(); ++k) inside *= l.shape.dim(k);
  out_ += "{";
  bool nested = d + 1 < l.shape.rank();
  for (int64_t k = 0; k < l.shape.dim(d); ++k) {
    if (k > 0) out_ += ",";
    if (k > 0 || nested) out_ += " ";
    array(l, d + 1, first + k * inside);
  }
  out_ += nested ? " }" : "}";
}

}  // namespace gspmd
