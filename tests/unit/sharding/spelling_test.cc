#include "gspmd/sharding/spelling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gspmd {
namespace {

ShardingSpelling parse(std::string_view text) {
  size_t position = 0;
  ShardingSpelling s = parse_hlo_sharding(text, &position);
  EXPECT_EQ(position, text.size()) << text;
  return s;
}

ShardingSpelling parse_sdy(std::string_view text) {
  size_t position = 0;
  ShardingSpelling s = parse_sdy_sharding(text, &position);
  EXPECT_EQ(position, text.size()) << text;
  return s;
}

// Read, printed and read again: text in normal form comes back as it was.
TEST(HloSpelling, NormalFormsPrintAsTheyWereRead) {
  const char* const kTexts[] = {
      "{replicated}",
      "{maximal device=3}",
      "{manual}",
      "{unknown}",
      "{unreduced}",
      "{}",
      "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
      "{devices=[2,1,4]<=[8] last_tile_dims={replicated}}",
      "{devices=[4,2]<=[2,4]T(1,0)}",
      "{devices=[1,4,1,2]<=[2,4]T(1,0)}",
      "{devices=[4,1,2,1,1,2]<=[4,2,2]T(0,2,1) last_tile_dim_replicate}",
      "{devices=[256,256]<=[256,256]T(1,0)}",
      "{devices=[1,1,2,4]<=[8] last_tile_dims={manual, replicated}}",
      "{devices=[1,1,2,4]<=[8] last_tile_dims={manual, unreduced}}",
      "{devices=[1,1,8]<=[8] last_tile_dims={maximal}}",
      "{devices=[1,1]<=[1]}",
      "{devices=[2,2]0,1,2,3}",
      "{devices=[2,4]7,1,2,3,4,5,6,0}",
      "{devices=[2,1,2]5,4,3,2 last_tile_dims={manual}}",
      "{devices=[2,4]<=[8] shard_as 1}",
      "{replicated shard_like 2}",
      "{replicated shard_like 2 metadata={op_name=\"a\"}}",
      "{devices=[2,4]<=[8] metadata={op_name=\"}a{\\\"\" source_line=3}}",
      "{{replicated}, {devices=[8]<=[8]}}",
      "{{manual}, {manual}, {manual}, {manual}, {manual}, /*index=5*/{manual}}",
      "{mesh['a'=2,'b'=4], [{'a'}, {'b':(2)2, ?}], replicated={'b':(1)2}}",
      "{mesh['a'=2,'b'=4], [{?}, {}], unreduced={'a'}, manual={'b'}}",
      "{mesh['a'=2,'b'=4], [{'a'}, {}], unreduced=max{'b'}}",
      "{mesh['a'=2,'b'=4], replicated}",
      "{mesh['a'=2,'b'=4], manual}",
      "{mesh['a'=2,'b'=4], unreduced}",
      "{mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)), [{'a'}, {'b', ?}]}",
      "{mesh['a'=2,'b'=2], device_ids=(0,1,3,2), [{'a'}, {?}]}",
      "{mesh['a'=2,'b'=4], [{'a'}, {}], metadata={{op_name=\"a\"}}}",
      "{maximal_mesh[device_id=3]}",
      "{mesh[], replicated}",
      "{mesh[], [{}, {}]}",
      "{mesh['a'=2,'b'=1], [{'b'}, {}]}",
  };
  for (const char* text : kTexts) {
    const ShardingSpelling s = parse(text);
    EXPECT_EQ(print_hlo_sharding(s), text);
    EXPECT_EQ(parse(print_hlo_sharding(s)), s) << text;
  }
}

TEST(HloSpelling, OtherFormsPrintInNormalForm) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"{ devices = [ 2 , 4 ] <= [ 8 ] }", "{devices=[2,4]<=[8]}"},
      {"{devices=[4,2]<=[2,2,2]T(2,0,1)}", "{devices=[4,2]<=[4,2]T(1,0)}"},
      {"{devices=[4,2]<=[2,2,2]T(0,1,2)}", "{devices=[4,2]<=[8]}"},
      {"{devices=[4,2]<=[2,1,4]T(2,1,0)}", "{devices=[4,2]<=[2,4]T(1,0)}"},
      {"{devices=[1,1,8]<=[8] last_tile_dim_replicate}", "{replicated}"},
      {"{devices=[1,1,2,4]<=[8] last_tile_dims={replicated,replicated}}", "{replicated}"},
      {"{devices=[1,1,8]<=[8] last_tile_dims={manual}}", "{manual}"},
      {"{devices=[1,1,8]<=[8] last_tile_dims={unreduced}}", "{unreduced}"},
      {"{{replicated},{manual}}", "{{replicated}, {manual}}"},
      {"{{replicated}, /*index=1*/ {manual}\n}", "{{replicated}, {manual}}"},
      {"{replicated metadata={op_name=\"a\"} shard_as 7}",
       "{replicated shard_as 7 metadata={op_name=\"a\"}}"},
      {"{mesh['a'=2,'b'=4],[{'0'},{'1'}]}", "{mesh['a'=2,'b'=4], [{'a'}, {'b'}]}"},
      {"{mesh['a'=2,'b'=2], device_ids=(0,1,2,3), [{'a'},{}]}", "{mesh['a'=2,'b'=2], [{'a'}, {}]}"},
      {"{mesh[\"a\"=2], [{\"a\"}], manual={}, replicated={}}", "{mesh['a'=2], [{'a'}]}"},
  };
  for (auto [text, normal] : kTexts) EXPECT_EQ(print_hlo_sharding(parse(text)), normal);
}

TEST(HloSpelling, StopsBehindTheSharding) {
  const std::string_view text = "sharding={devices=[2]<=[2]}, metadata={}";
  size_t position = 9;
  parse_hlo_sharding(text, &position);
  EXPECT_EQ(text.substr(position), ", metadata={}");
}

TEST(SdySpelling, NormalFormsPrintAsTheyWereRead) {
  const char* const kTexts[] = {
      R"(#sdy.sharding<@mesh, [{"x"}, {"y", ?}p1, {"z":(2)4}]>)",
      R"(#sdy.sharding<@mesh, [{"x"}, {?}], replicated={"z"}, unreduced={"w"}>)",
      R"(#sdy.sharding<@mesh, [{}], unreduced=max{"w"}>)",
      R"(#sdy.sharding<@mesh, []>)",
      R"(#sdy.sharding<@"my mesh", [{}]>)",
      R"(#sdy.sharding<mesh<["a"=2, "b"=2], device_ids=[0, 1, 3, 2]>, [{"a", "b"}p0]>)",
      R"(#sdy.sharding_per_value<[<@mesh, [{?}, {"a", "b"}]>]>)",
      R"(#sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, []>]>)",
  };
  for (const char* text : kTexts) {
    EXPECT_EQ(print_sdy_sharding(parse_sdy(text)), text);
  }
}

TEST(SdySpelling, ThePrefixMayBeMissing) {
  EXPECT_EQ(print_sdy_sharding(parse_sdy(R"(<@mesh,[{"x"},{}]>)")),
            R"(#sdy.sharding<@mesh, [{"x"}, {}]>)");
  EXPECT_EQ(print_sdy_sharding(parse_sdy(R"(<[<@m, []>]>)")),
            "#sdy.sharding_per_value<[<@m, []>]>");
  EXPECT_EQ(print_sdy_sharding(parse_sdy(R"([<@m, []>])")), "#sdy.sharding_per_value<[<@m, []>]>");
}

TEST(SdySpelling, MeshesPrintAsTheyWereRead) {
  const char* const kTexts[] = {
      R"(#sdy.mesh<["a"=2, "b"=4]>)",
      R"(#sdy.mesh<["a"=2, "b"=2], device_ids=[0, 2, 1, 3]>)",
      R"(#sdy.mesh<[], device_ids=[3]>)",
      R"(#sdy.mesh<[]>)",
  };
  for (const char* text : kTexts) {
    size_t position = 0;
    EXPECT_EQ(print_sdy_mesh(parse_sdy_mesh(text, &position)), text);
    EXPECT_EQ(position, std::string_view(text).size());
  }
  size_t position = 0;
  EXPECT_EQ(parse_sdy_mesh("mesh<[], device_ids=[3]>", &position).maximal_device, 3);
}

TEST(SdySpelling, ManualAxes) {
  size_t position = 0;
  const auto axes = parse_sdy_manual_axes(R"(#sdy<manual_axes{"a", "b"}>)", &position);
  EXPECT_EQ(print_sdy_manual_axes(axes), R"(#sdy<manual_axes{"a", "b"}>)");
}

struct BadText {
  const char* text;
  const char* at;  // the text from the error's offset begins with this
  const char* message;
};

template <typename Parse>
void expect_error(const BadText& bad, Parse parse) {
  size_t position = 0;
  try {
    parse(bad.text, &position);
    ADD_FAILURE() << "accepted: " << bad.text;
  } catch (const SpellingError& error) {
    EXPECT_THAT(error.message, testing::HasSubstr(bad.message)) << bad.text;
    ASSERT_LE(error.offset, std::string_view(bad.text).size()) << bad.text;
    EXPECT_THAT(std::string(bad.text + error.offset), testing::StartsWith(bad.at)) << bad.text;
  }
}

TEST(HloSpelling, ErrorsSayWhereAndWhat) {
  const BadText kTexts[] = {
      {"{devices=[2,2]<=[16]}", "devices", "4 tiles but 16 devices"},
      {"{devices=[2,2]0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7}", "devices", "4 tiles but 16 devices"},
      {"{devices=[2,2]0,1,2,1}", "1}", "device 1 stands twice"},
      {"{devices=[2,2]0,1,900,900}", "900}", "device 900 stands twice"},
      {"{devices=[2]0,-1}", "-1", "device -1 does not exist"},
      {"{devices=[2,0]<=[2]}", "0]", "a tile dimension of 0"},
      {"{devices=[-2]<=[2]}", "-2", "a tile dimension of -2"},
      {"{devices=[]<=[2]}", "[]", "no tile dimensions"},
      {"{devices=[4294967296,4294967296]<=[2]}", "[4294967296", "2^63"},
      {"{devices=[2]<=[4294967296,4294967296]T(0,1)}", "[4294967296", "2^63"},
      {"{devices=[99999999999999999999]<=[2]}", "999", "2^63"},
      {"{devices=[2,2]<=[2,2]}", "}", "expected 'T('"},
      {"{devices=[2,2]<=[2,2]T(0)}", "T(0)", "transpose of 1 dimensions for a list of 2"},
      {"{devices=[2,2]<=[2,2]T(0,0)}", "T(0,0)", "0 in a transpose"},
      {"{devices=[2,2]<=[2,2]T(0,2)}", "T(0,2)", "2 in a transpose"},
      {"{devices=[2,2]<=[0]}", "[0]", "a dimension of size 0"},
      {"{devices=[4]<=[4] last_tile_dims={manual, replicated}}", "last_tile_dims",
       "2 last_tile_dims"},
      {"{devices=[4]<=[4] last_tile_dims={manuel}}", "manuel", "not 'manuel'"},
      {"{devices=[4]}", "}", "expected the devices"},
      {"{maximal}", "}", "expected 'device'"},
      {"{maximal device=-2}", "-2", "device -2 does not exist"},
      {"{replicate}", "replicate}", "expected a sharding, not 'replicate'"},
      {"{replicated", "", "the text ends here"},
      {"{{replicated}, }", "}", "expected '{'"},
      {"{{{replicated}}}", "{replicated}", "expected a sharding"},
      {"{replicated foo}", "foo", "expected '}'"},
      {"{replicated metadata={a}", "", "ends here"},
      {"{replicated metadata={a", "{a", "without its '}'"},
      {"{replicated /* }", "/* }", "comment"},
      {"{mesh['a'=2], [{'b'}]}", "'b'", "no axis \"b\""},
      {"{mesh['a'=2], [{'a'}, {'a'}]}", "'a'}]", "axis \"a\" is used twice"},
      {"{mesh['a'=2], [{'a'}], manual={'a'}}", "'a'}}", "axis \"a\" is used twice"},
      {"{mesh['a'=2], [{}], manual={'a'}, replicated={'a'}}", "'a'}, replicated", "used twice"},
      {"{mesh['a'=8], [{'a':(1)4}, {'a':(2)2}]}", "'a':(2)2", "used twice"},
      {"{mesh['a'=12], [{'a':(1)2}, {'a':(3)2}]}", "'a':(3)2", "do not nest"},
      {"{mesh['a'=8], [{'a':(1)3}]}", "'a':(1)3", "no part of an axis of size 8"},
      {"{mesh['a'=8], [{'a':(2)8}]}", "'a':(2)8", "no part of an axis of size 8"},
      {"{mesh['a'=8], [{'a':(2)1}]}", "1}", "a part of size 1"},
      {"{mesh['a'=8], [{'a':(0)2}]}", "'a':(0)2", "no part"},
      {"{mesh['a'=2,'a'=2], replicated}", "'a'=2]", "two axes"},
      {"{mesh['a'=0], replicated}", "0]", "an axis of size 0"},
      {"{mesh['a'=4], device_ids=(0,1), [{'a'}]}", "0,1", "2 device ids for a mesh of 4 devices"},
      {"{mesh['a'=2], [{?, 'a'}]}", "'a'}", "expected '}' after '?'"},
      {"{mesh['a'=2], unreduced={'a'}}", "{'a'}", "expected the dimensions"},
      {"{mesh['a'=2]}", "}", "expected ','"},
      {"{mesh['a=2]}", "'a", "quote does not end"},
      {"", "", "expected '{'"},
  };
  for (const BadText& bad : kTexts) expect_error(bad, parse_hlo_sharding);
}

TEST(SdySpelling, ErrorsSayWhereAndWhat) {
  const BadText kTexts[] = {
      {R"(#sdy.sharding<mesh, [{}]>)", ",", "expected '<'"},
      {R"(#sdy.sharding<@mesh [{}]>)", "[", "expected ','"},
      {R"(#sdy.sharding<@mesh, [{"x"}, {"x"}]>)", R"("x"}])", "used twice"},
      {R"(#sdy.sharding<@mesh, [{"x":(1)2}, {"x"}]>)", R"("x"}])", "used twice"},
      {R"(#sdy.sharding<@mesh, [{"x"}pq]>)", "pq", "expected a priority"},
      {R"(#sdy.sharding<@mesh, [{"x"}], foo={}>)", "foo", "expected replicated="},
      {R"(#sdy.sharding<@mesh, [{"x"}], unreduced=avg{}>)", "avg", "combiner"},
      {R"(#sdy.sharding<mesh<["a"=2]>, [{"b"}]>)", R"("b")", "no axis"},
  };
  for (const BadText& bad : kTexts) expect_error(bad, parse_sdy_sharding);
}

// Whatever stands in the text: an answer or an error with a place in it, never more.
TEST(HloSpelling, DamagedTextIsRefusedOrRead) {
  const std::string good =
      "{{devices=[4,1,2]<=[4,2]T(1,0) last_tile_dims={manual}}, {mesh['a'=2,'b'=4], [{'a'}, "
      "{'b':(2)2, ?}]}}";
  uint32_t random = 12345;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    random = random * 1664525 + 1013904223;
    text[(random >> 8) % text.size()] = "{}[]()=,<0129T'?: "[(random >> 24) % 18];
    if (i % 3 == 0) text.resize((random >> 4) % text.size());
    size_t position = 0;
    try {
      parse_hlo_sharding(text, &position);
      EXPECT_LE(position, text.size());
    } catch (const SpellingError& error) {
      ++refused;
      EXPECT_LE(error.offset, text.size());
    }
  }
  EXPECT_GT(refused, 10000);
}

TEST(Iota, ReadsAndPrints) {
  for (const char* text : {"<=[8]", "<=[4,2]T(1,0)", "0,2,1,3"}) {
    size_t position = 0;
    EXPECT_EQ(print_iota(parse_iota(text, &position)), text);
  }
  size_t position = 0;
  EXPECT_EQ(print_iota(parse_iota("[4,2]T(1,0)", &position)), "<=[4,2]T(1,0)");
}

}  // namespace
}  // namespace gspmd
