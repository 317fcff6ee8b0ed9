// What rules are made with: reducers, rules from text, the cache, the builder's own checks.

#include <gtest/gtest.h>

#include "gspmd/base/check.h"
#include "gspmd/ops/custom_call.h"
#include "tests/unit/ops/op_bench.h"

namespace gspmd {
namespace {

TEST(CombinerOf, Reducers) {
  OpBench b;
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kAdd)), Combiner::kSum);
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kMultiply)), Combiner::kProduct);
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kMinimum)), Combiner::kMin);
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kMaximum)), Combiner::kMax);
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kXor, "u32[]")), Combiner::kXor);
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kAnd, "u32[]")), Combiner::kAnd);
  // On pred, arithmetic is logic.
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kAdd, "pred[]")), Combiner::kOr);
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kMultiply, "pred[]")), Combiner::kAnd);
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kMaximum, "pred[]")), Combiner::kOr);
  EXPECT_EQ(combiner_of(*b.reducer(Opcode::kSubtract)), Combiner::kNone);
  EXPECT_EQ(combiner_of(*b.opaque({"f32[]", "f32[]"}, "f32[]")), Combiner::kNone);
}

TEST(CombinerOf, OfBothParametersOnly) {
  OpBench b;
  Computation* c = b.reducer(Opcode::kAdd);
  Instr *x = c->params()[0], *y = c->params()[1];
  auto root = [&](Instr* left, Instr* right) {
    c->set_root(b.module().add(c, Opcode::kAdd, x->shape, {left, right}));
    return combiner_of(*c);
  };
  EXPECT_EQ(root(y, x), Combiner::kSum);
  EXPECT_EQ(root(x, x), Combiner::kNone);
  EXPECT_EQ(root(c->root(), x), Combiner::kNone);
}

class RuleFromText : public ::testing::Test {
 protected:
  std::string read(std::string_view text, std::initializer_list<std::string_view> operands,
                   std::string_view result) {
    Instr* call = b.make(Opcode::kCustomCall, operands, {}, {}, result);
    try {
      return rule_from_text(*call, text, arena)->to_string();
    } catch (const Error& e) {
      return "error: " + e.message();
    }
  }
  OpBench b;
  Arena arena;
};

TEST_F(RuleFromText, Reads) {
  EXPECT_EQ(read("a b, b c -> a c", {"f32[8,4]", "f32[4,6]"}, "f32[8,6]"),
            "ab,bc->ac | b: reduce(sum)");
  EXPECT_EQ(read("batch x, -> batch x", {"f32[8,4]", "f32[]"}, "f32[8,4]"), "ab,->ab");
  EXPECT_EQ(read("a b -> a, a b", {"f32[8,4]"}, "(f32[8], f32[8,4])"), "ab->a,ab");
  EXPECT_EQ(read("a -> a b", {"f32[8]"}, "f32[8,5]"), "a->a_");
  EXPECT_EQ(read("a ->", {"f32[8]"}, "f32[]"), "a-> | a: reduce(sum)");
  EXPECT_EQ(read("-> a", {}, "f32[8]"), "->_");
  EXPECT_EQ(read("a _ -> a _", {"f32[8,4]"}, "f32[8,2]"), "a_->a_");
}

TEST_F(RuleFromText, Refuses) {
  EXPECT_EQ(read("a b", {"f32[8,4]"}, "f32[8,4]"), "error: the rule \"a b\" has no ->");
  EXPECT_EQ(read("a b -> a", {"f32[8,4]", "f32[8]"}, "f32[8]"),
            "error: the rule \"a b -> a\" has 2 operands and results, the call has 3");
  EXPECT_EQ(read("a -> a", {"f32[8,4]"}, "f32[8]"),
            "error: the rule \"a -> a\" names 1 dimensions of f32[8,4]");
  EXPECT_EQ(read("a b -> b", {"f32[8,4]"}, "f32[8]"),
            "error: the rule \"a b -> b\": b has 4 elements in one tensor and 8 in f32[8]");
}

TEST_F(RuleFromText, RefusesDiagonalsAndTooManyNames) {
  EXPECT_EQ(read("a a -> a", {"f32[8,8]"}, "f32[8]"),
            "error: the rule \"a a -> a\" has a twice in one tensor");
  EXPECT_EQ(read("_ _ -> a", {"f32[8,8]"}, "f32[8]"), "__->_");
}

TEST(CustomRule, OnesOwn) {
  OpBench b;
  Instr* call = b.make(Opcode::kCustomCall, {"f32[8,4]", "f32[4,6]"},
                       b.attrs(CustomCallAttrs{.target = "mine"}), {}, "f32[8,6]");
  EXPECT_FALSE(has_custom_rule(*call));
  EXPECT_EQ(b.rule_of(*call).to_string(), "__,__->__");
  set_custom_rule(b.context(), "mine", "a b, b c -> a c");
  EXPECT_TRUE(has_custom_rule(*call));
  EXPECT_EQ(b.rule_of(*call).to_string(), "ab,bc->ac | b: reduce(sum)");
  set_custom_rule(b.context(), "mine", [](const Instr& i, Arena& arena) {
    RuleBuilder r(i, arena);
    r.parallel({0, kNone}, 0);
    return r.build();
  });
  EXPECT_EQ(b.rule_of(*call).to_string(), "a_,__->a_");
  // Of this context only, and of this target only.
  OpBench other;
  EXPECT_FALSE(
      has_custom_rule(*other.make(Opcode::kCustomCall, {"f32[8,4]"},
                                  other.attrs(CustomCallAttrs{.target = "mine"}), {}, "f32[8,6]")));
  EXPECT_FALSE(
      has_custom_rule(*b.make(Opcode::kCustomCall, {"f32[8]"},
                              b.attrs(CustomCallAttrs{.target = "theirs"}), {}, "f32[8]")));
}

TEST(CustomRule, ThatDoesNotFitIsAnErrorAboutTheCall) {
  OpBench b;
  set_custom_rule(b.context(), "mine", "a b -> a");
  Instr* call = b.make(Opcode::kCustomCall, {"f32[8]"}, b.attrs(CustomCallAttrs{.target = "mine"}),
                       {}, "f32[8]");
  call->name = "call";
  try {
    b.rule_of(*call);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message().find("call = f32[8] custom-call("), 0u) << e.message();
    EXPECT_NE(e.message().find("names 2 dimensions of f32[8]"), std::string::npos) << e.message();
    EXPECT_EQ(e.hint(), "one name for each dimension");
  }
}

TEST(CustomRule, Targets) {
  OpBench b;
  auto rule = [&](std::string_view target, std::string_view operand, std::string_view result) {
    return b.rule(Opcode::kCustomCall, {operand}, b.attrs(CustomCallAttrs{.target = target}), {},
                  result);
  };
  EXPECT_EQ(rule("Sharding", "f32[8,4]", "f32[8,4]"), "ab->ab");
  EXPECT_EQ(rule("TopK", "f32[8,4]", "(f32[8,2], s32[8,2])"), "a_->a_,a_");
  EXPECT_EQ(rule("nobody's", "f32[8,4]", "f32[8,4]"), "__->__");
}

TEST(RuleCache, KeyedByOperatorAttributesAndShapes) {
  OpBench b;
  RuleCache cache;
  Attrs rows = b.attrs(DimsAttrs{b.dims({1, 0})});
  const Rule& r = cache.get(*b.make(Opcode::kTranspose, {"f32[8,4]"}, rows));
  EXPECT_EQ(&cache.get(*b.make(Opcode::kTranspose, {"f32[8,4]"}, rows)), &r);
  EXPECT_NE(&cache.get(*b.make(Opcode::kTranspose, {"f32[8,5]"}, rows)), &r);
  EXPECT_NE(&cache.get(*b.make(Opcode::kReverse, {"f32[8,4]"}, rows)), &r);
  EXPECT_THROW(cache.get(*b.make(Opcode::kTuple, {"f32[8]"})), InternalError);
}

TEST(RuleBuilder, ChecksPlacesAndSizes) {
  OpBench b;
  Arena arena;
  Instr* add = b.make(Opcode::kAdd, {"f32[8,4]", "f32[8,4]"});
  EXPECT_THROW(RuleBuilder(*add, arena).parallel({0, 1}, 0), InternalError);  // 8 against 4
  EXPECT_THROW(RuleBuilder(*add, arena).parallel({2}, 0), InternalError);
  EXPECT_THROW(RuleBuilder(*add, arena).reduce({}, Combiner::kSum), InternalError);
  RuleBuilder full(*add, arena);
  for (int i = 0; i < kMaxFactors; ++i) full.add({});
  EXPECT_THROW(full.add({}), InternalError);
}

TEST(Rule, DimOf) {
  OpBench b;
  const Rule& r = b.rule_of(*b.make(Opcode::kReshape, {"f32[8,6]"}, {}, {}, "f32[2,4,6]"));
  int place = -1;
  EXPECT_EQ(r.dim_of(0, 1, &place), 0);
  EXPECT_EQ(place, 1);
  EXPECT_EQ(r.dim_of(r.num_operands(), 1, &place), 1);
  EXPECT_EQ(place, 0);
  EXPECT_EQ(r.num_factors(), 3);
  EXPECT_EQ(b.rule_of(*b.make(Opcode::kReduce, {"f32[8,4]", "f32[]"},
                              b.attrs(DimsAttrs{b.dims({1})}), {b.reducer(Opcode::kAdd)}))
                .dim_of(2, 1),
            -1);
}

}  // namespace
}  // namespace gspmd
