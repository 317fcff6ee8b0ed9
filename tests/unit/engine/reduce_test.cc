#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

constexpr const char* kAdd =
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n";
constexpr const char* kMax =
    "max {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] maximum(a, "
    "b)\n}\n";
// Index and value of the largest; of equals the lowest index.
constexpr const char* kArgmax =
    "argmax {\n  v = f32[] parameter(0)\n  i = s32[] parameter(1)\n  w = f32[] parameter(2)\n"
    "  j = s32[] parameter(3)\n  gt = pred[] compare(v, w), direction=GT\n"
    "  eq = pred[] compare(v, w), direction=EQ\n  lt = pred[] compare(i, j), direction=LT\n"
    "  tie = pred[] and(eq, lt)\n  left = pred[] or(gt, tie)\n  x = f32[] select(left, v, w)\n"
    "  k = s32[] select(left, i, j)\n  ROOT t = (f32[], s32[]) tuple(x, k)\n}\n";

TEST(ReduceKernel, InitEntersOnceAndEmptyGivesInit) {
  expect_same(
      "f32[2] reduce(f32[2,2] constant({{1, 2}, {3, 4}}), f32[] constant(10)), "
      "dimensions={1}, to_apply=add",
      "f32[2] constant({13, 17})", kAdd);
  expect_same(
      "f32[2] reduce(f32[2,2] constant({{1, 2}, {3, 4}}), f32[] constant(10)), "
      "dimensions={0}, to_apply=add",
      "f32[2] constant({14, 16})", kAdd);
  expect_same(
      "f32[] reduce(f32[2,2] constant({{1, 2}, {3, 4}}), f32[] constant(10)), "
      "dimensions={0,1}, to_apply=add",
      "f32[] constant(20)", kAdd);
  expect_same(
      "f32[3] reduce(f32[3,0] constant({{}, {}, {}}), f32[] constant(10)), dimensions={1}, "
      "to_apply=add",
      "f32[3] constant({10, 10, 10})", kAdd);
  expect_same(
      "f32[2] reduce(f32[2] constant({1, 2}), f32[] constant(10)), dimensions={}, "
      "to_apply=add",
      "f32[2] constant({11, 12})", kAdd);
}

// All 16 ways to reduce an array, of sizes on both sides of a chunk, against plain loops.
class ReduceAnyDims : public testing::TestWithParam<std::array<int64_t, 4>> {};

TEST_P(ReduceAnyDims, AddsAndFindsMaxima) {
  const auto& size = GetParam();
  const int64_t n = size[0] * size[1] * size[2] * size[3];
  const std::string dims = fmt::format("{},{},{},{}", size[0], size[1], size[2], size[3]);
  for (int mask = 0; mask < 16; ++mask) {
    std::string kept, reduced;
    int64_t results = 1;
    for (int d = 0; d < 4; ++d) {
      std::string& list = (mask >> d & 1) != 0 ? reduced : kept;
      std::string entry = std::to_string((mask >> d & 1) != 0 ? d : size[d]);
      list += (list.empty() ? "" : ",") + entry;
      if ((mask >> d & 1) == 0) results *= size[d];
    }
    // x[i] = i * 7919 mod 1021: distinct and in no order.
    const std::string program = fmt::format(
        "HloModule m\n{0}{1}ENTRY e {{\n  i = s32[{2}] iota(), iota_dimension=0\n"
        "  c = s32[] constant(7919)\n  cs = s32[{2}] broadcast(c), dimensions={{}}\n"
        "  m = s32[] constant(1021)\n  ms = s32[{2}] broadcast(m), dimensions={{}}\n"
        "  p = s32[{2}] multiply(i, cs)\n  q = s32[{2}] remainder(p, ms)\n"
        "  f = f32[{2}] convert(q)\n  x = f32[{3}] reshape(f)\n  ix = s32[{3}] reshape(i)\n"
        "  zero = f32[] constant(0)\n  low = f32[] constant(-inf)\n  none = s32[] "
        "constant(2147483647)\n"
        "  s = f32[{4}] reduce(x, zero), dimensions={{{5}}}, to_apply=add\n"
        "  a = (f32[{4}], s32[{4}]) reduce(x, ix, low, none), dimensions={{{5}}}, to_apply=argmax\n"
        "  v = f32[{4}] get-tuple-element(a), index=0\n  k = s32[{4}] get-tuple-element(a), "
        "index=1\n"
        "  ROOT t = (f32[{4}], f32[{4}], s32[{4}]) tuple(s, v, k)\n}}\n",
        kAdd, kArgmax, n, dims, kept, reduced);
    std::vector<Buffer> r = evaluate(program);
    std::vector<double> sums(static_cast<size_t>(results), 0), best(sums.size(), -1),
        at(sums.size(), -1);
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = i, to = 0, stride = 1;
      for (int d = 3; d >= 0; --d) {
        if ((mask >> d & 1) == 0) {
          to += rest % size[d] * stride;
          stride *= size[d];
        }
        rest /= size[d];
      }
      const auto x = static_cast<double>(i * 7919 % 1021);
      sums[to] += x;
      if (x > best[to]) {
        best[to] = x;
        at[to] = static_cast<double>(i);
      }
    }
    EXPECT_EQ(as_doubles(r[0]), sums) << reduced;
    EXPECT_EQ(as_doubles(r[1]), best) << reduced;
    EXPECT_EQ(as_doubles(r[2]), at) << reduced;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReduceAnyDims,
                         testing::Values(std::array<int64_t, 4>{3, 4, 5, 6},
                                         std::array<int64_t, 4>{2, 3, 1, 700},
                                         std::array<int64_t, 4>{600, 2, 3, 2},
                                         std::array<int64_t, 4>{1, 40, 33, 7}));

TEST(ReduceKernel, IntegersAndPredicates) {
  expect_same(
      "s32[2] reduce(s32[2,3] constant({{1, 7, 3}, {4, -5, 2}}), s32[] constant(-2147483648)), "
      "dimensions={1}, to_apply=max",
      "s32[2] constant({7, 4})", kMax);
  expect_same(
      "pred[2] reduce(pred[2,2] constant({{0, 1}, {0, 0}}), pred[] constant(0)), "
      "dimensions={1}, to_apply=any",
      "pred[2] constant({1, 0})",
      "any {\n  a = pred[] parameter(0)\n  b = pred[] parameter(1)\n  ROOT r = pred[] or(a, "
      "b)\n}\n");
  expect_same(
      "s8[] reduce(s8[3] constant({100, 100, 1}), s8[] constant(0)), dimensions={0}, to_apply=sum",
      "s8[] constant(-55)",
      "sum {\n  a = s8[] parameter(0)\n  b = s8[] parameter(1)\n  ROOT r = s8[] add(a, b)\n}\n");
}

// bf16 sums keep what each partial sum would lose, and round once: 256 + 1 + 1 is 258.
TEST(ReduceKernel, SumsOfNarrowFloatsRoundOnce) {
  expect_same(
      "bf16[] reduce(bf16[3] constant({256, 1, 1}), bf16[] constant(0)), dimensions={0}, "
      "to_apply=sum",
      "bf16[] constant(258)",
      "sum {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT r = bf16[] add(a, "
      "b)\n}\n");
}

// A reducer that is made of more than element-wise operators is called; one that swaps is no alias.
TEST(ReduceKernel, AnyReducer) {
  const std::string summing = fmt::format(
      "{}{}", kAdd,
      "by_vector {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  x = f32[1] broadcast(a), "
      "dimensions={}\n"
      "  y = f32[1] broadcast(b), dimensions={}\n  s = f32[2] concatenate(x, y), dimensions={0}\n"
      "  z = f32[] constant(0)\n  ROOT r = f32[] reduce(s, z), dimensions={0}, to_apply=add\n}\n");
  expect_same(
      "f32[2] reduce(f32[2,3] constant({{1, 2, 3}, {4, 5, 6}}), f32[] constant(1)), "
      "dimensions={1}, to_apply=by_vector",
      "f32[2] constant({7, 16})", summing);
  const std::string swap =
      "swap {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  c = s32[] parameter(2)\n"
      "  d = s32[] parameter(3)\n  ROOT r = (s32[], s32[]) tuple(b, a)\n}\n";
  expect_same(
      "(s32[], s32[]) reduce(s32[1] constant({5}), s32[1] constant({6}), s32[] constant(1), "
      "s32[] constant(2)), dimensions={0}, to_apply=swap",
      "(s32[], s32[]) tuple(s32[] constant(2), s32[] constant(1))", swap);
}

TEST(MapKernel, AppliesAComputation) {
  expect_same(
      "s32[2] map(s32[2] constant({1, 5}), s32[2] constant({3, 4})), dimensions={0}, to_apply=max",
      "s32[2] constant({3, 5})", kMax);
}

}  // namespace
}  // namespace gspmd::test
