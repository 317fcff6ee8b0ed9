#include <gtest/gtest.h>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

constexpr const char* kLess =
    "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), "
    "direction=LT\n}\n";
// NaN last, -0 equal to +0, as JAX sorts.
constexpr const char* kCanonical =
    "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  i = s32[] parameter(2)\n  j = "
    "s32[] parameter(3)\n"
    "  z = f32[] constant(0)\n  n = f32[] constant(nan)\n  az = pred[] compare(a, z), "
    "direction=EQ\n"
    "  a1 = f32[] select(az, z, a)\n  an = pred[] compare(a, a), direction=NE\n  a2 = f32[] "
    "select(an, n, a1)\n"
    "  bz = pred[] compare(b, z), direction=EQ\n  b1 = f32[] select(bz, z, b)\n"
    "  bn = pred[] compare(b, b), direction=NE\n  b2 = f32[] select(bn, n, b1)\n"
    "  ROOT r = pred[] compare(a2, b2), direction=LT, type=TOTALORDER\n}\n";
// By the first operand, then downwards by the second.
constexpr const char* kTwoKeys =
    "less {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  c = s32[] parameter(2)\n  d = "
    "s32[] parameter(3)\n"
    "  lt = pred[] compare(a, b), direction=LT\n  eq = pred[] compare(a, b), direction=EQ\n"
    "  gt = pred[] compare(c, d), direction=GT\n  tie = pred[] and(eq, gt)\n  ROOT r = pred[] "
    "or(lt, tie)\n}\n";
// Not made of element-wise operators: called for each pair.
constexpr const char* kCalled =
    "less {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  x = s32[2] broadcast(a), "
    "dimensions={}\n"
    "  y = s32[2] broadcast(b), dimensions={}\n  c = pred[2] compare(x, y), direction=LT\n"
    "  s = pred[1] slice(c), slice={[0:1]}\n  ROOT r = pred[] reshape(s)\n}\n";

TEST(SortKernel, Floats) {
  expect_same("f32[5] sort(f32[5] constant({3, -inf, 2, inf, -1})), dimensions={0}, to_apply=less",
              "f32[5] constant({-inf, -1, 2, 3, inf})", kLess);
  expect_same(
      "f32[2,3] sort(f32[2,3] constant({{3, 1, 2}, {0, 5, -1}})), dimensions={1}, to_apply=less",
      "f32[2,3] constant({{1, 2, 3}, {-1, 0, 5}})", kLess);
  expect_same(
      "f32[2,3] sort(f32[2,3] constant({{3, 1, 2}, {0, 5, -1}})), dimensions={0}, to_apply=less",
      "f32[2,3] constant({{0, 1, -1}, {3, 5, 2}})", kLess);
}

TEST(SortKernel, NanLastAndZerosStable) {
  expect_same(
      "(f32[6], s32[6]) sort(f32[6] constant({nan, 0, -0, -nan, 1, -1}), "
      "s32[6] constant({0, 1, 2, 3, 4, 5})), dimensions={0}, is_stable=true, to_apply=less",
      "(f32[6], s32[6]) tuple(f32[6] constant({-1, 0, -0, 1, nan, nan}), s32[6] constant({5, 1, 2, "
      "4, 0, 3}))",
      kCanonical);
}

TEST(SortKernel, AnyComparator) {
  expect_same(
      "(s32[4], s32[4]) sort(s32[4] constant({2, 1, 2, 1}), s32[4] constant({1, 2, 3, 4})), "
      "dimensions={0}, "
      "to_apply=less",
      "(s32[4], s32[4]) tuple(s32[4] constant({1, 1, 2, 2}), s32[4] constant({4, 2, 3, 1}))",
      kTwoKeys);
  expect_same("s32[4] sort(s32[4] constant({2, 7, -2, 1})), dimensions={0}, to_apply=less",
              "s32[4] constant({-2, 1, 2, 7})", kCalled);
  expect_same("u32[3] sort(u32[3] constant({4294967295, 1, 3})), dimensions={0}, to_apply=more",
              "u32[3] constant({4294967295, 3, 1})",
              "more {\n  a = u32[] parameter(0)\n  b = u32[] parameter(1)\n"
              "  ROOT r = pred[] compare(a, b), direction=GT\n}\n");
}

TEST(SortKernel, TopK) {
  expect_same(
      "(f32[7], s32[7]) topk(f32[7] constant({1, nan, -0, 0, 5, 5, -inf})), k=7, largest=true",
      "(f32[7], s32[7]) tuple(f32[7] constant({nan, 5, 5, 1, 0, -0, -inf}), s32[7] constant({1, 4, "
      "5, 0, 3, 2, 6}))");
  expect_same(
      "(f32[4], s32[4]) topk(f32[4] constant({0, nan, -0, 5})), k=4, largest=false",
      "(f32[4], s32[4]) tuple(f32[4] constant({-0, 0, 5, nan}), s32[4] constant({2, 0, 3, 1}))");
  expect_same(
      "(s32[2,1], s32[2,1]) topk(s32[2,3] constant({{1, 7, 7}, {-1, -5, -3}})), k=1, largest=true",
      "(s32[2,1], s32[2,1]) tuple(s32[2,1] constant({{7}, {-1}}), s32[2,1] constant({{1}, {0}}))");
}

TEST(ScanKernel, RunsAlongADimension) {
  const std::string body =
      "body {\n  x = s32[2] parameter(0)\n  c = s32[2] parameter(1)\n  s = s32[2] add(x, c)\n"
      "  ROOT t = (s32[2], s32[2]) tuple(s, s)\n}\n";
  expect_same(
      "(s32[2,3], s32[2]) scan(s32[2,3] constant({{1,2,3},{4,5,6}}), s32[2] constant({10,20})), "
      "dimensions={1}, num_carries=1, to_apply=body",
      "(s32[2,3], s32[2]) tuple(s32[2,3] constant({{11,13,16},{24,29,35}}), s32[2] "
      "constant({16,35}))",
      body);
  expect_same(
      "(s32[2,3], s32[2]) scan(s32[2,3] constant({{1,2,3},{4,5,6}}), s32[2] constant({10,20})), "
      "dimensions={1}, num_carries=1, is_reverse=true, to_apply=body",
      "(s32[2,3], s32[2]) tuple(s32[2,3] constant({{16,15,13},{35,31,26}}), s32[2] "
      "constant({16,35}))",
      body);
}

}  // namespace
}  // namespace gspmd::test
