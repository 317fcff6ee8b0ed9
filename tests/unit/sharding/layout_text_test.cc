// Layouts as text, read back over a mesh.

#include "gspmd/sharding/layout_text.h"

#include <gtest/gtest.h>

namespace gspmd {
namespace {

const Mesh* mesh(ShardingPool* pool) {
  return pool->add_mesh(Mesh({{"x", 2, 1, 2}, {"y", 2, 1, 8}, {"y", 4, 2, 8}, {"z", 3, 1, 3}}));
}

TEST(LayoutText, ReadsWhatIsPrinted) {
  ShardingPool pool;
  const Mesh* m = mesh(&pool);
  for (const char* text :
       {"[]", "[{}]", "[{x}, {}]", "[{y}]", "[{y:(1)2}, {x,y:(2)4}]", "[{z,x}] manual={y}",
        "[{x}] replicated={z} manual={y:(2)4} pending=max{y:(1)2}", "[{}] pending=sum{x,y}"}) {
    auto data = parse_layout(text, m);
    ASSERT_TRUE(data) << text;
    EXPECT_EQ(to_string(pool.intern(*data)), text);
  }
}

TEST(LayoutText, RefusesTheRest) {
  ShardingPool pool;
  const Mesh* m = mesh(&pool);
  for (const char* text : {"", "[", "[{x}", "[{x}]]", "{x}", "[{w}]", "[{x}, {x}]", "[{y:(8)2}]",
                           "[{y:(}]", "[{y:(1)}]", "[{y:(1)-2}]", "[{x},{}]", "[{}] pending={x}",
                           "[{}] pending=mean{x}", "[{x}] manual={x}"})
    EXPECT_FALSE(parse_layout(text, m)) << text;
}

}  // namespace
}  // namespace gspmd
