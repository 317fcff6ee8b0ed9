// Rules of reductions, windows, contractions and the rest, as einsum-like lines.

#include <gtest/gtest.h>

#include "tests/unit/ops/op_bench.h"

namespace gspmd {
namespace {

class Rules : public ::testing::Test {
 protected:
  Attrs over(std::initializer_list<int64_t> d) { return b.attrs(DimsAttrs{b.dims(d)}); }
  Attrs windows(std::initializer_list<WindowDim> w) { return b.attrs(WindowAttrs{b.window(w)}); }
  DotAttrs dot(std::initializer_list<int64_t> lb, std::initializer_list<int64_t> lc,
               std::initializer_list<int64_t> rb, std::initializer_list<int64_t> rc) {
    return {.lhs_batch = b.dims(lb),
            .lhs_contract = b.dims(lc),
            .rhs_batch = b.dims(rb),
            .rhs_contract = b.dims(rc)};
  }
  // dim_labels=b0f_0io->b0f
  ConvAttrs conv1d(WindowDim w) {
    return {.window = b.window({w}),
            .dims = {.input_batch = 0,
                     .input_feature = 2,
                     .kernel_input = 1,
                     .kernel_output = 2,
                     .output_batch = 0,
                     .output_feature = 2,
                     .input_spatial = b.dims({1}),
                     .kernel_spatial = b.dims({0}),
                     .output_spatial = b.dims({1})}};
  }
  // (x, carry) -> (x + carry, x + carry)
  Computation* cumulative_sum(std::string_view shape) {
    Computation* c = b.reducer(Opcode::kAdd, shape);
    Instr* sum = c->root();
    c->set_root(
        b.module().add(c, Opcode::kTuple, b.context().tuple({sum->shape, sum->shape}), {sum, sum}));
    return c;
  }
  std::string conv(std::string_view lhs, std::string_view rhs, const ConvAttrs& a) {
    return b.rule(Opcode::kConvolution, {lhs, rhs}, b.attrs(a));
  }
  OpBench b;
};

TEST_F(Rules, Reduce) {
  auto* add = b.reducer(Opcode::kAdd);
  EXPECT_EQ(b.rule(Opcode::kReduce, {"f32[8,4,2]", "f32[]"}, over({1}), {add}),
            "abc,->ac | b: reduce(sum, by handler)");
  EXPECT_EQ(
      b.rule(Opcode::kReduce, {"f32[8,4]", "f32[]"}, over({0, 1}), {b.reducer(Opcode::kMaximum)}),
      "ab,-> | a: reduce(max, by handler), b: reduce(max, by handler)");
  EXPECT_EQ(b.rule(Opcode::kReduce, {"pred[8]", "pred[]"}, over({0}),
                   {b.reducer(Opcode::kAdd, "pred[]")}),
            "a,-> | a: reduce(or, by handler)");
  EXPECT_EQ(b.rule(Opcode::kReduce, {"f32[8]", "f32[]"}, over({0}), {b.reducer(Opcode::kSubtract)}),
            "a,-> | a: reduce(none, by handler)");
  auto* argmax = b.opaque({"f32[]", "s32[]", "f32[]", "s32[]"}, "(f32[], s32[])");
  EXPECT_EQ(
      b.rule(Opcode::kReduce, {"f32[8,4]", "s32[8,4]", "f32[]", "s32[]"}, over({1}), {argmax}),
      "ab,ab,,->a,a | b: reduce(none, by handler)");
}

TEST_F(Rules, Windows) {
  auto* add = b.reducer(Opcode::kAdd);
  Attrs halves = windows({{.size = 1}, {.size = 2, .stride = 2}});
  EXPECT_EQ(b.rule(Opcode::kReduceWindow, {"f32[8,6]", "f32[]"}, halves, {add}),
            "ab,->ab | b: window");
  EXPECT_EQ(b.rule(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windows({{.size = 1, .pad_low = 1}}),
                   {add}),
            "a,->a | a: window");
  EXPECT_EQ(b.rule(Opcode::kSelectAndScatter, {"f32[8,6]", "f32[8,3]", "f32[]"}, halves,
                   {b.reducer(Opcode::kCompare), add}),
            "ab,ab,->ab | b: window(scatters)");
  const Rule& r = b.rule_of(*b.make(Opcode::kReduceWindow, {"f32[8,6]", "f32[]"}, halves, {add}));
  EXPECT_EQ(r.factor(1).size, 3);  // of the result
  EXPECT_EQ(r.factor(1).window->stride, 2);
}

TEST_F(Rules, Order) {
  Attrs rows = b.attrs(SortAttrs{b.dims({0})});
  EXPECT_EQ(b.rule(Opcode::kSort, {"f32[8,6]"}, rows), "ab->ab | a: whole");
  EXPECT_EQ(b.rule(Opcode::kSort, {"f32[8,6]", "s32[8,6]"}, rows), "ab,ab->ab,ab | a: whole");
  EXPECT_EQ(b.rule(Opcode::kTopK, {"f32[4,8,6]"}, b.attrs(TopKAttrs{.k = 2})),
            "abc->ab_,ab_ | c: whole");
}

TEST_F(Rules, BatchNorm) {
  Attrs last = b.attrs(BatchNormAttrs{.feature_index = 1});
  EXPECT_EQ(b.rule(Opcode::kBatchNormTraining, {"f32[8,4]", "f32[4]", "f32[4]"}, last),
            "ab,b,b->ab,b,b | a: whole");
  EXPECT_EQ(b.rule(Opcode::kBatchNormInference,
                   {"f32[8,4]", "f32[4]", "f32[4]", "f32[4]", "f32[4]"}, last),
            "ab,b,b,b,b->ab");
  EXPECT_EQ(
      b.rule(Opcode::kBatchNormGrad, {"f32[8,4]", "f32[4]", "f32[4]", "f32[4]", "f32[8,4]"}, last),
      "ab,b,b,b,ab->ab,b,b | a: whole");
}

TEST_F(Rules, Scan) {
  Attrs along_1 = b.attrs(ScanAttrs{.dimensions = b.dims({1}), .num_carries = 1});
  EXPECT_EQ(
      b.rule(Opcode::kScan, {"f32[8,5,2]", "f32[8,2]"}, along_1, {cumulative_sum("f32[8,2]")}),
      "abc,ac->abc,ac | b: whole");
  auto* unknown = b.opaque({"f32[8,2]", "f32[8,2]"}, "(f32[8,2], f32[8,2])");
  EXPECT_EQ(b.rule(Opcode::kScan, {"f32[8,5,2]", "f32[8,2]"}, along_1, {unknown}),
            "___,__->___,__");
}

TEST_F(Rules, Dot) {
  EXPECT_EQ(b.rule(Opcode::kDot, {"f32[8,4]", "f32[4,6]"}, b.attrs(dot({}, {1}, {}, {0}))),
            "ab,bc->ac | b: reduce(sum)");
  EXPECT_EQ(b.rule(Opcode::kDot, {"f32[4,8,2]", "f32[4,2,6]"}, b.attrs(dot({0}, {2}, {0}, {1}))),
            "abc,acd->abd | c: reduce(sum)");
  EXPECT_EQ(b.rule(Opcode::kDot, {"f32[2,3,8,4]", "f32[4,3,6,2]"},
                   b.attrs(dot({1, 0}, {3}, {1, 3}, {0}))),
            "abcd,dbea->bace | d: reduce(sum)");
  EXPECT_EQ(b.rule(Opcode::kDot, {"f32[8]", "f32[6]"}, b.attrs(dot({}, {}, {}, {}))), "a,b->ab");
}

TEST_F(Rules, RaggedDot) {
  DotAttrs rows = dot({}, {1}, {}, {1});
  rows.lhs_ragged = b.dims({0});
  rows.rhs_group = b.dims({0});
  EXPECT_EQ(b.rule(Opcode::kRaggedDot, {"f32[8,4]", "f32[3,4,6]", "s32[3]"}, b.attrs(rows)),
            "ab,_bc,_->ac | a: whole, b: reduce(sum)");
  DotAttrs contracting = dot({}, {0}, {}, {0});
  contracting.lhs_ragged = b.dims({0});
  EXPECT_EQ(b.rule(Opcode::kRaggedDot, {"f32[8,4]", "f32[8,6]", "s32[3]"}, b.attrs(contracting)),
            "ab,ac,_->_bc | a: whole");
  // Group sizes of their own for each batch: only the free dimension of rhs is sure.
  DotAttrs batched = dot({0}, {2}, {0}, {2});
  batched.lhs_ragged = b.dims({1});
  batched.rhs_group = b.dims({1});
  EXPECT_EQ(
      b.rule(Opcode::kRaggedDot, {"f32[2,8,4]", "f32[2,3,4,6]", "s32[2,3]"}, b.attrs(batched)),
      "abc,a_cd,__->abd | a: whole, b: whole, c: whole");
}

TEST_F(Rules, ScaledDot) {
  Attrs a = b.attrs(dot({}, {1}, {}, {1}));
  auto rule = [&](std::string_view lhs_scale, std::string_view rhs_scale) {
    return b.rule(Opcode::kScaledDot, {"bf16[8,64]", lhs_scale, "bf16[6,64]", rhs_scale}, a);
  };
  EXPECT_EQ(rule("bf16[8,2]", "bf16[6,2]"),
            "a(bc),ab,d(bc),db->ad | b: reduce(sum), c: reduce(sum)");
  EXPECT_EQ(rule("bf16[8,2]", "bf16[6,1]"),
            "a(bc),ab,d(bc),d_->ad | b: reduce(sum), c: reduce(sum)");
  EXPECT_EQ(rule("bf16[4,64]", "bf16[]"), "(ab)c,ac,dc,->(ab)d | c: reduce(sum)");
  EXPECT_EQ(rule("bf16[8,2]", "bf16[6,4]"), "ab,a_,cb,c_->ac | b: whole");
}

TEST_F(Rules, Convolution) {
  WindowDim same{.size = 3, .pad_low = 1, .pad_high = 1};
  EXPECT_EQ(conv("f32[2,8,4]", "f32[3,4,6]", conv1d(same)),
            "abc,dce->abe | b: window, c: reduce(sum), d: reduce(sum, by handler)");
  EXPECT_EQ(conv("f32[2,8,4]", "f32[1,4,6]", conv1d({})), "abc,_cd->abd | c: reduce(sum)");
  EXPECT_EQ(conv("f32[2,8,4]", "f32[1,4,6]", conv1d({.stride = 2})),
            "abc,_cd->abd | b: window, c: reduce(sum)");
  // The kernel covers the image: a contraction; not so where it is dilated, padded or reversed.
  EXPECT_EQ(conv("f32[2,8,4]", "f32[8,4,6]", conv1d({.size = 8})),
            "abc,bcd->a_d | b: reduce(sum), c: reduce(sum)");
  EXPECT_EQ(conv("f32[2,8,4]", "f32[8,4,6]", conv1d({.size = 8, .reversal = true})),
            "abc,dce->abe | b: window, c: reduce(sum), d: reduce(sum, by handler)");
}

TEST_F(Rules, ConvolutionGroups) {
  WindowDim same{.size = 3, .pad_low = 1, .pad_high = 1};
  ConvAttrs a = conv1d(same);
  a.feature_groups = 2;
  EXPECT_EQ(conv("f32[2,8,4]", "f32[3,2,6]", a),
            "ab(cd),ed(cf)->ab(cf) | b: window, d: reduce(sum), e: reduce(sum, by handler)");
  a.feature_groups = 4;  // depthwise, two features out of each
  EXPECT_EQ(conv("f32[2,8,4]", "f32[3,1,8]", a),
            "abc,d_(ce)->ab(ce) | b: window, d: reduce(sum, by handler)");
  a.feature_groups = 1;
  a.batch_groups = 2;
  EXPECT_EQ(conv("f32[6,8,4]", "f32[3,4,8]", a),
            "(ab)cd,ed(af)->bc(af) | c: window, d: reduce(sum), e: reduce(sum, by handler)");
}

TEST_F(Rules, Transforms) {
  EXPECT_EQ(b.rule(Opcode::kFft, {"c64[3,4]"}, b.attrs(FftAttrs{FftType::kIfft, b.dims({4})})),
            "ab->ab | b: whole");
  EXPECT_EQ(b.rule(Opcode::kFft, {"f32[3,4,8]"}, b.attrs(FftAttrs{FftType::kRfft, b.dims({4, 8})})),
            "abc->abd | b: whole, c: whole, d: whole");
  EXPECT_EQ(b.rule(Opcode::kCholesky, {"f32[3,4,4]"}), "abc->abc | b: whole, c: whole");
  EXPECT_EQ(b.rule(Opcode::kTriangularSolve, {"f32[3,4,4]", "f32[3,4,7]"},
                   b.attrs(TriangularSolveAttrs{.left_side = true})),
            "abc,ade->ade | b: whole, c: whole, d: whole");
  EXPECT_EQ(b.rule(Opcode::kTriangularSolve, {"f32[3,4,4]", "f32[3,7,4]"}),
            "abc,ade->ade | b: whole, c: whole, e: whole");
}

TEST_F(Rules, WholeOrNone) {
  EXPECT_EQ(b.rule(Opcode::kRng, {"f32[]", "f32[]"}, {}, {}, "f32[8,4]"),
            ",->ab | a: whole, b: whole");
  EXPECT_EQ(b.rule(Opcode::kRngBitGenerator, {"u64[2]"}, {}, {}, "(u64[2], u32[8])"),
            "_->a,b | a: whole, b: whole");
  EXPECT_EQ(b.rule(Opcode::kRngGetAndUpdateState, {}, {}, {}, "u64[1]"), "->a | a: whole");
  EXPECT_EQ(b.rule(Opcode::kAllReduce, {"f32[8,4]"}), "__->__");
  EXPECT_EQ(b.rule(Opcode::kCollectivePermute, {"f32[8,4]"}), "__->__");
}

}  // namespace
}  // namespace gspmd
