#include "gspmd/ir/float_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gspmd/formats/hlo_text.h"

namespace gspmd {
namespace {

constexpr ElementType kNarrow[] = {
    ElementType::kF4E2M1FN,   ElementType::kF6E2M3FN,   ElementType::kF6E3M2FN,
    ElementType::kF8E3M4,     ElementType::kF8E4M3,     ElementType::kF8E4M3B11FNUZ,
    ElementType::kF8E4M3FN,   ElementType::kF8E4M3FNUZ, ElementType::kF8E5M2,
    ElementType::kF8E5M2FNUZ, ElementType::kF8E8M0FNU,  ElementType::kF16,
    ElementType::kBF16};

// Every code but NaNs comes back from its value, and values grow with their codes.
TEST(FloatFormat, EveryCode) {
  for (ElementType t : kNarrow) {
    uint64_t codes = uint64_t{1} << bits_of(t);
    double last = -1;
    for (uint64_t c = 0; c < codes; ++c) {
      double v = float_value(t, c);
      if (std::isnan(v)) continue;
      EXPECT_EQ(float_bits(t, v), c) << name_of(t);
      if (c >= codes / 2 && format_of(t).has_sign) continue;
      EXPECT_GT(v, last) << name_of(t) << ' ' << c;
      last = v;
    }
  }
}

// Halfway between two neighbours the even code wins; a little beside it, the nearer one.
TEST(FloatFormat, RoundsToNearestEven) {
  for (ElementType t : kNarrow) {
    if (t == ElementType::kF8E8M0FNU) continue;
    uint64_t codes = uint64_t{1} << (bits_of(t) - 1);
    for (uint64_t c = 0; c + 1 < codes; ++c) {
      double low = float_value(t, c), high = float_value(t, c + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      double middle = low + (high - low) / 2;
      EXPECT_EQ(float_bits(t, middle), c + (c & 1)) << name_of(t);
      EXPECT_EQ(float_bits(t, std::nextafter(middle, 0)), c) << name_of(t);
      EXPECT_EQ(float_bits(t, std::nextafter(middle, INFINITY)), c + 1) << name_of(t);
    }
  }
}

struct Largest {
  ElementType type;
  double largest;
  bool has_infinity;
};
TEST(FloatFormat, Largest) {
  const Largest kTable[] = {
      {ElementType::kF4E2M1FN, 6, false},   {ElementType::kF6E2M3FN, 7.5, false},
      {ElementType::kF6E3M2FN, 28, false},  {ElementType::kF8E3M4, 15.5, true},
      {ElementType::kF8E4M3, 240, true},    {ElementType::kF8E4M3B11FNUZ, 30, false},
      {ElementType::kF8E4M3FN, 448, false}, {ElementType::kF8E4M3FNUZ, 240, false},
      {ElementType::kF8E5M2, 57344, true},  {ElementType::kF8E5M2FNUZ, 57344, false},
      {ElementType::kF16, 65504, true},     {ElementType::kF8E8M0FNU, std::ldexp(1, 127), false}};
  for (const Largest& l : kTable) {
    EXPECT_EQ(float_value(l.type, float_bits(l.type, l.largest)), l.largest) << name_of(l.type);
    double beyond = float_value(l.type, float_bits(l.type, l.largest * 4));
    bool saturates = format_of(l.type).nan == FloatFormat::Nan::kNone;
    EXPECT_TRUE(l.has_infinity ? std::isinf(beyond)
                : saturates    ? beyond == l.largest
                               : std::isnan(beyond))
        << name_of(l.type);
  }
}

// All values of all narrow types, NaNs included, keep their bits through text.
TEST(FloatFormat, ThroughText) {
  for (ElementType t : kNarrow) {
    auto context = std::make_shared<Context>();
    Module m(context, "m");
    Computation* c = m.add_computation("e");
    int64_t codes = int64_t{1} << bits_of(t);
    size_t size = static_cast<size_t>(storage_bytes(t));
    std::vector<std::byte> bytes;
    for (int64_t k = 0; k < codes; ++k) {
      for (size_t b = 0; b < size; ++b) bytes.push_back(static_cast<std::byte>(k >> (8 * b)));
    }
    Literal l{.shape = context->array(t, {codes}),
              .data = context->arena().copy(absl::MakeConstSpan(bytes))};
    ConstantAttrs a{context->arena().make<Literal>(l)};
    c->set_root(m.add(c, Opcode::kConstant, l.shape, {}, context->attrs(a)));
    m.set_entry(c);
    auto back = parse_hlo(std::make_shared<Context>(), print_hlo(m), "printed");
    const Literal& read = *back->entry()->root()->attrs<ConstantAttrs>().literal;
    for (int64_t k = 0; k < codes; ++k) {
      bool same = std::memcmp(read.element(k), l.element(k), size) == 0;
      EXPECT_TRUE(same) << name_of(t) << ' ' << k;
    }
  }
}

}  // namespace
}  // namespace gspmd
