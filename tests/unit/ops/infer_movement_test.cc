// Shapes of element-wise operators, data movement, indexing and control flow: right ones, and what
// is refused how.

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/ops/op_bench.h"

namespace gspmd {
namespace {

using List = std::initializer_list<int64_t>;

class InferMovement : public ::testing::Test {
 protected:
  Attrs over(List d) { return b.attrs(DimsAttrs{b.dims(d)}); }
  OpBench b;
};

TEST_F(InferMovement, Elementwise) {
  EXPECT_EQ(b.infer(Opcode::kAdd, {"f32[8,4]", "f32[8,4]"}), "f32[8,4]");
  EXPECT_EQ(b.infer(Opcode::kAdd, {"bf16[8]", "f32[8]"}), "f32[8]");  // as old programs mix them
  EXPECT_EQ(b.infer(Opcode::kCompare, {"s32[8]", "s32[8]"}), "pred[8]");
  EXPECT_EQ(b.infer(Opcode::kIsFinite, {"f32[8]"}), "pred[8]");
  EXPECT_EQ(b.infer(Opcode::kAbs, {"c64[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kAbs, {"s32[8]"}), "s32[8]");
  EXPECT_EQ(b.infer(Opcode::kReal, {"c128[8]"}), "f64[8]");
  EXPECT_EQ(b.infer(Opcode::kComplex, {"f32[8]", "f32[8]"}), "c64[8]");
  EXPECT_EQ(b.infer(Opcode::kSelect, {"pred[]", "f32[8]", "f32[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kClamp, {"f32[]", "f32[8]", "f32[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kMap, {"f32[8]", "f32[8]"}, over({0}), {b.reducer(Opcode::kCompare)}),
            "pred[8]");
}

TEST_F(InferMovement, ElementwiseRefuses) {
  EXPECT_EQ(b.infer(Opcode::kAdd, {"f32[8]", "f32[4]"}),
            "error: add: operand 0 is f32[8] and operand 1 is f32[4]: their sizes must be equal");
  EXPECT_EQ(b.infer(Opcode::kMultiply, {"f32[8]", "s32[8]"}),
            "error: multiply: operand 0 has type f32 and operand 1 has s32 (convert one of them)");
  EXPECT_EQ(b.infer(Opcode::kSelect, {"s32[8]", "f32[8]", "f32[8]"}),
            "error: select: the predicate has type s32 (it must be pred)");
  EXPECT_EQ(b.infer(Opcode::kSelect, {"pred[4]", "f32[8]", "f32[8]"}),
            "error: select: the predicate is pred[4], the other operands are f32[8] (it must be a "
            "scalar or have the "
            "same sizes)");
  EXPECT_EQ(b.infer(Opcode::kClamp, {"f32[]", "f32[8]", "f32[4]"}),
            "error: clamp: the upper bound is f32[4], the other operands are f32[8] (it must be a "
            "scalar or have the "
            "same sizes)");
  EXPECT_EQ(b.infer(Opcode::kComplex, {"s32[8]", "s32[8]"}),
            "error: complex: parts of type s32 (the parts are f32 or f64)");
  EXPECT_EQ(b.infer(Opcode::kNegate, {"(f32[8])"}),
            "error: negate: operand 0 is (f32[8]), not an array (take the array out with "
            "get-tuple-element)");
}

TEST_F(InferMovement, Moves) {
  EXPECT_EQ(b.infer(Opcode::kTranspose, {"f32[8,3,4]"}, over({2, 0, 1})), "f32[4,8,3]");
  EXPECT_EQ(b.infer(Opcode::kReverse, {"f32[8,3]"}, over({1})), "f32[8,3]");
  EXPECT_EQ(b.infer(Opcode::kConcatenate, {"f32[8,3]", "f32[8,5]", "f32[8,0]"}, over({1})),
            "f32[8,8]");
  auto slice = [&](List starts, List limits, List strides) {
    return b.infer(Opcode::kSlice, {"f32[8]"},
                   b.attrs(SliceAttrs{b.dims(starts), b.dims(limits), b.dims(strides)}));
  };
  EXPECT_EQ(slice({1}, {8}, {3}), "f32[3]");
  EXPECT_EQ(slice({8}, {8}, {1}), "f32[0]");
  EXPECT_EQ(slice({0}, {9}, {1}),
            "error: slice: [0:9:1] of dimension 0 with 8 elements (0 <= start <= limit <= size and "
            "a positive stride)");
  auto pad = [&](std::string_view x, int64_t low, int64_t high, int64_t interior) {
    return b.infer(Opcode::kPad, {x, "f32[]"},
                   b.attrs(PadAttrs{b.dims({low}), b.dims({high}), b.dims({interior})}));
  };
  EXPECT_EQ(pad("f32[4]", -1, -2, 2), "f32[7]");
  EXPECT_EQ(pad("f32[0]", 2, 1, 3), "f32[3]");
  EXPECT_EQ(pad("f32[4]", -3, -2, 0),
            "error: pad: dimension 0 of 4 elements padded by -3_-2_0 (the result's size and the "
            "interior padding may "
            "not be negative)");
}

TEST_F(InferMovement, MovesRefuse) {
  EXPECT_EQ(
      b.infer(Opcode::kTranspose, {"f32[8,3]"}, over({0})),
      "error: transpose: dimensions has 1 entries for rank 2 (a permutation of all dimensions)");
  EXPECT_EQ(b.infer(Opcode::kTranspose, {"f32[8,3]"}, over({0, 0})),
            "error: transpose: dimensions names dimension 0 twice");
  EXPECT_EQ(b.infer(Opcode::kConcatenate, {"f32[8,3]", "f32[7,5]"}, over({1})),
            "error: concatenate: dimension 0 of operands 0 and 1: sizes 8 and 7 must be equal");
  EXPECT_EQ(b.infer(Opcode::kConcatenate, {"f32[8]", "s32[8]"}, over({0})),
            "error: concatenate: operand 0 is f32[8] and operand 1 is s32[8]");
}

TEST_F(InferMovement, NumbersTooLargeToCountWith) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  auto pad = [&](int64_t low, int64_t high, int64_t interior) {
    return b.infer(Opcode::kPad, {"f32[4]", "f32[]"},
                   b.attrs(PadAttrs{b.dims({low}), b.dims({high}), b.dims({interior})}));
  };
  EXPECT_EQ(pad(kMax, 0, 0),
            "error: pad: dimension 0 is padded by 9223372036854775807, which is too large");
  EXPECT_EQ(pad(0, 0, int64_t{1} << 40), "f32[3298534883332]");
  Attrs joined = over({0});
  EXPECT_EQ(
      b.infer(Opcode::kConcatenate, {"u8[9223372036854775807]", "u8[9223372036854775807]"}, joined),
      "error: concatenate: the result has too many elements to count");
  WindowDim w;
  w.window_dilation = kMax;
  EXPECT_EQ(b.infer(Opcode::kReduceWindow, {"f32[4]", "f32[]"}, b.attrs(WindowAttrs{b.window({w})}),
                    {b.reducer(Opcode::kAdd)}),
            "error: reduce-window: window dimension 0: 9223372036854775807 is too large");
}

TEST_F(InferMovement, Dynamic) {
  Attrs two = b.attrs(DynamicSliceAttrs{b.dims({2})});
  EXPECT_EQ(b.infer(Opcode::kDynamicSlice, {"f32[8]", "s32[]"}, two), "f32[2]");
  EXPECT_EQ(b.infer(Opcode::kDynamicSlice, {"f32[1]", "s32[]"}, two),
            "error: dynamic-slice: a slice of 2 from dimension 0 with 1 elements");
  EXPECT_EQ(b.infer(Opcode::kDynamicSlice, {"f32[8]", "f32[]"}, two),
            "error: dynamic-slice: a start index is f32[] (integer scalars are needed)");
  EXPECT_EQ(b.infer(Opcode::kDynamicSlice, {"f32[8]"}, two),
            "error: dynamic-slice: 0 start indices for rank 1 (one scalar for each dimension)");
  EXPECT_EQ(b.infer(Opcode::kDynamicUpdateSlice, {"f32[8]", "f32[2]", "s32[]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kDynamicUpdateSlice, {"f32[8]", "f32[9]", "s32[]"}),
            "error: dynamic-update-slice: an update of 9 in dimension 0 with 8 elements");
  EXPECT_EQ(
      b.infer(Opcode::kDynamicUpdateSlice, {"f32[8]", "f32[2,1]", "s32[]"}),
      "error: dynamic-update-slice: an update f32[2,1] of f32[8] (rank and type must be the same)");
  EXPECT_EQ(b.infer(Opcode::kGetDimensionSize, {"f32[8]"}, over({0})), "s32[]");
  EXPECT_EQ(b.infer(Opcode::kSetDimensionSize, {"f32[8,4]", "s32[]"}, over({1})), "f32[8,<=4]");
}

TEST_F(InferMovement, Gather) {
  GatherAttrs a;
  a.offset_dims = b.dims({0, 2});
  a.collapsed_slice_dims = b.dims({0});
  a.start_index_map = b.dims({0});
  a.slice_sizes = b.dims({1, 3, 2});
  a.index_vector_dim = 1;
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[4,3,2]", "s32[5]"}, b.attrs(a)), "f32[3,5,2]");
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[4,3,2]", "s32[5,2]"}, b.attrs(a)),
            "error: gather: the index vectors' length and start_index_map's: sizes 2 and 1 must be "
            "equal");
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[4,3,2]", "f32[5]"}, b.attrs(a)),
            "error: gather: indices of type f32 (integers are needed)");
  a.slice_sizes = b.dims({2, 3, 2});
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[4,3,2]", "s32[5]"}, b.attrs(a)),
            "error: gather: dimension 0 is collapsed or batching, and its slice size is 2 (it must "
            "be 1)");
  a.slice_sizes = b.dims({1, 4, 2});
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[4,3,2]", "s32[5]"}, b.attrs(a)),
            "error: gather: slices of 4 from dimension 1 with 3 elements");
}

TEST_F(InferMovement, Scatter) {
  ScatterAttrs a;
  a.update_window_dims = b.dims({1});
  a.inserted_window_dims = b.dims({0});
  a.scatter_dims_to_operand_dims = b.dims({0});
  a.index_vector_dim = 1;
  EXPECT_EQ(b.infer(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[8,5]"}, b.attrs(a)),
            "f32[9,5]");
  EXPECT_EQ(b.infer(Opcode::kScatter, {"f32[9,5]", "s32[9,5]", "s32[8,1]", "f32[8,5]", "s32[8,5]"},
                    b.attrs(a)),
            "(f32[9,5], s32[9,5])");
  EXPECT_EQ(b.infer(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[8,5,1]"}, b.attrs(a)),
            "error: scatter: the updates' rank and window plus scatter dimensions: sizes 3 and 2 "
            "must be equal");
  EXPECT_EQ(b.infer(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[8,5]", "f32[8,5]"}, b.attrs(a)),
            "error: scatter: 4 operands (n arrays, indices, n updates)");
}

TEST_F(InferMovement, ScatterRefusesMismatchedUpdates) {
  ScatterAttrs a;
  a.update_window_dims = b.dims({1});
  a.inserted_window_dims = b.dims({0});
  a.scatter_dims_to_operand_dims = b.dims({0});
  a.index_vector_dim = 1;
  EXPECT_EQ(b.infer(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[8,6]"}, b.attrs(a)),
            "error: scatter: update dimension 1 has 6 elements, dimension 1 of the operand 5 "
            "(windows must fit)");
  EXPECT_EQ(b.infer(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[7,5]"}, b.attrs(a)),
            "error: scatter: dimension 0 of the indices and 0 of the updates: sizes 8 and 7 must "
            "be equal");
}

TEST_F(InferMovement, DimensionsInOrder) {
  GatherAttrs g;
  g.offset_dims = b.dims({2, 1});
  g.start_index_map = b.dims({0});
  g.collapsed_slice_dims = b.dims({0});
  g.slice_sizes = b.dims({1, 3, 2});
  g.index_vector_dim = 1;
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[8,3,2]", "s32[5]"}, b.attrs(g)),
            "error: gather: offset_dims {2,1} is not in order (sort it)");
  ScatterAttrs s;
  s.update_window_dims = b.dims({1});
  s.inserted_window_dims = b.dims({1, 0});
  s.scatter_dims_to_operand_dims = b.dims({0});
  s.index_vector_dim = 1;
  EXPECT_EQ(b.infer(Opcode::kScatter, {"f32[8,3,2]", "s32[5]", "f32[5,2]"}, b.attrs(s),
                    {b.reducer(Opcode::kAdd)}),
            "error: scatter: inserted_window_dims {1,0} is not in order (sort it)");
}

TEST_F(InferMovement, ScatterRefusesOtherFunctions) {
  ScatterAttrs s;
  s.inserted_window_dims = b.dims({0});
  s.scatter_dims_to_operand_dims = b.dims({0});
  s.index_vector_dim = 1;
  auto scatter = [&](std::string_view updates, Computation* f) {
    return b.infer(Opcode::kScatter, {"f32[8]", "s32[5]", updates}, b.attrs(s), {f});
  };
  EXPECT_EQ(scatter("f32[5]", b.reducer(Opcode::kAdd)), "f32[8]");
  EXPECT_EQ(scatter("s32[5]", b.reducer(Opcode::kAdd)),
            "error: scatter: updates s32[5] for f32[8] (convert one of them)");
  EXPECT_EQ(scatter("f32[5]", b.opaque({"f32[]"}, "f32[]")),
            "error: scatter: opaque has 1 parameters, 1 arrays need 2 (the current value and the "
            "update of each)");
  EXPECT_EQ(scatter("f32[5]", b.opaque({"f32[]", "f32[]"}, "(f32[], f32[])")),
            "error: scatter: opaque.1 gives 2 values for 1 arrays");
}

TEST_F(InferMovement, StartIndices) {
  Attrs sizes = b.attrs(DynamicSliceAttrs{b.dims({2, 2})});
  EXPECT_EQ(b.infer(Opcode::kDynamicSlice, {"f32[8,3]", "s32[2]"}, sizes),
            "error: dynamic-slice: 1 start indices for rank 2 (one scalar for each dimension)");
}

TEST_F(InferMovement, BatchingDimensions) {
  GatherAttrs a;
  a.operand_batching_dims = b.dims({0});
  a.start_indices_batching_dims = b.dims({1});
  a.collapsed_slice_dims = b.dims({1});
  a.start_index_map = b.dims({1});
  a.slice_sizes = b.dims({1, 1});
  a.index_vector_dim = 2;
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[4,5]", "s32[8,4,1]"}, b.attrs(a)), "f32[8,4]");
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[4,5]", "s32[8,3,1]"}, b.attrs(a)),
            "error: gather: batching dimensions 0 of the operand and 1 of the indices: sizes 4 and "
            "3 must be equal");
  a.start_indices_batching_dims = b.dims({2});
  EXPECT_EQ(b.infer(Opcode::kGather, {"f32[4,5]", "s32[8,3,1]"}, b.attrs(a)),
            "error: gather: batching dimension 2 of the indices is index_vector_dim");
  a.collapsed_slice_dims = b.dims({0});
  EXPECT_EQ(
      b.infer(Opcode::kGather, {"f32[4,5]", "s32[8,4,1]"}, b.attrs(a)),
      "error: gather: collapsed_slice_dims and operand_batching_dims names dimension 0 twice");
}

TEST_F(InferMovement, Tuples) {
  EXPECT_EQ(b.infer(Opcode::kTuple, {"f32[8]", "(s32[])"}), "(f32[8], (s32[]))");
  EXPECT_EQ(b.infer(Opcode::kTuple, {}), "()");
  EXPECT_EQ(b.infer(Opcode::kGetTupleElement, {"(f32[8], s32[])"}, b.attrs(IndexAttrs{1})),
            "s32[]");
  EXPECT_EQ(b.infer(Opcode::kGetTupleElement, {"(f32[8], s32[])"}, b.attrs(IndexAttrs{2})),
            "error: get-tuple-element: element 2 of a tuple of 2");
  EXPECT_EQ(b.infer(Opcode::kGetTupleElement, {"f32[8]"}, b.attrs(IndexAttrs{0})),
            "error: get-tuple-element: the operand is f32[8] (a tuple is needed)");
  EXPECT_EQ(b.infer(Opcode::kOptimizationBarrier, {"(f32[8], s32[])"}), "(f32[8], s32[])");
}

TEST_F(InferMovement, BranchesOfAPredicate) {
  Computation* f = b.opaque({"f32[]"}, "f32[]");
  EXPECT_EQ(b.infer(Opcode::kConditional, {"pred[]", "f32[]"}, {}, {f}),
            "error: conditional: 1 branches for a pred[] chooser (two are needed)");
  EXPECT_EQ(b.infer(Opcode::kConditional, {"s32[]", "f32[]"}, {}, {f}), "f32[]");
  EXPECT_EQ(b.infer(Opcode::kFusion, {"f32[8]"}, {}, {f}),
            "error: fusion: parameter 0 of opaque is f32[] and gets f32[8]");
  EXPECT_EQ(b.infer(Opcode::kCall, {"f32[8]"}),
            "error: call: 0 computations are called (one is needed)");
}

TEST_F(InferMovement, ControlFlow) {
  auto* condition = b.opaque({"(s32[])"}, "pred[]");
  auto* body = b.opaque({"(s32[])"}, "(s32[])");
  auto* wrong = b.opaque({"(s32[])"}, "(f32[])");
  EXPECT_EQ(b.infer(Opcode::kWhile, {"(s32[])"}, {}, {condition, body}), "(s32[])");
  EXPECT_EQ(b.infer(Opcode::kWhile, {"(s32[])"}, {}, {condition, wrong}),
            "error: while: the body gives (f32[]) for a state (s32[])");
  EXPECT_EQ(b.infer(Opcode::kWhile, {"(s32[])"}, {}, {body, body}),
            "error: while: the condition gives (s32[]) (it must give pred[])");
  EXPECT_EQ(b.infer(Opcode::kConditional, {"pred[]", "(s32[])", "(s32[])"}, {}, {body, body}),
            "(s32[])");
  EXPECT_EQ(b.infer(Opcode::kConditional, {"pred[]", "(s32[])", "(s32[])"}, {}, {body, wrong}),
            "error: conditional: branch 0 gives (s32[]) and branch 1 gives (f32[])");
  EXPECT_EQ(b.infer(Opcode::kConditional, {"f32[]", "(s32[])", "(s32[])"}, {}, {body, body}),
            "error: conditional: the chooser is f32[] (pred[] or s32[])");
  auto* unary = b.opaque({"f32[4]"}, "f32[2]");
  EXPECT_EQ(b.infer(Opcode::kCall, {"f32[4]"}, {}, {unary}), "f32[2]");
  EXPECT_EQ(b.infer(Opcode::kCall, {"f32[5]"}, {}, {unary}),
            "error: call: parameter 0 of opaque.3 is f32[4] and gets f32[5]");
}

}  // namespace
}  // namespace gspmd
