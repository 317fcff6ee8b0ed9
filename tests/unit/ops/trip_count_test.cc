#include "gspmd/ops/trip_count.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gspmd/formats/hlo_text.h"

namespace gspmd {
namespace {

// A loop whose state is (counter, limit, x), with the given start, condition (its root is `c`) and
// extra attributes.
std::string loop(std::string_view start, std::string_view condition,
                 std::string_view attributes = "") {
  return fmt::format(R"(HloModule m
inner {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT lt = pred[] compare(a, b), direction=LT
}}
condition {{
  s = (s32[], s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ten = s32[] constant(10)
  {}
}}
body {{
  s = (s32[], s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], s32[], f32[4]) tuple(j, n, x)
}}
ENTRY main {{
  x = f32[4] parameter(0)
  p = s32[] parameter(1)
  seven = s32[] constant(7)
  start = {}
  t = (s32[], s32[], f32[4]) tuple(start, seven, x)
  ROOT w = (s32[], s32[], f32[4]) while(t), condition=condition, body=body{}
}}
)",
                     condition, start, attributes);
}

struct Case {
  const char* what;
  std::string text;
  std::optional<int64_t> trips;
};

TEST(TripCount, Recognised) {
  const char* kLess = "ROOT c = pred[] compare(i, ten), direction=LT";
  const char* kZero = "s32[] constant(0)";
  const Case kCases[] = {
      {"less than a constant", loop(kZero, kLess), 10},
      {"from three", loop("s32[] constant(3)", kLess), 7},
      {"from beyond the end", loop("s32[] constant(12)", kLess), 0},
      {"a start that is not constant counts as 0", loop("s32[] negate(p)", kLess), 10},
      {"behind a copy", loop("s32[] copy(seven)", kLess), 3},
      {"less or equal", loop(kZero, "ROOT c = pred[] compare(i, ten), direction=LE"), 11},
      {"mirrored", loop(kZero, "ROOT c = pred[] compare(ten, i), direction=GT"), 10},
      {"limit in the state", loop(kZero, "ROOT c = pred[] compare(i, n), direction=LT"), 7},
      {"not equal", loop(kZero, "ROOT c = pred[] compare(i, ten), direction=NE"), std::nullopt},
      {"downwards", loop(kZero, "ROOT c = pred[] compare(i, ten), direction=GT"), std::nullopt},
      {"not the counter itself",
       loop(kZero, "j = s32[] negate(i)\n  ROOT c = pred[] compare(j, ten), direction=LT"),
       std::nullopt},
      {"operands of a call", loop(kZero, "ROOT c = pred[] call(i, ten), to_apply=inner"),
       std::nullopt},
      {"said",
       loop(kZero, "ROOT c = pred[] compare(i, ten), direction=NE",
            R"(, backend_config={"known_trip_count":{"n":"12"}})"),
       12},
      {"said goes first", loop(kZero, kLess, R"(, backend_config={"known_trip_count":{"n":"4"}})"),
       4},
  };
  for (const Case& c : kCases) {
    auto m = parse_hlo(std::make_shared<Context>(), c.text, "loop.hlo");
    EXPECT_EQ(trip_count(*m->entry()->root()), c.trips) << c.what;
  }
}

}  // namespace
}  // namespace gspmd
