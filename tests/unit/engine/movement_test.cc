#include <gtest/gtest.h>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

struct Case {
  const char* actual;
  const char* expected;
};

class MovementKernel : public testing::TestWithParam<Case> {};

TEST_P(MovementKernel, Gives) { expect_same(GetParam().actual, GetParam().expected); }

// clang-format off
constexpr Case kCases[] = {
    {"s32[2,3] broadcast(s32[2] constant({1, 2})), dimensions={0}", "s32[2,3] constant({{1, 1, 1}, {2, 2, 2}})"},
    {"s32[2,3] broadcast(s32[3] constant({1, 2, 3})), dimensions={1}", "s32[2,3] constant({{1, 2, 3}, {1, 2, 3}})"},
    {"f32[3] broadcast(f32[] constant(7)), dimensions={}", "f32[3] constant({7, 7, 7})"},
    {"s32[3,2] transpose(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})), dimensions={1,0}", "s32[3,2] constant({{1, 4}, {2, 5}, {3, 6}})"},
    {"s8[2,2,2] transpose(s8[2,2,2] constant({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})), dimensions={2,0,1}", "s8[2,2,2] constant({{{1, 3}, {5, 7}}, {{2, 4}, {6, 8}}})"},
    {"s32[3,2] reshape(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}}))", "s32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})"},
    {"s32[2] slice(s32[5] constant({0, 1, 2, 3, 4})), slice={[1:4:2]}", "s32[2] constant({1, 3})"},
    {"s32[1,2] slice(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})), slice={[1:2], [1:3]}", "s32[1,2] constant({{5, 6}})"},
    {"s32[2,3] reverse(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})), dimensions={1}", "s32[2,3] constant({{3, 2, 1}, {6, 5, 4}})"},
    {"s32[2,3] reverse(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})), dimensions={0,1}", "s32[2,3] constant({{6, 5, 4}, {3, 2, 1}})"},
    {"s32[2,3] concatenate(s32[2,1] constant({{1}, {2}}), s32[2,2] constant({{3, 4}, {5, 6}})), dimensions={1}", "s32[2,3] constant({{1, 3, 4}, {2, 5, 6}})"},
    {"s32[3] concatenate(s32[1] constant({1}), s32[2] constant({3, 4})), dimensions={0}", "s32[3] constant({1, 3, 4})"},
    {"s32[7] pad(s32[4] constant({0, 1, 2, 3}), s32[] constant(9)), padding=-1_-2_2", "s32[7] constant({9, 9, 1, 9, 9, 2, 9})"},
    {"s32[5] pad(s32[2] constant({1, 2}), s32[] constant(9)), padding=1_2", "s32[5] constant({9, 1, 2, 9, 9})"},
    {"s32[2] pad(s32[4] constant({1, 2, 3, 4}), s32[] constant(9)), padding=-1_-1", "s32[2] constant({2, 3})"},
    {"s32[3] pad(s32[0] constant({}), s32[] constant(9)), padding=1_2_5", "s32[3] constant({9, 9, 9})"},
    {"s32[1,3] pad(s32[2,2] constant({{1, 2}, {3, 4}}), s32[] constant(9)), padding=-1_0x0_1", "s32[1,3] constant({{3, 4, 9}})"},
    {"s32[2,3] iota(), iota_dimension=1", "s32[2,3] constant({{0, 1, 2}, {0, 1, 2}})"},
    {"f32[2,3] iota(), iota_dimension=0", "f32[2,3] constant({{0, 0, 0}, {1, 1, 1}})"},
    {"c64[2] iota(), iota_dimension=0", "c64[2] constant({(0, 0), (1, 0)})"},
    {"u2[6] iota(), iota_dimension=0", "u2[6] constant({0, 1, 2, 3, 0, 1})"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Table, MovementKernel, testing::ValuesIn(kCases));

// Every permutation of a [5,40,3,33] array, so that tiles and joined dimensions are met.
TEST(MovementKernels, TransposesInAnyOrder) {
  DimVector order = {0, 1, 2, 3};
  const int64_t sizes[] = {5, 40, 3, 33};
  do {
    std::string shape, permutation, indices;
    for (int64_t d : order) {
      shape += (shape.empty() ? "" : ",") + std::to_string(sizes[d]);
      permutation += (permutation.empty() ? "" : ",") + std::to_string(d);
    }
    std::vector<Buffer> r = evaluate(
        "HloModule m\nENTRY e {\n  i = s32[19800] iota(), iota_dimension=0\n"
        "  x = s32[5,40,3,33] reshape(i)\n  ROOT t = s32[" +
        shape + "] transpose(x), dimensions={" + permutation + "}\n}\n");
    const int32_t* at = r[0].data<int32_t>();
    const int64_t strides[] = {3960, 99, 33, 1};
    for (int64_t a = 0; a < sizes[order[0]]; ++a)
      for (int64_t b = 0; b < sizes[order[1]]; ++b)
        for (int64_t c = 0; c < sizes[order[2]]; ++c)
          for (int64_t d = 0; d < sizes[order[3]]; ++d)
            ASSERT_EQ(*at++, a * strides[order[0]] + b * strides[order[1]] + c * strides[order[2]] +
                                 d * strides[order[3]])
                << permutation;
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace gspmd::test
