#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

constexpr const char* kAdd =
    "add {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] add(a, b)\n}\n";
constexpr const char* kSelect =
    "ge {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), "
    "direction=GE\n}\n"
    "add {\n  c = f32[] parameter(0)\n  d = f32[] parameter(1)\n  ROOT s = f32[] add(c, d)\n}\n";

struct Case {
  const char* actual;
  const char* expected;
  const char* computations = kAdd;
};

class WindowKernel : public testing::TestWithParam<Case> {};

TEST_P(WindowKernel, Gives) {
  expect_same(GetParam().actual, GetParam().expected, GetParam().computations);
}

// clang-format off
constexpr Case kCases[] = {
    {"s32[4] reduce-window(s32[3] constant({1,2,3}), s32[] constant(1)), window={size=2 pad=1_1}, to_apply=add", "s32[4] constant({2, 4, 6, 4})"},
    {"s32[2] reduce-window(s32[5] constant({1,2,3,4,5}), s32[] constant(0)), window={size=2 stride=2}, to_apply=add", "s32[2] constant({3, 7})"},
    {"s32[3] reduce-window(s32[5] constant({1,2,3,4,5}), s32[] constant(0)), window={size=2 rhs_dilate=2}, to_apply=add", "s32[3] constant({4, 6, 8})"},
    {"s32[4] reduce-window(s32[3] constant({1,2,3}), s32[] constant(0)), window={size=2 lhs_dilate=2}, to_apply=add", "s32[4] constant({1, 2, 2, 3})"},
    {"s32[3] reduce-window(s32[3] constant({1,2,3}), s32[] constant(0)), window={size=3 pad=2_0}, to_apply=add", "s32[3] constant({1, 3, 6})"},
    {"s32[3] reduce-window(s32[3] constant({1,2,3}), s32[] constant(10)), window={size=3 pad=0_2}, to_apply=add", "s32[3] constant({16, 15, 13})"},
    {"s32[3] reduce-window(s32[3] constant({1,2,3}), s32[] constant(10)), window={size=5 pad=4_0}, to_apply=add", "s32[3] constant({11, 13, 16})"},
    {"s32[3,2] reduce-window(s32[3,2] constant({{1,2},{3,4},{5,6}}), s32[] constant(0)), window={size=3x1 pad=2_0x0_0}, to_apply=add", "s32[3,2] constant({{1,2},{4,6},{9,12}})"},
    {"s32[3,2] reduce-window(s32[3,2] constant({{1,2},{3,4},{5,6}}), s32[] constant(0)), window={size=3x1 pad=0_2x0_0}, to_apply=add", "s32[3,2] constant({{9,12},{8,10},{5,6}})"},
    {"s32[3] reduce-window(s32[3] constant({1,2,3}), s32[] constant(0)), window={size=2 pad=1_0}, to_apply=add", "s32[3] constant({1, 3, 5})"},
    {"s32[1,2] reduce-window(s32[2,3] constant({{1,2,3},{4,5,6}}), s32[] constant(0)), window={size=2x2}, to_apply=add", "s32[1,2] constant({{12, 16}})"},
    {"s32[0] reduce-window(s32[1] constant({1}), s32[] constant(0)), window={size=2}, to_apply=add", "s32[0] constant({})"},
    // stride 3 over holes of 2: positions 0, 3, 6 of 1 . 2 . 3 . 4
    {"s32[3] reduce-window(s32[4] constant({1,2,3,4}), s32[] constant(0)), window={size=1 stride=3 lhs_dilate=2}, to_apply=add", "s32[3] constant({1, 0, 4})"},
    // GE keeps the first of equals; the window over padding alone gives nothing.
    {"f32[5] select-and-scatter(f32[5] constant({1, 3, 3, 2, 7}), f32[2] constant({10, 20}), f32[] constant(0)), window={size=2 stride=2}, select=ge, scatter=add", "f32[5] constant({0, 10, 20, 0, 0})", kSelect},
    {"f32[3] select-and-scatter(f32[3] constant({1, 5, 2}), f32[2] constant({10, 20}), f32[] constant(1)), window={size=2}, select=ge, scatter=add", "f32[3] constant({1, 31, 1})", kSelect},
    {"f32[2] select-and-scatter(f32[2] constant({nan, 5}), f32[1] constant({10}), f32[] constant(0)), window={size=2}, select=ge, scatter=add", "f32[2] constant({0, 10})", kSelect},
    {"f32[2] select-and-scatter(f32[2] constant({4, 5}), f32[3] constant({1, 2, 3}), f32[] constant(0)), window={size=2 stride=2 pad=2_2}, select=ge, scatter=add", "f32[2] constant({0, 2})", kSelect},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Table, WindowKernel, testing::ValuesIn(kCases));

// A reducer that keeps its second argument shows the order: the last element of each window.
TEST(WindowKernels, ElementsComeInOrder) {
  expect_same(
      "s32[2,2] reduce-window(s32[3,3] constant({{1,2,3},{4,5,6},{7,8,9}}), s32[] constant(0)), "
      "window={size=2x2}, to_apply=second",
      "s32[2,2] constant({{5, 6}, {8, 9}})",
      "second {\n  a = s32[] parameter(0)\n  ROOT b = s32[] parameter(1)\n}\n");
}

// Long windows of every length, stride and padding along either dimension, against plain sums.
TEST(WindowKernels, LongWindowsAreCutIntoBlocks) {
  constexpr int64_t kN = 29;
  for (int dim : {0, 1}) {
    for (int64_t size : {8, 9, 28, 29, 40}) {
      for (int64_t stride : {1, 3}) {
        for (int64_t low : {int64_t{0}, int64_t{5}, size - 1, size + 2, int64_t{-3}}) {
          for (int64_t high : {int64_t{0}, size - 1, int64_t{-2}}) {
            const int64_t room = kN + low + high;
            const int64_t results = room < size ? 0 : (room - size) / stride + 1;
            const bool first = dim == 0;
            const std::string text = fmt::format(
                "i = s32[58] iota(), iota_dimension=0\n  x = s32[{}] reshape(i)\n"
                "  z = s32[] constant(7)\n  ROOT r = s32[{}] reduce-window(x, z), "
                "window={{size={} stride={} pad={}}}, to_apply=add",
                first ? "29,2" : "2,29",
                first ? fmt::format("{},2", results) : fmt::format("2,{}", results),
                first ? fmt::format("{}x1", size) : fmt::format("1x{}", size),
                first ? fmt::format("{}x1", stride) : fmt::format("1x{}", stride),
                first ? fmt::format("{}_{}x0_0", low, high) : fmt::format("0_0x{}_{}", low, high));
            const std::vector<double> r = as_doubles(evaluate_expression(text, kAdd)[0]);
            for (int64_t other = 0; other < 2; ++other) {
              for (int64_t k = 0; k < results; ++k) {
                double sum = 7;
                for (int64_t i = std::max<int64_t>(k * stride - low, 0);
                     i < std::min(k * stride - low + size, kN); ++i) {
                  sum += static_cast<double>(first ? i * 2 + other : other * kN + i);
                }
                const int64_t at = first ? k * 2 + other : other * results + k;
                ASSERT_EQ(r[static_cast<size_t>(at)], sum) << text << " at " << at;
              }
            }
          }
        }
      }
    }
  }
}

TEST(WindowKernels, LongRows) {
  const std::string program =
      fmt::format("HloModule m\n{}{}", kAdd,
                  "ENTRY e {\n  x = s32[1500] iota(), iota_dimension=0\n  z = s32[] constant(0)\n"
                  "  ROOT r = s32[1500] reduce-window(x, z), window={size=1500 pad=1499_0}, "
                  "to_apply=add\n}\n");
  std::vector<double> r = as_doubles(evaluate(program)[0]);
  for (size_t i = 0; i < r.size(); ++i) ASSERT_EQ(r[i], static_cast<double>(i * (i + 1) / 2));
}

}  // namespace
}  // namespace gspmd::test
