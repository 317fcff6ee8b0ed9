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

// The sum is scattered over the batch, by which the next dot can be split. What comes before the
// last dot is smaller than what comes after it, and is gathered.
TEST(ChooseLayouts, ScattersAPartialSumWhereItsUsersCanBeSplit) {
  EXPECT_THAT(collectives(attention(4096), false), ElementsAre("all-reduce f32[64,128,512]"));
  EXPECT_THAT(collectives(attention(4096)),
              ElementsAre("reduce-scatter f32[64,128,512]", "all-gather f32[8,128,128]"));
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
