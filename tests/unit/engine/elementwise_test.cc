#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

struct Case {
  const char* actual;
  const char* expected;
};

class ElementwiseKernel : public testing::TestWithParam<Case> {};

TEST_P(ElementwiseKernel, Gives) { expect_same(GetParam().actual, GetParam().expected); }

// clang-format off
constexpr Case kIntegers[] = {
    {"s32[2] abs(s32[2] constant({-2147483648, -5}))", "s32[2] constant({-2147483648, 5})"},
    {"s32[2] negate(s32[2] constant({-2147483648, 5}))", "s32[2] constant({-2147483648, -5})"},
    {"s8[3] add(s8[3] constant({127, -128, 3}), s8[3] constant({1, -1, 4}))", "s8[3] constant({-128, 127, 7})"},
    {"s4[3] add(s4[3] constant({7, -8, 3}), s4[3] constant({1, -1, 4}))", "s4[3] constant({-8, 7, 7})"},
    {"u4[2] multiply(u4[2] constant({15, 3}), u4[2] constant({15, 4}))", "u4[2] constant({1, 12})"},
    {"u32[1] subtract(u32[1] constant({3}), u32[1] constant({5}))", "u32[1] constant({4294967294})"},
    {"s32[4] sign(s32[4] constant({-7, 0, 7, -2147483648}))", "s32[4] constant({-1, 0, 1, -1})"},
    {"s32[5] divide(s32[5] constant({7, -7, -2147483648, -7, 0}), s32[5] constant({0, 0, -1, 2, 5}))", "s32[5] constant({-1, -1, -2147483648, -3, 0})"},
    {"u8[2] divide(u8[2] constant({7, 9}), u8[2] constant({0, 2}))", "u8[2] constant({255, 4})"},
    {"s8[2] divide(s8[2] constant({-128, 9}), s8[2] constant({-1, 0}))", "s8[2] constant({-128, -1})"},
    {"s32[4] remainder(s32[4] constant({7, -7, -2147483648, -7}), s32[4] constant({0, 4, -1, -4}))", "s32[4] constant({7, -3, 0, -3})"},
    {"u64[1] remainder(u64[1] constant({18446744073709551615}), u64[1] constant({10}))", "u64[1] constant({5})"},
    {"s32[7] power(s32[7] constant({3, 1, -1, -1, 2, 0, 10}), s32[7] constant({4, -5, -3, -4, -1, 0, 10}))", "s32[7] constant({81, 1, -1, 1, 0, 1, 1410065408})"},
    {"s32[3] maximum(s32[3] constant({-1, 5, 2}), s32[3] constant({1, 4, 2}))", "s32[3] constant({1, 5, 2})"},
    {"u32[2] minimum(u32[2] constant({4294967295, 1}), u32[2] constant({3, 2}))", "u32[2] constant({3, 1})"},
    {"s32[4] shift-left(s32[4] constant({1, 1, 3, 1}), s32[4] constant({31, 32, 2, -1}))", "s32[4] constant({-2147483648, 0, 12, 0})"},
    {"s32[3] shift-right-logical(s32[3] constant({-1, -1, -8}), s32[3] constant({28, 32, -1}))", "s32[3] constant({15, 0, 0})"},
    {"s32[4] shift-right-arithmetic(s32[4] constant({-8, -8, 8, 8}), s32[4] constant({1, 40, 40, -3}))", "s32[4] constant({-4, -1, 0, 0})"},
    {"s8[2] shift-right-logical(s8[2] constant({-1, -128}), s8[2] constant({4, 7}))", "s8[2] constant({15, 1})"},
    {"s8[2] shift-left(s8[2] constant({1, 1}), s8[2] constant({7, 8}))", "s8[2] constant({-128, 0})"},
    {"s4[2] shift-right-arithmetic(s4[2] constant({-8, 7}), s4[2] constant({1, 5}))", "s4[2] constant({-4, 0})"},
    {"s8[3] popcnt(s8[3] constant({-1, 0, 5}))", "s8[3] constant({8, 0, 2})"},
    {"s16[3] count-leading-zeros(s16[3] constant({-1, 0, 5}))", "s16[3] constant({0, 16, 13})"},
    {"u32[2] count-leading-zeros(u32[2] constant({0, 1}))", "u32[2] constant({32, 31})"},
    {"s32[2] not(s32[2] constant({0, -6}))", "s32[2] constant({-1, 5})"},
    {"s32[2] mulhi(s32[2] constant({-2147483648, 65536}), s32[2] constant({2, 65536}))", "s32[2] constant({-1, 1})"},
    {"u64[1] mulhi(u64[1] constant({18446744073709551615}), u64[1] constant({18446744073709551615}))", "u64[1] constant({18446744073709551614})"},
    {"u8[2] mulhi(u8[2] constant({255, 16}), u8[2] constant({255, 16}))", "u8[2] constant({254, 1})"},
    {"s32[3] clamp(s32[] constant(0), s32[3] constant({-5, 3, 9}), s32[] constant(7))", "s32[3] constant({0, 3, 7})"},
    {"s32[3] clamp(s32[3] constant({5, 5, 5}), s32[3] constant({1, 2, 9}), s32[3] constant({3, 3, 3}))", "s32[3] constant({3, 3, 3})"},
    {"pred[4] add(pred[4] constant({0, 0, 1, 1}), pred[4] constant({0, 1, 0, 1}))", "pred[4] constant({0, 1, 1, 1})"},
    {"pred[4] multiply(pred[4] constant({0, 0, 1, 1}), pred[4] constant({0, 1, 0, 1}))", "pred[4] constant({0, 0, 0, 1})"},
    {"pred[4] maximum(pred[4] constant({0, 0, 1, 1}), pred[4] constant({0, 1, 0, 1}))", "pred[4] constant({0, 1, 1, 1})"},
    {"pred[4] xor(pred[4] constant({0, 0, 1, 1}), pred[4] constant({0, 1, 0, 1}))", "pred[4] constant({0, 1, 1, 0})"},
    {"pred[2] not(pred[2] constant({0, 1}))", "pred[2] constant({1, 0})"},
    {"pred[3] compare(u32[3] constant({4294967295, 1, 2}), u32[3] constant({1, 1, 3})), direction=GT", "pred[3] constant({1, 0, 0})"},
    {"pred[3] compare(s32[3] constant({-1, 1, 2}), s32[3] constant({1, 1, 3})), direction=LE", "pred[3] constant({1, 1, 1})"},
    {"pred[2] compare(pred[2] constant({0, 1}), pred[2] constant({1, 1})), direction=LT", "pred[2] constant({1, 0})"},
    {"s32[2] select(pred[2] constant({1, 0}), s32[2] constant({1, 2}), s32[2] constant({3, 4}))", "s32[2] constant({1, 4})"},
    {"s8[2] select(pred[] constant(0), s8[2] constant({1, 2}), s8[2] constant({3, 4}))", "s8[2] constant({3, 4})"},
};
constexpr Case kFloats[] = {
    {"f32[4] sign(f32[4] constant({nan, -0, 0, -3}))", "f32[4] constant({nan, -0, 0, -1})"},
    {"f32[5] maximum(f32[5] constant({nan, 1, -0, 0, -inf}), f32[5] constant({1, nan, 0, -0, 2}))", "f32[5] constant({nan, nan, 0, 0, 2})"},
    {"f32[5] minimum(f32[5] constant({nan, 1, -0, 0, -inf}), f32[5] constant({1, nan, 0, -0, 2}))", "f32[5] constant({nan, nan, -0, -0, -inf})"},
    {"bf16[2] maximum(bf16[2] constant({nan, -0}), bf16[2] constant({1, 0}))", "bf16[2] constant({nan, 0})"},
    {"f32[4] clamp(f32[] constant(0), f32[4] constant({nan, 3, -1, 9}), f32[] constant(4))", "f32[4] constant({nan, 3, 0, 4})"},
    {"f32[2] clamp(f32[2] constant({5, nan}), f32[2] constant({1, 1}), f32[2] constant({3, 2}))", "f32[2] constant({3, nan})"},
    {"f32[5] remainder(f32[5] constant({inf, 5, 5, -5, 5.5}), f32[5] constant({2, 0, inf, 3, -2}))", "f32[5] constant({nan, nan, 5, -2, 1.5})"},
    {"f32[7] power(f32[7] constant({nan, 1, -1, -1, -2, 0, 2}), f32[7] constant({0, nan, inf, -inf, 0.5, -1, 10}))", "f32[7] constant({1, 1, 1, 1, nan, inf, 1024})"},
    {"f32[3] divide(f32[3] constant({1, -1, 0}), f32[3] constant({0, 0, 0}))", "f32[3] constant({inf, -inf, nan})"},
    {"f32[4] round-nearest-even(f32[4] constant({0.5, 1.5, -2.5, -0.5}))", "f32[4] constant({0, 2, -2, -0})"},
    {"f32[3] round-nearest-afz(f32[3] constant({0.5, -2.5, 1.4}))", "f32[3] constant({1, -3, 1})"},
    {"f32[2] ceil(f32[2] constant({-0.5, 1.1}))", "f32[2] constant({-0, 2})"},
    {"f32[2] floor(f32[2] constant({-0.5, 1.1}))", "f32[2] constant({-1, 1})"},
    {"pred[4] is-finite(f32[4] constant({nan, inf, -inf, 3}))", "pred[4] constant({0, 0, 0, 1})"},
    {"f32[3] rsqrt(f32[3] constant({-0, 0.25, -1}))", "f32[3] constant({-inf, 2, nan})"},
    {"f32[3] log(f32[3] constant({-1, 0, 1}))", "f32[3] constant({nan, -inf, 0})"},
    {"f32[3] exponential(f32[3] constant({89, -inf, 0}))", "f32[3] constant({inf, 0, 1})"},
    {"f32[3] logistic(f32[3] constant({inf, -inf, 0}))", "f32[3] constant({1, 0, 0.5})"},
    {"f32[2] cbrt(f32[2] constant({-8, 27}))", "f32[2] constant({-2, 3})"},
    {"f32[2] imag(f32[2] constant({1, 2}))", "f32[2] constant({0, 0})"},
    {"pred[4] compare(f32[4] constant({nan, 1, 1, -0}), f32[4] constant({nan, nan, 2, 0})), direction=LT", "pred[4] constant({0, 0, 1, 0})"},
    {"pred[4] compare(f32[4] constant({nan, 1, 1, -0}), f32[4] constant({nan, nan, 2, 0})), direction=NE", "pred[4] constant({1, 1, 1, 0})"},
    {"pred[5] compare(f32[5] constant({-nan, -inf, -0, inf, 1}), f32[5] constant({-inf, -1, 0, nan, 1})), direction=LT, type=TOTALORDER", "pred[5] constant({1, 1, 1, 1, 0})"},
    {"pred[3] compare(bf16[3] constant({-nan, -0, inf}), bf16[3] constant({-inf, 0, nan})), direction=LT, type=TOTALORDER", "pred[3] constant({1, 1, 1})"},
    {"bf16[2] add(bf16[2] constant({256, 1}), bf16[2] constant({1, 0.0078125}))", "bf16[2] constant({256, 1.0078125})"},
    {"f16[2] multiply(f16[2] constant({256, 2}), f16[2] constant({256, 3}))", "f16[2] constant({inf, 6})"},
    {"f8e4m3fn[2] add(f8e4m3fn[2] constant({448, 16}), f8e4m3fn[2] constant({32, 1}))", "f8e4m3fn[2] constant({nan, 16})"},
    {"f64[2] add(f64[2] constant({1e300, 1}), f64[2] constant({1e300, 2}))", "f64[2] constant({2e300, 3})"},
};
constexpr Case kComplex[] = {
    {"c64[2] multiply(c64[2] constant({(1, 2), (0, 1)}), c64[2] constant({(3, 4), (0, 1)}))", "c64[2] constant({(-5, 10), (-1, 0)})"},
    {"c64[2] divide(c64[2] constant({(1, 1), (0, 0)}), c64[2] constant({(0, 0), (0, 0)}))", "c64[2] constant({(inf, inf), (nan, nan)})"},
    {"c64[2] sign(c64[2] constant({(3, 4), (0, 0)}))", "c64[2] constant({(0.6, 0.8), (0, 0)})"},
    {"f32[1] abs(c64[1] constant({(3, 4)}))", "f32[1] constant({5})"},
    {"c64[1] sqrt(c64[1] constant({(-4, 0)}))", "c64[1] constant({(0, 2)})"},
    {"c64[2] complex(f32[2] constant({1, 2}), f32[2] constant({3, 4}))", "c64[2] constant({(1, 3), (2, 4)})"},
    {"f32[1] real(c64[1] constant({(3, 4)}))", "f32[1] constant({3})"},
    {"f64[1] imag(c128[1] constant({(3, 4)}))", "f64[1] constant({4})"},
    {"pred[2] compare(c64[2] constant({(1, 2), (1, 2)}), c64[2] constant({(1, 2), (1, 3)})), direction=EQ", "pred[2] constant({1, 0})"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Integers, ElementwiseKernel, testing::ValuesIn(kIntegers));
INSTANTIATE_TEST_SUITE_P(Floats, ElementwiseKernel, testing::ValuesIn(kFloats));
INSTANTIATE_TEST_SUITE_P(Complex, ElementwiseKernel, testing::ValuesIn(kComplex));

// Values that XLA's CPU backend has no code for.
TEST(ElementwiseKernels, InverseAndHyperbolicFunctions) {
  const Case cases[] = {
      {"f32[3] asin(f32[3] constant({0.5, -1, 2}))",
       "f32[3] constant({0.5235988, -1.5707964, nan})"},
      {"f32[3] acos(f32[3] constant({0.5, -1, 2}))",
       "f32[3] constant({1.0471976, 3.1415927, nan})"},
      {"f32[2] sinh(f32[2] constant({1, -inf}))", "f32[2] constant({1.1752012, -inf})"},
      {"f32[2] cosh(f32[2] constant({1, -inf}))", "f32[2] constant({1.5430807, inf})"},
      {"f64[2] asinh(f64[2] constant({1, -1}))",
       "f64[2] constant({0.881373587019543, -0.881373587019543})"},
      {"f32[2] acosh(f32[2] constant({2, 0.5}))", "f32[2] constant({1.3169579, nan})"},
      {"f32[3] atanh(f32[3] constant({0.5, 1, 2}))", "f32[3] constant({0.54930615, inf, nan})"},
      {"c64[1] sinh(c64[1] constant({(1, 2)}))", "c64[1] constant({(-0.48905626, 1.4031192)})"},
  };
  for (const Case& c : cases) expect_near(c.actual, c.expected, 1e-6);
}

TEST(ElementwiseKernels, TanhIsWithinThreeUlp) {
  // i / 4096 - 12, in f32 and f64.
  const char* program =
      "HloModule m\n\nENTRY e {\n  i = f32[98304] iota(), iota_dimension=0\n  c = f32[] "
      "constant(4096)\n"
      "  cs = f32[98304] broadcast(c), dimensions={}\n  q = f32[98304] divide(i, cs)\n"
      "  o = f32[] constant(12)\n  os = f32[98304] broadcast(o), dimensions={}\n"
      "  x = f32[98304] subtract(q, os)\n  t = f32[98304] tanh(x)\n  y = f64[98304] convert(x)\n"
      "  u = f64[98304] tanh(y)\n  ROOT r = (f32[98304], f64[98304]) tuple(t, u)\n}\n";
  std::vector<Buffer> r = evaluate(program);
  const float* narrow = r[0].data<float>();
  const double* exact = r[1].data<double>();
  for (int i = 0; i < 98304; ++i) {
    const auto nearest = static_cast<float>(exact[i]);
    const double ulp = std::nextafter(std::fabs(nearest), 2.0f) - std::fabs(nearest);
    ASSERT_LE(std::fabs(static_cast<double>(narrow[i]) - exact[i]), 3 * ulp) << i;
  }
  expect_same("f32[5] tanh(f32[5] constant({-0, 0, inf, -inf, nan}))",
              "f32[5] constant({-0, 0, 1, -1, nan})");
}

TEST(ElementwiseKernels, LongArraysAreTakenInChunks) {
  // 1300 elements of a narrow type with a scalar: more than two chunks.
  const std::string program =
      "HloModule m\nENTRY e {\n  i = bf16[1300] iota(), iota_dimension=0\n"
      "  c = bf16[] constant(3)\n  lo = bf16[] constant(0)\n"
      "  ROOT r = bf16[1300] clamp(lo, i, c)\n}\n";
  std::vector<double> r = as_doubles(evaluate(program)[0]);
  for (size_t i = 0; i < r.size(); ++i) ASSERT_EQ(r[i], i < 3 ? static_cast<double>(i) : 3) << i;
}

TEST(ElementwiseKernels, AValueStillHeldIsNotOverwritten) {
  const std::string program =
      "HloModule m\nENTRY e {\n  a = f32[100] iota(), iota_dimension=0\n"
      "  b = f32[100] add(a, a)\n  c = f32[100] multiply(b, b)\n"
      "  ROOT t = (f32[100], f32[100], f32[100]) tuple(a, b, c)\n}\n";
  std::vector<Buffer> r = evaluate(program);
  EXPECT_EQ(as_doubles(r[0])[7], 7);
  EXPECT_EQ(as_doubles(r[1])[7], 14);
  EXPECT_EQ(as_doubles(r[2])[7], 196);
}

TEST(ElementwiseKernels, WideRunsRoundNothing) {
  expect_same("bf16[1] add(bf16[1] constant({256}), bf16[1] constant({1}))",
              "f64[1] constant({257})", "", /*wide=*/true);
  expect_same("bf16[1] convert(f32[1] constant({1.00390625}))", "f64[1] constant({1.00390625})", "",
              /*wide=*/true);
}

}  // namespace
}  // namespace gspmd::test
