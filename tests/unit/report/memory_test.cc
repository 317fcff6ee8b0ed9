#include "gspmd/report/memory.h"

#include <gtest/gtest.h>

#include "gspmd/formats/hlo_text.h"

namespace gspmd {
namespace {

struct Case {
  const char* what;
  const char* text;
  int64_t bytes;
};

int64_t peak(const char* text) {
  return peak_bytes(*parse_hlo(std::make_shared<Context>(), text, "program.hlo"));
}

// Every f32[4] takes 16 bytes.
const Case kStraight[] = {
    {"a parameter is held to the end", R"(HloModule m
ENTRY main {
  p = f32[4] parameter(0)
  a = f32[4] add(p, p)
  ROOT b = f32[4] multiply(a, a)
})",
     32},
    {"a donated one is overwritten", R"(HloModule m, buffer_donor={ (0, {}) }
ENTRY main {
  p = f32[4] parameter(0)
  a = f32[4] add(p, p)
  ROOT b = f32[4] multiply(a, a)
})",
     16},
    {"an aliased one too", R"(HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY main {
  p = f32[4] parameter(0)
  ROOT a = f32[4] add(p, p)
})",
     16},
    {"a transpose does not overwrite", R"(HloModule m
ENTRY main {
  p = f32[2,2] parameter(0)
  a = f32[2,2] transpose(p), dimensions={1,0}
  b = f32[2,2] transpose(a), dimensions={1,0}
  ROOT c = f32[2,2] transpose(b), dimensions={1,0}
})",
     48},
    {"tuples, reshapes name memory", R"(HloModule m
ENTRY main {
  p = f32[4] parameter(0)
  a = f32[4] negate(p)
  t = (f32[4], f32[4]) tuple(a, p)
  g = f32[4] get-tuple-element(t), index=0
  ROOT r = f32[2,2] reshape(g)
})",
     32},
    {"results are held", R"(HloModule m
ENTRY main {
  p = f32[4] parameter(0)
  a = f32[4] negate(p)
  b = f32[4] exponential(p)
  c = f32[4] abs(b)
  ROOT t = (f32[4], f32[4]) tuple(a, c)
})",
     48},
    {"what nobody reads goes at once", R"(HloModule m
ENTRY main {
  p = f32[4] parameter(0)
  a = f32[400] broadcast(f32[] constant(1)), dimensions={}
  ROOT b = f32[4] negate(p)
})",
     16 + 4 + 1600},
    {"a call's inside", R"(HloModule m
inside {
  q = f32[4] parameter(0)
  big = f32[8] concatenate(q, q), dimensions={0}
  ROOT s = f32[4] slice(big), slice={[2:6]}
}
ENTRY main {
  p = f32[4] parameter(0)
  ROOT r = f32[4] call(p), to_apply=inside
})",
     16 + 32 + 16},
};

TEST(PeakBytes, StraightLine) {
  for (const Case& c : kStraight) EXPECT_EQ(peak(c.text), c.bytes) << c.what;
}

// Two products of 64 bytes, each needed for a number only: made one after the other, one is held.
constexpr const char* kTwoProducts = R"(HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  p = f32[4] parameter(0)
  zero = f32[] constant(0)
  a = f32[4,4] broadcast(p), dimensions={0}
  b = f32[4,4] broadcast(p), dimensions={1}
  c = f32[] reduce(a, zero), dimensions={0,1}, to_apply=sum
  d = f32[] reduce(b, zero), dimensions={0,1}, to_apply=sum
  ROOT r = f32[] add(c, d)
})";

TEST(LeastPeakBytes, ChoosesTheOrder) {
  EXPECT_EQ(peak(kTwoProducts), 16 + 4 + 64 + 64 + 4);
  EXPECT_EQ(least_peak_bytes(*parse_hlo(std::make_shared<Context>(), kTwoProducts, "m.hlo")),
            16 + 4 + 64 + 4 + 4);
}

// Control dependences bind every order.
TEST(LeastPeakBytes, KeepsControlDependences) {
  std::string text = kTwoProducts;
  const std::string_view first = "c = f32[] reduce(a, zero), dimensions={0,1}, to_apply=sum";
  text.insert(text.find(first) + first.size(), ", control-predecessors={b}");
  EXPECT_EQ(least_peak_bytes(*parse_hlo(std::make_shared<Context>(), text, "m.hlo")),
            16 + 4 + 64 + 64 + 4);
}

// State (s32, f32[4] updated in place, f32[4] passed through): 4 + 16 + 16 bytes and the
// condition's pred.
std::string loop(const char* header, const char* result) {
  return std::string("HloModule m") + header + R"(
condition {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  w = f32[4] get-tuple-element(s), index=2
  y = f32[4] add(x, w)
  j = s32[] add(i, i)
  ROOT t = (s32[], f32[4], f32[4]) tuple(j, y, w)
}
ENTRY main {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[4], f32[4]) tuple(zero, p, q)
  l = (s32[], f32[4], f32[4]) while(t), condition=condition, body=body
  ROOT r = f32[4] )" +
         result + "\n}\n";
}

TEST(PeakBytes, Loops) {
  // Copied: p is the caller's. While the condition runs: p, q, the copy of p, the counter, its
  // limit and the pred.
  EXPECT_EQ(peak(loop("", "get-tuple-element(l), index=1").c_str()), 16 + 16 + 16 + 4 + 4 + 1);
  // Handed over.
  EXPECT_EQ(peak(loop(", buffer_donor={ (0, {}) }", "get-tuple-element(l), index=1").c_str()),
            16 + 16 + 4 + 4 + 1);
  // What the loop passes through is not copied: the result is q itself.
  EXPECT_EQ(
      peak(loop(", buffer_donor={ (0, {}), (1, {}) }", "get-tuple-element(l), index=2").c_str()),
      16 + 16 + 4 + 4 + 1);
}

}  // namespace
}  // namespace gspmd
