// Custom-calls with rules of one's own, through the whole pipeline.

#include "gspmd/ops/custom_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/builder_ops.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The lines of the per-device program that hold one of these opcodes, from the shape on.
std::vector<std::string> lines_of(const Compiled& c, std::vector<Opcode> opcodes) {
  std::vector<std::string> found;
  for (const Instr* i : c.module->entry()->instrs()) {
    if (std::find(opcodes.begin(), opcodes.end(), i->opcode) == opcodes.end()) continue;
    found.push_back(to_string(i->shape) + " " + std::string(name_of(i->opcode)));
  }
  return found;
}

const std::vector<Opcode> kSeen = {Opcode::kCustomCall, Opcode::kAllGather,
                                   Opcode::kAllReduce,  Opcode::kReduceScatter,
                                   Opcode::kAllToAll,   Opcode::kCollectivePermute};

// mine(x, w) on x split along both dimensions and w along its first, over a mesh of 2 x 4.
std::unique_ptr<Module> program(std::string_view rule, int64_t rows = 8) {
  Builder b("m", 8);
  NamedMesh mesh{{{"x", 2}, {"y", 4}}};
  if (!rule.empty()) set_custom_rule(b.context(), "mine", std::string(rule));
  Expr x = MeshSplit(b.parameter("x", ElementType::kF32, {rows, 16}), mesh, {0, 1});
  Expr w = MeshSplit(b.parameter("w", ElementType::kF32, {16, 6}), mesh, {1, -1});
  CustomCallAttrs attrs;
  attrs.target = "mine";
  std::string constraints = "{f32[" + std::to_string(rows) + ",16]{1,0}, f32[16,6]{0,1}}";
  attrs.operand_layout_constraints = constraints;
  Expr y = op(Opcode::kCustomCall, {x, w}, &attrs, b.shape(ElementType::kF32, {rows, 6}));
  return b.build(MeshSplit(y, mesh, {0, -1}));
}

TEST(CustomCall, RunsOnShardsByItsRule) {
  Compiled c = partition(program("a b, b c -> a c"), {});
  EXPECT_THAT(lines_of(c, kSeen), ElementsAre("f32[4,6] custom-call", "f32[4,6] all-reduce"));
  EXPECT_THAT(print_hlo(*c.module),
              HasSubstr("operand_layout_constraints={f32[4,4]{1,0}, f32[4,6]{0,1}}"));
  EXPECT_THAT(c.warnings, IsEmpty());
}

TEST(CustomCall, GathersWhatItsRuleDoesNotSplit) {
  Compiled c = partition(program("a _, _ _ -> a _"), {});
  EXPECT_THAT(lines_of(c, kSeen),
              ElementsAre("f32[4,16] all-gather", "f32[16,6] all-gather", "f32[4,6] custom-call"));
}

TEST(CustomCall, WithoutARuleEveryDeviceMakesTheWholeCall) {
  Compiled c = partition(program(""), {});
  EXPECT_THAT(lines_of(c, {Opcode::kCustomCall}), ElementsAre("f32[8,6] custom-call"));
  EXPECT_THAT(print_hlo(*c.module),
              HasSubstr("operand_layout_constraints={f32[8,16]{1,0}, f32[16,6]{0,1}}"));
}

TEST(CustomCall, NeverSeesPadding) {
  Compiled c = partition(program("a b, b c -> a c", 7), {});
  EXPECT_THAT(lines_of(c, {Opcode::kCustomCall}), ElementsAre("f32[7,6] custom-call"));
}

}  // namespace
}  // namespace gspmd
