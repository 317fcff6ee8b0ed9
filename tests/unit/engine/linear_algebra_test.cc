#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

struct Case {
  const char* actual;
  const char* expected;
};

class LinearAlgebraKernel : public testing::TestWithParam<Case> {};

TEST_P(LinearAlgebraKernel, Gives) { expect_near(GetParam().actual, GetParam().expected, 1e-6); }

// clang-format off
constexpr Case kCases[] = {
    // Only the lower triangle is read: 9 stands for anything.
    {"f32[2,2] cholesky(f32[2,2] constant({{4, 9}, {2, 5}})), lower=true", "f32[2,2] constant({{2, 0}, {1, 2}})"},
    {"f32[2,2] cholesky(f32[2,2] constant({{4, 2}, {9, 5}})), lower=false", "f32[2,2] constant({{2, 1}, {0, 2}})"},
    {"f32[2,2,2] cholesky(f32[2,2,2] constant({{{1, 0}, {2, 1}}, {{4, 0}, {2, 5}}})), lower=true", "f32[2,2,2] constant({{{nan, nan}, {nan, nan}}, {{2, 0}, {1, 2}}})"},
    {"c64[2,2] cholesky(c64[2,2] constant({{(4, 0), (9, 9)}, {(0, 2), (5, 0)}})), lower=true", "c64[2,2] constant({{(2, 0), (0, 0)}, {(0, 1), (2, 0)}})"},
    {"c64[2,2] cholesky(c64[2,2] constant({{(4, 0), (0, 2)}, {(9, 9), (5, 0)}})), lower=false", "c64[2,2] constant({{(2, 0), (0, 1)}, {(0, 0), (2, 0)}})"},
    {"f32[2,1] triangular-solve(f32[2,2] constant({{2, 9}, {1, 4}}), f32[2,1] constant({{2}, {9}})), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE", "f32[2,1] constant({{1}, {2}})"},
    {"f32[2,1] triangular-solve(f32[2,2] constant({{7, 9}, {1, 8}}), f32[2,1] constant({{2}, {9}})), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE", "f32[2,1] constant({{2}, {7}})"},
    // a^T is upper: x1 = 8/4, x0 = (4 - 1*2)/2.
    {"f32[2,1] triangular-solve(f32[2,2] constant({{2, 9}, {1, 4}}), f32[2,1] constant({{4}, {8}})), left_side=true, lower=true, unit_diagonal=false, transpose_a=TRANSPOSE", "f32[2,1] constant({{1}, {2}})"},
    // x a = b with a = {{2,0},{1,4}}: x = (1, 2) gives (4, 8).
    {"f32[1,2] triangular-solve(f32[2,2] constant({{2, 9}, {1, 4}}), f32[1,2] constant({{4, 8}})), left_side=false, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE", "f32[1,2] constant({{1, 2}})"},
    {"f32[1,2] triangular-solve(f32[2,2] constant({{2, 1}, {9, 4}}), f32[1,2] constant({{4, 8}})), left_side=false, lower=false, unit_diagonal=false, transpose_a=TRANSPOSE", "f32[1,2] constant({{1, 2}})"},
    {"c64[1,1] triangular-solve(c64[1,1] constant({{(0, 2)}}), c64[1,1] constant({{(4, 0)}})), left_side=true, lower=true, unit_diagonal=false, transpose_a=ADJOINT", "c64[1,1] constant({{(0, 2)}})"},
    {"c64[4] fft(c64[4] constant({(1,0),(2,0),(3,0),(4,0)})), fft_type=FFT, fft_length={4}", "c64[4] constant({(10,0),(-2,2),(-2,0),(-2,-2)})"},
    {"c64[4] fft(c64[4] constant({(10,0),(-2,2),(-2,0),(-2,-2)})), fft_type=IFFT, fft_length={4}", "c64[4] constant({(1,0),(2,0),(3,0),(4,0)})"},
    {"c64[3] fft(f32[4] constant({1,2,3,4})), fft_type=RFFT, fft_length={4}", "c64[3] constant({(10,0),(-2,2),(-2,0)})"},
    {"f32[4] fft(c64[3] constant({(10,7),(-2,2),(-2,5)})), fft_type=IRFFT, fft_length={4}", "f32[4] constant({1,2,3,4})"},
    {"f = c64[2] fft(f32[3] constant({5,-1,2})), fft_type=RFFT, fft_length={3}\n  ROOT r = f32[3] fft(f), fft_type=IRFFT, fft_length={3}", "f32[3] constant({5,-1,2})"},
    {"c64[2,2] fft(f32[2,2] constant({{1,2},{3,4}})), fft_type=RFFT, fft_length={2,2}", "c64[2,2] constant({{(10,0),(-2,0)},{(-4,0),(0,0)}})"},
    {"f = c64[2,2] fft(f32[2,3] constant({{1,2,3},{4,5,7}})), fft_type=RFFT, fft_length={2,3}\n  ROOT r = f32[2,3] fft(f), fft_type=IRFFT, fft_length={2,3}", "f32[2,3] constant({{1,2,3},{4,5,7}})"},
    {"(f32[2,1], f32[1], f32[1]) batch-norm-training(f32[2,1] constant({{1}, {3}}), f32[1] constant({2}), f32[1] constant({5})), epsilon=0, feature_index=1", "(f32[2,1], f32[1], f32[1]) tuple(f32[2,1] constant({{3}, {7}}), f32[1] constant({2}), f32[1] constant({1}))"},
    {"f32[2,2] batch-norm-inference(f32[2,2] constant({{1, 2}, {3, 4}}), f32[2] constant({2, 1}), f32[2] constant({5, 0}), f32[2] constant({1, 2}), f32[2] constant({3, 3})), epsilon=1, feature_index=0", "f32[2,2] constant({{5, 6}, {0.5, 1}})"},
    // x-mean = (-1, 1), v+eps = 1: doffset 3, dscale -1+2... = 1; dx = 2 (g - 1.5 - (x-mean) * 1/2).
    {"(f32[2,1], f32[1], f32[1]) batch-norm-grad(f32[2,1] constant({{1}, {3}}), f32[1] constant({2}), f32[1] constant({2}), f32[1] constant({1}), f32[2,1] constant({{1}, {2}})), epsilon=0, feature_index=1", "(f32[2,1], f32[1], f32[1]) tuple(f32[2,1] constant({{0}, {0}}), f32[1] constant({1}), f32[1] constant({3}))"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Table, LinearAlgebraKernel, testing::ValuesIn(kCases));

// Lengths with and without large primes, against the sum that defines the transform.
TEST(FftKernel, AnyLength) {
  for (int n : {1, 2, 3, 5, 6, 7, 12, 16, 30, 31, 97, 128}) {
    const std::string m = std::to_string(n);
    std::vector<Buffer> r = evaluate(
        "HloModule m\nENTRY e {\n  i = f64[" + m + "] iota(), iota_dimension=0\n  s = f64[" + m +
        "] sine(i)\n  c = c128[" + m + "] complex(i, s)\n  f = c128[" + m +
        "] fft(c), fft_type=FFT, fft_length={" + m + "}\n  b = c128[" + m +
        "] fft(f), fft_type=IFFT, fft_length={" + m + "}\n  ROOT t = (c128[" + m + "], c128[" + m +
        "], c128[" + m + "]) tuple(c, f, b)\n}\n");
    const auto* x = r[0].data<std::complex<double>>();
    const auto* f = r[1].data<std::complex<double>>();
    const auto* back = r[2].data<std::complex<double>>();
    for (int k = 0; k < n; ++k) {
      std::complex<double> sum = 0;
      for (int j = 0; j < n; ++j)
        sum += x[j] * std::polar(1.0, -2 * std::numbers::pi * (k * j % n) / n);
      EXPECT_LT(std::abs(f[k] - sum), 1e-11 * n * n) << n << " " << k;
      EXPECT_LT(std::abs(back[k] - x[k]), 1e-11 * n) << n << " " << k;
    }
  }
}

}  // namespace
}  // namespace gspmd::test
