// Machines: built in and read, and what their links do to prices and plans.

#include "gspmd/partition/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gspmd/partition/price.h"
#include "gspmd/sharding/reshard.h"

namespace gspmd {
namespace {

constexpr std::string_view kMachine = R"({
  "name": "two levels",
  "peak_tflops": {"bf16": 100, "s8": 200},
  "memory_gb_per_s": 1000,
  "links": [{"devices": 4, "gb_per_s": 100, "latency_us": 2}, {"gb_per_s": 10, "latency_us": 8}],
  "axes": {"z": {"gb_per_s": 50, "latency_us": 2}}
})";

TEST(Machine, ReadsFacts) {
  Machine m = machine_from(read_machine("m.json", std::string(kMachine)));
  EXPECT_EQ(m.name, "two levels");
  EXPECT_EQ(m.per_wire_byte, 10'000);  // femtoseconds
  EXPECT_EQ(m.per_memory_byte, 1'000);
  EXPECT_EQ(m.per_message, 2'000'000'000);
  auto flops = [&](FlopKind k) { return m.per_1024_flops[static_cast<size_t>(k)]; };
  EXPECT_EQ(flops(FlopKind::kF16), 10'240);
  EXPECT_EQ(flops(FlopKind::kS8), 5'120);
  EXPECT_EQ(flops(FlopKind::kF64), 10'240);  // not said
  EXPECT_EQ(flops(FlopKind::kElementwise), 163'840);
  EXPECT_EQ(m.links.over(4), (LinkRate{16, 16}));
  EXPECT_EQ(m.links.over(8), (LinkRate{160, 64}));
}

TEST(Machine, AxesHaveTheLinksTheyReachOver) {
  Machine m = machine_from(read_machine("m.json", std::string(kMachine)));
  Mesh mesh({{"x", 2, 1, 2}, {"y", 4, 1, 4}});
  EXPECT_EQ(m.links.rate(mesh, 0), (LinkRate{160, 64}));
  EXPECT_TRUE(m.links.rate(mesh, 1).is_fastest());
  Mesh named({{"z", 2, 1, 2}, {"y", 4, 1, 4}});
  EXPECT_EQ(m.links.rate(named, 0), (LinkRate{32, 16}));
}

TEST(Machine, EveryBuiltInOneIsComplete) {
  EXPECT_GE(machine_names().size(), 5u);
  for (std::string_view name : machine_names()) {
    Machine m = machine_from(*find_machine(name));
    EXPECT_EQ(m.name, name);
    EXPECT_GT(m.memory_bytes, 0) << name;
    // A byte takes longest on the wire; a multiplication least.
    EXPECT_GT(m.per_wire_byte, m.per_memory_byte) << name;
    EXPECT_GT(m.per_memory_byte, m.per_1024_flops[static_cast<size_t>(FlopKind::kF16)] / 1024)
        << name;
    EXPECT_TRUE(m.links.over(2).is_fastest()) << name;
    EXPECT_FALSE(m.links.over(1 << 20).is_fastest()) << name;
  }
  EXPECT_EQ(find_machine("abacus"), nullptr);
}

struct Bad {
  const char* text;
  const char* error;
};
class BadMachine : public testing::TestWithParam<Bad> {};

TEST_P(BadMachine, IsRefusedWithItsPlace) {
  try {
    read_machine("m.json", GetParam().text);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.render(), testing::StartsWith(GetParam().error));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadMachine,
    testing::Values(Bad{"{\"name\": \"m\",\n \"peak\": 3}",
                        "m.json:2:10: error: there is no 'peak' here"},
                    Bad{"{\"name\": \"m\",\n oops}", "m.json:2:2: error: this is no JSON"},
                    Bad{"{\"name\": \"m\", \"peak_tflops\": {\"bf16\": -1}}",
                        "m.json:1:39: error: 'peak_tflops/bf16' is no number above 0"},
                    Bad{"{\"name\": \"m\", \"peak_tflops\": {\"s8\": 1}}",
                        "m.json:1:30: error: no peak of a floating-point type"},
                    Bad{"{\"name\": \"m\", \"peak_tflops\": {\"f32\": 1}, \"memory_gb_per_s\": 1, "
                        "\"links\": []}",
                        "m.json:1:73: error: there is no link"},
                    Bad{"{\"name\": \"m\", \"peak_tflops\": {\"f32\": 1}, \"memory_gb_per_s\": 1,\n"
                        "\"links\": [{\"gb_per_s\": 1, \"latency_us\": 1}, {\"gb_per_s\": 1, "
                        "\"latency_us\": 1}]}",
                        "m.json:2:11: error: 'devices' must grow"}));

// [{x,y}] made whole where x's links are slow: together, all bytes go at the speed of the slowest.
TEST(Machine, SlowLinksMoveLess) {
  Links links = machine_from(read_machine("m.json", std::string(kMachine))).links;
  auto steps = [](const Links& over) {
    ShardingPool pool;
    const Mesh* mesh = pool.add_mesh(Mesh({{"x", 2, 1, 2}, {"y", 4, 1, 4}}));
    ShardingData partial;
    partial.mesh = mesh;
    partial.dims.resize(1);
    partial.pending = mesh->all_axes();
    partial.combiner = Combiner::kSum;
    ReshardPlanner planner(&pool, over);
    const ReshardPlan& plan =
        planner.plan(pool.intern(partial), pool.replicated(mesh, 1), {1024}, 32);
    std::string text;
    for (const ReshardStep& s : plan.steps)
      text += (text.empty() ? "" : "; ") + to_string(*mesh, s);
    return std::pair(text, plan.cost);
  };
  auto [alike, cheap] = steps({});
  EXPECT_EQ(alike, "all-reduce {x,y}");
  EXPECT_EQ(cheap.far_bytes, 0);
  // What crosses x is a quarter: 1024 of 4096 bytes, 10 times as dear.
  auto [levels, dear] = steps(links);
  EXPECT_EQ(levels, "reduce-scatter 0 {y}; all-reduce {x}; all-gather 0 {y}");
  EXPECT_EQ(dear.far_bytes, 1024 * 9);
  EXPECT_EQ(dear.far_messages, 48);
  EXPECT_EQ(price_of(dear).units(Machine{}),
            (dear.wire_bytes + dear.far_bytes) * 64 + 6 * 64 * 512 + dear.local_bytes * 12);
}

}  // namespace
}  // namespace gspmd
