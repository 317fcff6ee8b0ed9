#include "gspmd/formats/proto/hlo_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

using testing::HasSubstr;

std::unique_ptr<Module> text(std::string program) {
  auto m = parse_hlo(std::make_shared<Context>(), std::move(program), "test.hlo");
  verify(*m);
  return m;
}

std::unique_ptr<Module> message(std::string bytes, std::vector<std::string>* warnings = nullptr) {
  auto m = parse_hlo_proto(std::make_shared<Context>(), std::move(bytes), "test.pb", warnings);
  verify(*m);
  return m;
}

void expect_same(const std::string& program) {
  auto m = text(program);
  EXPECT_EQ(print_hlo(*message(print_hlo_proto(*m))), print_hlo(*m));
}

// A message with one field 1 that holds `inner`.
std::string wrap(const std::string& inner) {
  std::string out = "\n";
  for (size_t n = inner.size(); true; n >>= 7) {
    out.push_back(static_cast<char>(n < 128 ? n : (n & 127) | 128));
    if (n < 128) return out + inner;
  }
}

const std::string kLoop =
    R"(HloModule loop, input_output_alias={ {0}: (0, {}, must-alias) }, num_partitions=4, replica_count=2, frontend_attributes={a="b",c={x=1}}

body {
  p = (s32[], f32[8,4]{0,1:T(2,128)S(1)}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,4]{0,1:T(2,128)S(1)} get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one), metadata={op_name="loop/add" source_file="m.py" source_line=3 deduplicated_name="d"}
  ROOT r = (s32[], f32[8,4]{0,1:T(2,128)S(1)}) tuple(j, x), control-predecessors={i}
}, execution_thread="side"

condition {
  q = (s32[], f32[8,4]{0,1:T(2,128)S(1)}) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(k, n), direction=LT
}

ENTRY main {
  a = s32[] parameter(0), sharding={maximal device=2}
  b = f32[8,4]{0,1:T(2,128)S(1)} parameter(1), sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
  t = (s32[], f32[8,4]{0,1:T(2,128)S(1)}) tuple(a, b)
  ROOT w = (s32[], f32[8,4]{0,1:T(2,128)S(1)}) while(t), condition=condition, body=body, backend_config={"known_trip_count":{"n":"5"}}
}
)";

TEST(HloProto, LoopsHeadersAndLayouts) { expect_same(kLoop); }

TEST(HloProto, ConstantsOfEveryTypeInAnyLayout) {
  expect_same(R"(ENTRY e {
  a = s32[2,3]{0,1} constant({{1,2,3},{-4,5,6}})
  b = pred[3] constant({1,0,1})
  c = s4[4] constant({-8,-1,0,7})
  d = u4[2] constant({15,3})
  f = bf16[2,2]{0,1} constant({{1,2},{3,-inf}})
  g = c64[2] constant({(1,-2),(0,3)})
  h = f8e4m3fn[3] constant({1,-448,nan})
  i = u64[1] constant({18446744073709551615})
  j = s64[1] constant({-9223372036854775808})
  k = f64[] constant(0.1)
  l = (s32[], (u8[2])) constant((7, ({1,255})))
  m = f16[2,0] constant({{},{}})
  ROOT t = (f64[], f16[2,0]) tuple(k, m)
}
)");
}

TEST(HloProto, ShardingsInEverySpelling) {
  for (std::string s :
       {"{replicated}", "{manual}", "{unknown}", "{devices=[2,2]0,2,1,3}",
        "{devices=[2,1,2]<=[4] last_tile_dims={manual}}", "{devices=[4,1]<=[4] shard_like 3}",
        "{mesh['a'=2,'b'=2], [{'a'}, {'b':(1)2, ?}]}",
        "{mesh['a'=2,'b'=2], [{}, {}], unreduced={'a'}}",
        "{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}, {}], replicated={'b'}}"}) {
    expect_same(
        "HloModule m, num_partitions=4\nENTRY e { ROOT p = f32[8,8] parameter(0), sharding=" + s +
        " }");
  }
}

TEST(HloProto, CustomCalls) {
  expect_same(R"(ENTRY e {
  a = f32[4,2]{1,0} parameter(0)
  b = s32[] parameter(1)
  ROOT c = f32[4,2]{1,0} custom-call(a, b), custom_call_target="f", operand_layout_constraints={f32[4,2]{0,1}, s32[]}, custom_call_has_side_effect=true, output_to_operand_aliasing={{}: (0, {})}, schedule=SCHEDULE_LATEST, api_version=API_VERSION_STATUS_RETURNING, backend_config="a \"b\" {"
}
)");
}

TEST(HloProto, ModulesInsideOfOtherMessages) {
  auto m = text(kLoop);
  std::string bytes = print_hlo_proto(*m);
  EXPECT_EQ(print_hlo(*message(wrap(bytes))), print_hlo(*m));
  EXPECT_EQ(print_hlo(*message(wrap(wrap(bytes)))), print_hlo(*m));
}

TEST(HloProto, OurOwnFieldsAreAllKnown) {
  std::string bytes = print_hlo_proto(*text(kLoop));
  std::vector<std::string> warnings;
  message(bytes, &warnings);
  EXPECT_THAT(warnings, testing::IsEmpty());
}

TEST(HloProto, SameBytesAgain) {
  EXPECT_EQ(print_hlo_proto(*text(kLoop)), print_hlo_proto(*text(kLoop)));
}

TEST(HloProto, OtherBytesAreRefused) {
  for (std::string bytes : {"", "\n", "\n\xff\xff\xff\xff\x7f", "\1\2\3\4", "hello"}) {
    try {
      message(bytes);
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_THAT(e.render(), HasSubstr("test.pb: error: "));
      EXPECT_THAT(e.render(), HasSubstr("HloModuleProto"));
    }
  }
}

// Whatever is in the bytes: a module that verifies or an Error, and no broken promise of our own.
TEST(HloProto, DamagedBytes) {
  const std::string bytes = print_hlo_proto(*text(kLoop));
  uint64_t state = 1;
  auto random = [&](size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % n;
  };
  int refused = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string damaged = bytes;
    for (size_t changes = 1 + random(3); changes > 0; --changes) {
      damaged[random(damaged.size())] = static_cast<char>(random(256));
    }
    if (k % 10 == 0) damaged.resize(random(damaged.size()));
    try {
      message(damaged);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace gspmd
