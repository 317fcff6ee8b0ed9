#include <gtest/gtest.h>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

struct Case {
  const char* actual;
  const char* expected;
};

class RngKernel : public testing::TestWithParam<Case> {};

TEST_P(RngKernel, Gives) { expect_same(GetParam().actual, GetParam().expected); }

// clang-format off
constexpr Case kCases[] = {
    {"(u64[2], u32[5]) rng-bit-generator(u64[2] constant({1, 2})), algorithm=rng_three_fry", "(u64[2], u32[5]) tuple(u64[2] constant({1, 5}), u32[5] constant({43444564, 2150618427, 3979645651, 3745730563, 1672743891}))"},
    {"(u64[2], u32[3,2]) rng-bit-generator(u64[2] constant({1, 2})), algorithm=rng_three_fry", "(u64[2], u32[3,2]) tuple(u64[2] constant({1, 5}), u32[3,2] constant({{43444564, 2150618427}, {3979645651, 3745730563}, {1672743891, 4240503393}}))"},
    {"(u64[2], u64[2]) rng-bit-generator(u64[2] constant({1, 2})), algorithm=rng_three_fry", "(u64[2], u64[2]) tuple(u64[2] constant({1, 4}), u64[2] constant({9236835810183407956, 16087790271692313299}))"},
    {"(u64[2], u8[3]) rng-bit-generator(u64[2] constant({1, 2})), algorithm=rng_three_fry", "(u64[2], u8[3]) tuple(u64[2] constant({1, 4}), u8[3] constant({84, 59, 211}))"},
    {"(u64[2], u32[]) rng-bit-generator(u64[2] constant({1, 2})), algorithm=rng_three_fry", "(u64[2], u32[]) tuple(u64[2] constant({1, 3}), u32[] constant(43444564))"},
    {"(u64[2], u32[5]) rng-bit-generator(u64[2] constant({1, 2})), algorithm=rng_philox", "(u64[2], u32[5]) tuple(u64[2] constant({1, 4}), u32[5] constant({2100602697, 2847456232, 2074354647, 800269529, 1828267006}))"},
    {"(u64[2], u64[2]) rng-bit-generator(u64[2] constant({1, 2})), algorithm=rng_default", "(u64[2], u64[2]) tuple(u64[2] constant({1, 3}), u64[2] constant({12229731395331991369, 3437131457114678231}))"},
    {"(u64[3], u32[5]) rng-bit-generator(u64[3] constant({1, 2, 3})), algorithm=rng_philox", "(u64[3], u32[5]) tuple(u64[3] constant({1, 4, 3}), u32[5] constant({4031113034, 1366700262, 495645701, 3051723414, 89414891}))"},
    // The low word of the counter overflows into the high one.
    {"g = (u64[3], u32[5]) rng-bit-generator(u64[3] constant({1, 18446744073709551615, 2})), algorithm=rng_philox\n  s = u64[3] get-tuple-element(g), index=0\n  b = u32[5] get-tuple-element(g), index=1\n  c = u32[1] slice(b), slice={[4:5]}\n  ROOT t = (u64[3], u32[1]) tuple(s, c)", "g = (u64[3], u32[1]) rng-bit-generator(u64[3] constant({1, 0, 3})), algorithm=rng_philox\n  s = u64[3] get-tuple-element(g), index=0\n  b = u32[1] get-tuple-element(g), index=1\n  ROOT t = (u64[3], u32[1]) tuple(s, b)"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Vectors, RngKernel, testing::ValuesIn(kCases));

}  // namespace
}  // namespace gspmd::test
