// Values move to layouts under which they and their neighbours cost less.

#include "gspmd/partition/choose_layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The collectives of the per-device program, each with the shape that it sends.
std::vector<std::string> collectives(std::string_view text, bool choose = true) {
  CompileOptions options;
  options.partition.choose_layouts = choose;
  Compiled c =
      partition(parse_hlo(std::make_shared<Context>(), std::string(text), "test.hlo"), options);
  std::vector<std::string> found;
  for (const Instr* i : c.module->entry()->instrs()) {
    if (!def(*i).traits.collective || i->operands.empty()) continue;
    found.push_back(std::string(name_of(i->opcode)) + " " + to_string(i->operand(0)->shape));
  }
  return found;
}

// The global program after the stage, shardings as annotations.
std::string laid_out(std::string_view text) {
  CompileOptions options;
  options.stop_after = Stage::kChooseLayouts;
  return print_hlo(
      *partition(parse_hlo(std::make_shared<Context>(), std::string(text), "test.hlo"), options)
           .module);
}

constexpr std::string_view kMessages = R"(
HloModule messages, num_partitions=8
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main {
  table = f32[4096,128] parameter(0), sharding={devices=[8,1]<=[8]}
  from = s32[32768,1] parameter(1), sharding={devices=[8,1]<=[8]}
  to = s32[32768,1] parameter(2), sharding={devices=[8,1]<=[8]}
  rows = f32[32768,128] gather(table, from), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,128}
  kept = f32[32768,128] custom-call(rows), custom_call_target="Sharding", sharding={devices=[8,1]<=[8]}
  zero = f32[] constant(0)
  zeros = f32[4096,128] broadcast(zero), dimensions={}
  ROOT sums = f32[4096,128] scatter(zeros, to, kept), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add, sharding={devices=[8,1]<=[8]}
}
)";

// A table that is read and written by run-time indices: its rows would be gathered and its sums
// reduced over all devices. With the features split, only the two ends move.
TEST(ChooseLayouts, SplitsFeaturesBetweenGatherAndScatter) {
  EXPECT_THAT(collectives(kMessages, false),
              ElementsAre("all-gather f32[512,128]", "reduce-scatter f32[4096,128]"));
  EXPECT_THAT(collectives(kMessages),
              ElementsAre("all-to-all f32[512,8,16]", "all-gather s32[4096,1]",
                          "all-gather s32[4096,1]", "all-to-all f32[8,512,16]"));
}

// An annotation that only stands between two operators gives way; one that others see does not.
TEST(ChooseLayouts, KeepsAnnotationsOfValuesWithSeveralUsers) {
  EXPECT_THAT(laid_out(kMessages), HasSubstr("rows = f32[32768,128]{1,0} gather(table, from), "
                                             "offset_dims={1}, collapsed_slice_dims={0}, "
                                             "start_index_map={0}, index_vector_dim=1, "
                                             "slice_sizes={1,128}, sharding={devices=[1,8]<=[8]}"));
  std::string seen(kMessages);
  size_t root = seen.find("  ROOT sums");
  seen.replace(root, 11, "  sums =");
  seen.erase(seen.find("= ", root) + 2, 2);
  std::string tail =
      "  kept.sum = f32[] reduce(kept, zero), dimensions={0,1}, to_apply=add\n"
      "  ROOT both = (f32[4096,128], f32[]) tuple(sums, kept.sum)\n}\n";
  seen.replace(seen.rfind('}'), 1, tail);
  EXPECT_THAT(laid_out(seen),
              HasSubstr("kept = f32[32768,128]{1,0} custom-call(rows), "
                        "custom_call_target=\"Sharding\", sharding={devices=[8,1]<=[8]}"));
}

// Attention between weights that are split along the contracted dimension; `n` features.
std::string attention(int64_t n) {
  std::string features = std::to_string(n);
  return R"(
HloModule attention, num_partitions=8
ENTRY main {
  x = f32[64,128,)" +
         features + R"(] parameter(0), sharding={devices=[1,1,8]<=[8]}
  w = f32[)" +
         features + R"(,512] parameter(1), sharding={devices=[8,1]<=[8]}
  k = f32[64,128,512] parameter(2), sharding={replicated}
  q = f32[64,128,512] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  scores = f32[64,128,128] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  p = f32[64,128,128] tanh(scores)
  ROOT out = f32[64,128,512] dot(p, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, sharding={replicated}
}
)";
}

// The next dot makes the partial sums smaller; they are scattered over the batch, by which the rest
// can be split. What comes before the last dot is smaller than what comes after it, and is
// gathered.
TEST(ChooseLayouts, ScattersAPartialSumWhereItIsSmall) {
  EXPECT_THAT(collectives(attention(4096), false), ElementsAre("all-reduce f32[64,128,512]"));
  EXPECT_THAT(collectives(attention(4096)),
              ElementsAre("reduce-scatter f32[64,128,128]", "all-gather f32[8,128,128]"));
}

// `ops` work on u and v, f32[64,128], which two dots make as partial sums, and on a complete c.
std::string partial_sums(std::string_view ops) {
  return R"(
HloModule sums, num_partitions=8
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[64,4096] parameter(0), sharding={devices=[1,8]<=[8]}
  w = f32[4096,128] parameter(1), sharding={devices=[8,1]<=[8]}
  c = f32[64,128] parameter(2)
  u = f32[64,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[64,4096] tanh(x)
  v = f32[64,128] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
)" + std::string(ops) +
         "\n}\n";
}

TEST(ChooseLayouts, AddsUpOnceWhatIsAdded) {
  std::string text = partial_sums("ROOT r = f32[64,128] add(u, v)");
  EXPECT_THAT(collectives(text, false),
              ElementsAre("all-reduce f32[64,128]", "all-reduce f32[64,128]"));
  EXPECT_THAT(collectives(text), ElementsAre("all-reduce f32[64,128]"));
}

// A complete operand is added by one device.
TEST(ChooseLayouts, AddsACompleteValueOnce) {
  EXPECT_THAT(collectives(partial_sums("s = f32[64,128] add(u, c)\n"
                                       "ROOT r = f32[64,128] subtract(s, v)")),
              ElementsAre("all-reduce f32[64,128]"));
}

TEST(ChooseLayouts, AddsUpAfterTheSumsBecameSmaller) {
  EXPECT_THAT(collectives(partial_sums("m = f32[64,128] multiply(u, c)\n"
                                       "ROOT r = f32[64] reduce(m, zero), dimensions={1}, "
                                       "to_apply=add")),
              ElementsAre("all-reduce f32[64]"));
  EXPECT_THAT(collectives(partial_sums("ROOT r = f32[8,128] slice(u), slice={[0:8], [0:128]}")),
              ElementsAre("all-reduce f32[8,128]"));
}

// What is not linear in its operand, or loses precision, takes complete values.
TEST(ChooseLayouts, AddsUpBeforeWhatIsNotLinear) {
  constexpr std::string_view kEnds[] = {
      "t = f32[64,128] tanh(u)\n ROOT r = f32[8,128] slice(t), slice={[0:8], [0:128]}",
      "t = bf16[64,128] convert(u)\n ROOT r = bf16[8,128] slice(t), slice={[0:8], [0:128]}",
      "t = f32[64,128] divide(u, c)\n ROOT r = f32[8,128] slice(t), slice={[0:8], [0:128]}",
      "t = f32[64,128] divide(c, u)\n ROOT r = f32[64] reduce(t, zero), dimensions={1}, "
      "to_apply=add",
  };
  for (std::string_view ops : kEnds) {
    std::vector<std::string> found = collectives(partial_sums(ops));
    ASSERT_FALSE(found.empty()) << ops;
    EXPECT_THAT(found[0], HasSubstr("f32[64,128]")) << ops;
  }
}

// With few features it is cheaper to bring them to the batch's layout than to sum up.
TEST(ChooseLayouts, MovesWhatIsSmallest) {
  EXPECT_THAT(collectives(attention(256)),
              ElementsAre("all-to-all f32[8,8,128,32]", "all-gather f32[32,512]",
                          "all-gather f32[8,128,128]"));
}

TEST(ChooseLayouts, LeavesParametersAndResultsAlone) {
  std::string text = laid_out(attention(4096));
  EXPECT_THAT(text, HasSubstr("parameter(2), sharding={replicated}"));
  EXPECT_THAT(text, HasSubstr("rhs_contracting_dims={1}, sharding={replicated}"));
  EXPECT_THAT(text, HasSubstr("rhs_contracting_dims={2}, sharding={devices=[8,1,1]<=[8]}"));
}

TEST(ChooseLayouts, ChangesNothingWhereNothingIsMoved) {
  constexpr std::string_view kFree = R"(
HloModule free, num_partitions=8
ENTRY main {
  x = f32[64,32] parameter(0), sharding={devices=[8,1]<=[8]}
  y = f32[64,32] tanh(x)
  ROOT z = f32[64,32] add(x, y), sharding={devices=[8,1]<=[8]}
}
)";
  EXPECT_THAT(laid_out(kFree), Not(HasSubstr("[1,8]")));
  EXPECT_THAT(collectives(kFree), ElementsAre());
}

}  // namespace
}  // namespace gspmd
