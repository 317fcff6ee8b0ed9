// Shapes of reductions, windows, sorts, scans and batch norms: right ones, and what is refused with
// which words.

#include <gtest/gtest.h>

#include "tests/unit/ops/op_bench.h"

namespace gspmd {
namespace {

class InferReductions : public ::testing::Test {
 protected:
  Attrs over(std::initializer_list<int64_t> d) { return b.attrs(DimsAttrs{b.dims(d)}); }
  Attrs windows(std::initializer_list<WindowDim> w) { return b.attrs(WindowAttrs{b.window(w)}); }
  OpBench b;
};

TEST_F(InferReductions, Reduce) {
  auto* add = b.reducer(Opcode::kAdd);
  EXPECT_EQ(b.infer(Opcode::kReduce, {"f32[8,4,2]", "f32[]"}, over({1}), {add}), "f32[8,2]");
  EXPECT_EQ(b.infer(Opcode::kReduce, {"f32[8,4,2]", "f32[]"}, over({2, 0, 1}), {add}), "f32[]");
  EXPECT_EQ(b.infer(Opcode::kReduce, {"f32[8]", "f32[]"}, over({}), {add}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kReduce, {"bf16[8]", "f32[]"}, over({0}), {add}), "f32[]");
  EXPECT_EQ(b.infer(Opcode::kReduce, {"f32[8,4]", "s32[8,4]", "f32[]", "s32[]"}, over({1})),
            "(f32[8], s32[8])");
}

TEST_F(InferReductions, ReduceRefuses) {
  auto* add = b.reducer(Opcode::kAdd);
  EXPECT_EQ(b.infer(Opcode::kReduce, {"f32[8,4]", "f32[]"}, over({2}), {add}),
            "error: reduce: dimensions names dimension 2 of a tensor of rank 2 (dimensions count "
            "from 0 to 1)");
  EXPECT_EQ(b.infer(Opcode::kReduce, {"f32[8,4]", "f32[]"}, over({1, 1}), {add}),
            "error: reduce: dimensions names dimension 1 twice");
  EXPECT_EQ(b.infer(Opcode::kReduce, {"f32[8,4]", "f32[4]"}, over({1}), {add}),
            "error: reduce: initial value 0 is f32[4], not a scalar");
  EXPECT_EQ(
      b.infer(Opcode::kReduce, {"f32[8,4]", "s32[]"}, over({1}), {add}),
      "error: reduce: operand 0 is f32[8,4] and its initial value s32[] (convert one of them)");
  EXPECT_EQ(
      b.infer(Opcode::kReduce, {"f32[8,4]", "f32[]", "f32[]"}, over({1}), {add}),
      "error: reduce: 3 operands: an even number is needed (as many initial values as arrays)");
  EXPECT_EQ(
      b.infer(Opcode::kReduce, {"f32[8,4]", "s32[8,5]", "f32[]", "s32[]"}, over({1})),
      "error: reduce: operand 0 is f32[8,4] and operand 1 is s32[8,5]: their sizes must be equal");
  EXPECT_EQ(b.infer(Opcode::kReduce, {"f32[8,4]", "s32[8,4]", "f32[]", "s32[]"}, over({1}), {add}),
            "error: reduce: reducer add has 2 parameters, 2 arrays need 4 (one accumulator and one "
            "element for "
            "each array)");
  EXPECT_EQ(b.infer(Opcode::kReduce, {"(f32[8])", "f32[]"}, over({}), {add}),
            "error: reduce: operand 0 is (f32[8]), not an array (take the array out with "
            "get-tuple-element)");
}

TEST_F(InferReductions, ReduceWindow) {
  auto* add = b.reducer(Opcode::kAdd);
  struct Case {
    WindowDim w;
    std::string_view in, out;
  };
  const Case kCases[] = {
      {{.size = 3}, "f32[8]", "f32[6]"},
      {{.size = 3, .stride = 2}, "f32[8]", "f32[3]"},
      {{.size = 3, .pad_low = 1, .pad_high = 1}, "f32[8]", "f32[8]"},
      {{.size = 3, .pad_low = -2}, "f32[8]", "f32[4]"},
      {{.size = 2, .base_dilation = 3}, "f32[4]", "f32[9]"},
      {{.size = 3, .window_dilation = 3}, "f32[8]", "f32[2]"},
      {{.size = 8}, "f32[8]", "f32[1]"},
      {{.size = 9}, "f32[8]", "f32[0]"},
      {{.size = 2}, "f32[0]", "f32[0]"},
      {{.size = 2, .pad_low = 2}, "f32[0]", "f32[1]"},
      {{.size = 1}, "f32[8]", "f32[8]"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(b.infer(Opcode::kReduceWindow, {c.in, "f32[]"}, windows({c.w}), {add}), c.out)
        << c.in;
  }
  EXPECT_EQ(b.infer(Opcode::kReduceWindow, {"f32[8,6]", "s32[8,6]", "f32[]", "s32[]"},
                    windows({{.size = 1}, {.size = 2, .stride = 2}})),
            "(f32[8,3], s32[8,3])");
}

TEST_F(InferReductions, ReduceWindowRefuses) {
  EXPECT_EQ(b.infer(Opcode::kReduceWindow, {"f32[8,4]", "f32[]"}, windows({{.size = 3}})),
            "error: reduce-window: window has 1 dimensions, 2 are needed");
  EXPECT_EQ(
      b.infer(Opcode::kReduceWindow, {"f32[8]", "f32[]"}, windows({{.size = 3, .stride = 0}})),
      "error: reduce-window: window dimension 0: size 3, stride 0, lhs_dilate 1, rhs_dilate 1 must "
      "be positive");
}

TEST_F(InferReductions, SelectAndScatter) {
  Attrs halves = windows({{.size = 2, .stride = 2}});
  EXPECT_EQ(b.infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[4]", "f32[]"}, halves), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[5]", "f32[]"}, halves),
            "error: select-and-scatter: dimension 0: the window has 4 positions and the source 5 "
            "elements (the "
            "source has one element for each position of the window on the operand)");
  EXPECT_EQ(
      b.infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[4,1]", "f32[]"}, halves),
      "error: select-and-scatter: operand is f32[8] and source f32[4,1]: ranks must be equal");
  EXPECT_EQ(b.infer(Opcode::kSelectAndScatter, {"f32[8]", "f32[4]"}, halves),
            "error: select-and-scatter: 2 operands, operand 2 is missing");
}

TEST_F(InferReductions, Sort) {
  auto* less = b.reducer(Opcode::kCompare);
  auto along = [&](std::initializer_list<int64_t> d) { return b.attrs(SortAttrs{b.dims(d)}); };
  EXPECT_EQ(b.infer(Opcode::kSort, {"f32[8,4]"}, along({1}), {less}), "f32[8,4]");
  EXPECT_EQ(b.infer(Opcode::kSort, {"f32[8]", "s32[8]"}, along({0})), "(f32[8], s32[8])");
  EXPECT_EQ(b.infer(Opcode::kSort, {"f32[8]", "s32[4]"}, along({0})),
            "error: sort: operand 0 is f32[8] and operand 1 is s32[4]: their sizes must be equal");
  EXPECT_EQ(
      b.infer(Opcode::kSort, {"f32[8]", "s32[8]"}, along({0}), {less}),
      "error: sort: comparator compare has 2 parameters, 2 operands need 4 (two for each operand)");
  EXPECT_EQ(b.infer(Opcode::kSort, {"f32[8]"}, along({})),
            "error: sort: dimensions has 0 entries, one is needed");
  EXPECT_EQ(b.infer(Opcode::kSort, {"f32[8]"}, along({1})),
            "error: sort: dimensions names dimension 1 of a tensor of rank 1 (dimensions count "
            "from 0 to 0)");
}

TEST_F(InferReductions, TopK) {
  auto k = [&](int64_t n) { return b.attrs(TopKAttrs{.k = n}); };
  EXPECT_EQ(b.infer(Opcode::kTopK, {"bf16[2,8]"}, k(3)), "(bf16[2,3], s32[2,3])");
  EXPECT_EQ(b.infer(Opcode::kTopK, {"f32[8]"}, k(9)),
            "error: topk: k is 9 and the last dimension has 8 elements");
  EXPECT_EQ(b.infer(Opcode::kTopK, {"f32[]"}, k(0)),
            "error: topk: the operand is a scalar (it needs a dimension to choose from)");
}

TEST_F(InferReductions, BatchNorm) {
  Attrs last = b.attrs(BatchNormAttrs{.epsilon = 0.5, .feature_index = 1});
  EXPECT_EQ(b.infer(Opcode::kBatchNormTraining, {"f32[8,4]", "f32[4]", "f32[4]"}, last),
            "(f32[8,4], f32[4], f32[4])");
  EXPECT_EQ(b.infer(Opcode::kBatchNormInference,
                    {"f32[8,4]", "f32[4]", "f32[4]", "f32[4]", "f32[4]"}, last),
            "f32[8,4]");
  EXPECT_EQ(
      b.infer(Opcode::kBatchNormGrad, {"f32[8,4]", "f32[4]", "f32[4]", "f32[4]", "f32[8,4]"}, last),
      "(f32[8,4], f32[4], f32[4])");
  EXPECT_EQ(b.infer(Opcode::kBatchNormTraining, {"f32[8,4]", "f32[4]", "f32[8]"}, last),
            "error: batch-norm-training: operand 2 is f32[8]: one element for each of the 4 "
            "features is needed");
  EXPECT_EQ(
      b.infer(Opcode::kBatchNormGrad, {"f32[8,4]", "f32[4]", "f32[4]", "f32[4]", "f32[4,4]"}, last),
      "error: batch-norm-grad: operand 4 is f32[4,4] and operand 0 f32[8,4]: their sizes must be "
      "equal");
  EXPECT_EQ(b.infer(Opcode::kBatchNormInference, {"f32[8]", "f32[4]", "f32[4]", "f32[4]", "f32[4]"},
                    last),
            "error: batch-norm-inference: feature_index names dimension 1 of a tensor of rank 1 "
            "(dimensions count "
            "from 0 to 0)");
}

TEST_F(InferReductions, Scan) {
  Attrs along_1 = b.attrs(ScanAttrs{.dimensions = b.dims({1}), .num_carries = 1});
  auto* body = b.opaque({"f32[8,2]", "s32[]"}, "(f32[8,3], s32[])");
  EXPECT_EQ(b.infer(Opcode::kScan, {"f32[8,5,2]", "s32[]"}, along_1, {body}),
            "(f32[8,5,3], s32[])");
  EXPECT_EQ(b.infer(Opcode::kScan, {"s32[]"}, along_1, {body}),
            "error: scan: 1 operands with num_carries 1: at least one input is needed");
  EXPECT_EQ(b.infer(Opcode::kScan, {"f32[8,5,2]", "f32[4,6]", "s32[]"}, along_1, {body}),
            "error: scan: scanned dimension of operands 0 and 1: sizes 5 and 6 must be equal");
}

}  // namespace
}  // namespace gspmd
