#include "gspmd/engine/numeric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gspmd/engine/small_float.h"
#include "gspmd/ir/float_format.h"
#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

struct Case {
  const char* actual;
  const char* expected;
};

class NumericConvert : public testing::TestWithParam<Case> {};

TEST_P(NumericConvert, Gives) { expect_same(GetParam().actual, GetParam().expected); }

// clang-format off
constexpr Case kCases[] = {
    {"s32[5] convert(f32[5] constant({3e9, -3e9, nan, -2.7, 2.7}))", "s32[5] constant({2147483647, -2147483648, 0, -2, 2})"},
    {"u32[3] convert(f32[3] constant({5e9, -3, 7.9}))", "u32[3] constant({4294967295, 0, 7})"},
    {"s8[3] convert(f32[3] constant({200, -200, nan}))", "s8[3] constant({127, -128, 0})"},
    {"u8[2] convert(f32[2] constant({300, -1}))", "u8[2] constant({255, 0})"},
    {"s4[3] convert(f32[3] constant({9, -9, nan}))", "s4[3] constant({7, -8, 0})"},
    {"s64[3] convert(f32[3] constant({1e30, -inf, 5}))", "s64[3] constant({9223372036854775807, -9223372036854775808, 5})"},
    {"u64[2] convert(f64[2] constant({1e30, -1}))", "u64[2] constant({18446744073709551615, 0})"},
    {"s8[1] convert(s32[1] constant({200}))", "s8[1] constant({-56})"},
    {"s4[1] convert(s8[1] constant({9}))", "s4[1] constant({-7})"},
    {"u16[1] convert(s8[1] constant({-1}))", "u16[1] constant({65535})"},
    {"u64[1] convert(s8[1] constant({-1}))", "u64[1] constant({18446744073709551615})"},
    {"s32[1] convert(u8[1] constant({255}))", "s32[1] constant({255})"},
    {"f32[2] convert(s32[2] constant({16777217, -3}))", "f32[2] constant({16777216, -3})"},
    {"f32[1] convert(u64[1] constant({18446744073709551615}))", "f32[1] constant({18446744073709551616})"},
    // 2^24 + 2^16 + 1 lies above the middle of two bf16 numbers by what f32 cannot hold.
    {"bf16[1] convert(s32[1] constant({16842753}))", "bf16[1] constant({16908288})"},
    {"bf16[1] convert(f64[1] constant({1.003906250001}))", "bf16[1] constant({1.0078125})"},
    {"pred[4] convert(f32[4] constant({nan, 0, -0, 0.1}))", "pred[4] constant({1, 0, 0, 1})"},
    {"pred[2] convert(s32[2] constant({256, 0}))", "pred[2] constant({1, 0})"},
    {"f32[2] convert(pred[2] constant({1, 0}))", "f32[2] constant({1, 0})"},
    {"f16[3] convert(f32[3] constant({65519, 65520, 1e-8}))", "f16[3] constant({65504, inf, 0})"},
    {"bf16[2] convert(f32[2] constant({1.00390625, 1.01171875}))", "bf16[2] constant({1, 1.015625})"},
    {"f8e4m3fn[5] convert(f32[5] constant({464, 465, inf, -0, 448}))", "f8e4m3fn[5] constant({448, nan, nan, -0, 448})"},
    {"f8e5m2[2] convert(f32[2] constant({61440, 57344}))", "f8e5m2[2] constant({inf, 57344})"},
    {"f8e4m3[2] convert(f32[2] constant({250, 240}))", "f8e4m3[2] constant({inf, 240})"},
    {"f8e3m4[2] convert(f32[2] constant({16, 15.5}))", "f8e3m4[2] constant({inf, 15.5})"},
    {"f8e4m3fnuz[3] convert(f32[3] constant({inf, -0, 240}))", "f8e4m3fnuz[3] constant({nan, 0, 240})"},
    {"f8e5m2fnuz[2] convert(f32[2] constant({1e9, 57344}))", "f8e5m2fnuz[2] constant({nan, 57344})"},
    {"f8e4m3b11fnuz[2] convert(f32[2] constant({40, 30}))", "f8e4m3b11fnuz[2] constant({nan, 30})"},
    {"f4e2m1fn[5] convert(f32[5] constant({7, inf, -9, 0.25, 2.5}))", "f4e2m1fn[5] constant({6, 6, -6, 0, 2})"},
    {"f4e2m1fn[1] convert(f32[1] constant({nan}))", "f4e2m1fn[1] constant({-0})"},
    {"c64[2] convert(f32[2] constant({1, 2}))", "c64[2] constant({(1, 0), (2, 0)})"},
    {"f32[7] convert(f8e8m0fnu[7] convert(f32[7] constant({0.3, 448, 0, -1, inf, 1.5, 3})))", "f32[7] constant({0.25, 512, nan, nan, nan, 2, 4})"},
    {"f32[4] reduce-precision(f32[4] constant({70000, 1e-6, nan, 1.0009765625})), exponent_bits=5, mantissa_bits=10", "f32[4] constant({inf, 0, nan, 1.0009765625})"},
    {"f32[2] reduce-precision(f32[2] constant({65504, 1.0625})), exponent_bits=5, mantissa_bits=3", "f32[2] constant({inf, 1})"},
    {"f32[1] reduce-precision(f32[1] constant({1e-40})), exponent_bits=8, mantissa_bits=23", "f32[1] constant({1e-40})"},
    {"f16[2] reduce-precision(f16[2] constant({6e-8, 1.0625})), exponent_bits=5, mantissa_bits=3", "f16[2] constant({0, 1})"},
    {"bf16[2] stochastic-convert(f32[2] constant({1.00390625, 1}), u32[2] constant({32768, 4294967295}))", "bf16[2] constant({1.0078125, 1})"},
};
constexpr Case kBitcasts[] = {
    {"u8[4] bitcast-convert(u32[] constant(67305985))", "u8[4] constant({1, 2, 3, 4})"},
    {"u32[] bitcast-convert(u8[4] constant({1, 2, 3, 4}))", "u32[] constant(67305985)"},
    {"s4[2,2] bitcast-convert(u8[2] constant({241, 39}))", "s4[2,2] constant({{1, -1}, {7, 2}})"},
    {"u8[2] bitcast-convert(s4[2,2] constant({{1, -1}, {7, 2}}))", "u8[2] constant({241, 39})"},
    {"u4[2] bitcast-convert(s4[2] constant({-1, 3}))", "u4[2] constant({15, 3})"},
    {"u32[1] bitcast-convert(f32[1] constant({1}))", "u32[1] constant({1065353216})"},
    {"f32[1] bitcast-convert(u16[1,2] constant({{0, 16256}}))", "f32[1] constant({1})"},
    {"u64[1] bitcast-convert(u32[1,2] constant({{1, 2}}))", "u64[1] constant({8589934593})"},
    {"s32[6] bitcast(s32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}}))", "s32[6] constant({1, 4, 2, 5, 3, 6})"},
    {"s32[2,3]{0,1} bitcast(s32[6] constant({1, 2, 3, 4, 5, 6}))", "s32[2,3] constant({{1, 3, 5}, {2, 4, 6}})"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Table, NumericConvert, testing::ValuesIn(kCases));
INSTANTIATE_TEST_SUITE_P(Bitcasts, NumericConvert, testing::ValuesIn(kBitcasts));

TEST(Numeric, BitcastsOfAWideRunUseTheProgramsType) {
  expect_same("u32[1] bitcast-convert(f32[1] constant({1}))", "u32[1] constant({1065353216})", "",
              /*wide=*/true);
  expect_same("f32[1] bitcast-convert(u32[1] constant({1065353216}))", "f64[1] constant({1})", "",
              /*wide=*/true);
}

constexpr ElementType kNarrow[] = {
    ElementType::kF4E2M1FN,   ElementType::kF6E2M3FN,   ElementType::kF6E3M2FN,
    ElementType::kF8E3M4,     ElementType::kF8E4M3,     ElementType::kF8E4M3B11FNUZ,
    ElementType::kF8E4M3FN,   ElementType::kF8E4M3FNUZ, ElementType::kF8E5M2,
    ElementType::kF8E5M2FNUZ, ElementType::kF8E8M0FNU,  ElementType::kF16,
    ElementType::kBF16,
};

uint64_t stored_bits(ElementType type, ElementType from, double value) {
  uint64_t source = 0, bits = 0;
  if (from == ElementType::kF32) {
    const auto f = static_cast<float>(value);
    std::memcpy(&source, &f, sizeof(f));
  } else {
    std::memcpy(&source, &value, sizeof(value));
  }
  convert_elements(from, reinterpret_cast<const std::byte*>(&source), 1, type,
                   reinterpret_cast<std::byte*>(&bits));
  return bits;
}

// The fast conversions against the plain ones: all codes back and forth, and around every middle of
// two neighbours, from f32 and f64.
TEST(Numeric, NarrowFloatsConvertAsTheirFormatSays) {
  for (ElementType type : kNarrow) {
    SCOPED_TRACE(name_of(type));
    const uint64_t codes = uint64_t{1} << bits_of(type);
    for (uint64_t code = 0; code < codes; ++code) {
      const double value = float_value(type, code);
      float loaded = 0;
      load_lanes(type, reinterpret_cast<const std::byte*>(&code), 1, &loaded);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(loaded)) << code;
        continue;
      }
      ASSERT_EQ(static_cast<double>(loaded), value) << code;
      ASSERT_EQ(std::signbit(loaded), std::signbit(value)) << code;
      if (std::isinf(value) || code + 1 == codes) continue;
      const double next = float_value(type, code + 1);
      if (!std::isfinite(next)) continue;
      const double middle = (value + next) / 2;
      for (double x : {value, middle, std::nextafter(middle, 1e300), std::nextafter(middle, -1e300),
                       static_cast<double>(std::nextafter(static_cast<float>(middle), 1e30f)),
                       static_cast<double>(std::nextafter(static_cast<float>(middle), -1e30f))}) {
        ASSERT_EQ(stored_bits(type, ElementType::kF64, x), float_bits(type, x)) << x;
        const auto f = static_cast<double>(static_cast<float>(x));
        ASSERT_EQ(stored_bits(type, ElementType::kF32, f), float_bits(type, f)) << f;
      }
    }
  }
}

TEST(Numeric, WholeNumbersRoundOnceToNarrowFloats) {
  for (int64_t base :
       {int64_t{1} << 24, int64_t{1} << 40, (int64_t{1} << 62) + (int64_t{1} << 54)}) {
    for (int64_t delta = -3; delta <= 3; ++delta) {
      const int64_t x = base + delta;
      uint16_t bits = 0;
      convert_elements(ElementType::kS64, reinterpret_cast<const std::byte*>(&x), 1,
                       ElementType::kBF16, reinterpret_cast<std::byte*>(&bits));
      const double rounded = float_value(ElementType::kBF16, bits);
      const auto error = std::fabs(static_cast<long double>(rounded) - static_cast<long double>(x));
      for (int step : {-1, 1}) {
        const double other = float_value(ElementType::kBF16, static_cast<uint64_t>(bits + step));
        const auto other_error =
            std::fabs(static_cast<long double>(other) - static_cast<long double>(x));
        EXPECT_LE(error, other_error) << x;
        EXPECT_TRUE(error != other_error || bits % 2 == 0) << x;
      }
    }
  }
}

TEST(Numeric, BuffersShareMemoryUntilWritten) {
  Buffer a = Buffer::zeros(ElementType::kS32, {100});
  EXPECT_TRUE(a.is_unique());
  Buffer b = a;
  EXPECT_FALSE(a.is_unique());
  b.mutable_data<int32_t>()[3] = 7;
  EXPECT_EQ(a.data<int32_t>()[3], 0);
  EXPECT_EQ(b.data<int32_t>()[3], 7);
  EXPECT_TRUE(a.is_unique());
  const std::byte* before = b.raw();
  b.mutable_raw();
  EXPECT_EQ(b.raw(), before);
  EXPECT_EQ(b.reshaped({10, 10}).raw(), before);
}

}  // namespace
}  // namespace gspmd::test
