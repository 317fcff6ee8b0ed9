// `check` where values are chosen by comparison: what a last bit decides is decided otherwise in
// the reference, and only what follows from it is excused.

#include "gspmd/engine/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd {
namespace {

constexpr char kComputations[] = R"(
argmax { v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  q = f32[] select(p, v, w)
  k = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(q, k) }
less { v = f32[] parameter(0)
  w = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT p = pred[] compare(v, w), direction=LT }
at_least { v = f32[] parameter(0)
  w = f32[] parameter(1)
  ROOT p = pred[] compare(v, w), direction=GE }
sum { v = f32[] parameter(0)
  w = f32[] parameter(1)
  ROOT s = f32[] add(v, w) }
)";

// b is a little less than 0.3 x. So is what the program for many devices takes for a; on one device
// a = 3 (0.1 x) is rounded to what is next to b.
std::string program(const std::string& a, const std::string& choice) {
  return std::string("HloModule m, num_partitions=2\n") + kComputations +
         "ENTRY e { x = f32[16] parameter(0)\n"
         "three = f32[16] broadcast(f32[] constant(3)), dimensions={}\n"
         "tenth = f32[16] broadcast(f32[] constant(0.1)), dimensions={}\n"
         "less = f32[16] broadcast(f32[] constant(0.29999998)), dimensions={}\n"
         "zero = f32[16] broadcast(f32[] constant(0)), dimensions={}\n"
         "one = f32[16] broadcast(f32[] constant(1)), dimensions={}\n"
         "b = f32[16] multiply(x, less)\n"
         "x01 = f32[16] multiply(x, tenth)\n" +
         a +
         "a1 = f32[16,1] reshape(a)\n"
         "b1 = f32[16,1] reshape(b)\n"
         "ab = f32[16,2] concatenate(a1, b1), dimensions={1}\n"
         "place = s32[16,2] iota(), iota_dimension=1\n" +
         choice + "}\n";
}
constexpr char kOne[] = "a = f32[16] multiply(x01, three)\n";
constexpr char kMany[] = "a = f32[16] multiply(x, less)\n";

struct Outcome {
  CheckReport report;  // its shapes and shardings died with the programs
  std::string text;
};

Outcome check_programs(const std::string& one, const std::string& many) {
  auto read = [](const std::string& text) {
    auto m = parse_hlo(std::make_shared<Context>(), text, "test.hlo");
    verify(*m);
    return m;
  };
  auto original = read(one);
  Compiled c = partition(read(many), {});
  RunOptions run;
  run.num_devices = 2;
  const int64_t size = 16;
  Buffer x(ElementType::kF32, {size});  // 1/4, -1/2, 1, -2, 1/4, ...: a and b are rounded alike
  for (int i = 0; i < size; ++i) {
    x.mutable_data<float>()[i] = std::ldexp(i % 2 == 0 ? 1.0F : -1.0F, i % 4 - 2);
  }
  CheckReport report =
      check({*original, *c.module, c.parameter_shardings, c.result_shardings, {}, 0, {x}}, run);
  return {report, report.to_text(true)};
}

class NearTies : public testing::TestWithParam<const char*> {};

TEST_P(NearTies, AreDecidedOtherwise) {
  auto [r, text] = check_programs(program(kOne, GetParam()), program(kMany, GetParam()));
  EXPECT_TRUE(r.agrees()) << text;
  EXPECT_FALSE(r.decided.empty());
  EXPECT_EQ(r.explained, 1);
  EXPECT_THAT(text, testing::HasSubstr("decided otherwise"));
}

// The same near ties, and a fault that they do not explain.
TEST_P(NearTies, ExcuseNothingElse) {
  std::string faulty = GetParam();
  const size_t root = faulty.find("ROOT r = ");
  const std::string shape = faulty.substr(root + 9, faulty.find(' ', root + 9) - root - 9);
  const std::string type = shape.substr(0, 3), dims = shape.substr(3);
  faulty.replace(root, 9, "right = ");
  faulty += "where = s32" + dims + " iota(), iota_dimension=0\n" + "five = s32" + dims +
            " broadcast(s32[] constant(5)), dimensions={}\n" + "fifth = pred" + dims +
            " compare(where, five), direction=EQ\n" + "wrong = " + shape + " convert(fifth)\n" +
            "two = " + shape + " broadcast(" + type + "[] constant(2)), dimensions={}\n" +
            "off = " + shape + " multiply(wrong, two)\n" + "ROOT r = " + shape +
            " add(right, off)\n";
  auto [r, text] = check_programs(program(kOne, GetParam()), program(kMany, faulty));
  EXPECT_FALSE(r.agrees());
  EXPECT_GT(r.near_ties, 0);
  EXPECT_THAT(text, testing::HasSubstr("none explained it"));
}

INSTANTIATE_TEST_SUITE_P(
    Check, NearTies,
    testing::Values(
        "above = pred[16] compare(a, b), direction=GT\n"
        "ROOT r = f32[16] select(above, one, zero)\n",
        "d = f32[16] subtract(a, b)\n"
        "ROOT r = f32[16] floor(d)\n",
        "low = f32[] constant(-inf)\n"
        "none = s32[] constant(0)\n"
        "best = (f32[16], s32[16]) reduce(ab, place, low, none), dimensions={1}, to_apply=argmax\n"
        "ROOT r = s32[16] get-tuple-element(best), index=1\n",
        "sorted = (f32[16,2], s32[16,2]) sort(ab, place), dimensions={1}, to_apply=less\n"
        "ROOT r = s32[16,2] get-tuple-element(sorted), index=1\n",
        "gradient = f32[16,1] reshape(one)\n"
        "start = f32[] constant(0)\n"
        "ROOT r = f32[16,2] select-and-scatter(ab, gradient, start), "
        "window={size=1x2 stride=1x2}, select=at_least, scatter=sum\n"));

// 0.3 lies between the bounds, far from both.
TEST(Check, LargeMarginsDecide) {
  auto above = [](const char* bound) {
    return std::string("bound = f32[16] broadcast(f32[] constant(") + bound +
           ")), dimensions={}\n"
           "above = pred[16] compare(a, bound), direction=GT\n"
           "ROOT r = f32[16] select(above, one, zero)\n";
  };
  EXPECT_TRUE(
      check_programs(program(kOne, above("0.2")), program(kMany, above("0.2"))).report.agrees());
  auto [r, text] = check_programs(program(kOne, above("0.2")), program(kMany, above("0.4")));
  EXPECT_FALSE(r.agrees()) << text;
}

// x is exact: equal numbers are equal on all devices.
TEST(Check, ExactNumbersDecide) {
  auto above = [](const char* direction) {
    return std::string("above = pred[16] compare(x, one), direction=") + direction +
           "\nROOT r = f32[16] select(above, one, zero)\n";
  };
  auto [r, text] = check_programs(program(kOne, above("GE")), program(kMany, above("GT")));
  EXPECT_FALSE(r.agrees()) << text;
  EXPECT_EQ(r.near_ties, 0);
}

}  // namespace
}  // namespace gspmd
