// Shapes of contractions, transforms, random numbers, collectives and transfers: right ones, and
// what is refused how.

#include <gtest/gtest.h>

#include "tests/unit/ops/op_bench.h"

namespace gspmd {
namespace {

class InferContractions : public ::testing::Test {
 protected:
  DotAttrs dot(std::initializer_list<int64_t> lb, std::initializer_list<int64_t> lc,
               std::initializer_list<int64_t> rb, std::initializer_list<int64_t> rc) {
    return {.lhs_batch = b.dims(lb),
            .lhs_contract = b.dims(lc),
            .rhs_batch = b.dims(rb),
            .rhs_contract = b.dims(rc)};
  }
  // dim_labels=b01f_01io->b01f
  ConvAttrs conv2d(WindowDim w0, WindowDim w1) {
    return {.window = b.window({w0, w1}),
            .dims = {.input_batch = 0,
                     .input_feature = 3,
                     .kernel_input = 2,
                     .kernel_output = 3,
                     .output_batch = 0,
                     .output_feature = 3,
                     .input_spatial = b.dims({1, 2}),
                     .kernel_spatial = b.dims({0, 1}),
                     .output_spatial = b.dims({1, 2})}};
  }
  OpBench b;
};

TEST_F(InferContractions, Dot) {
  EXPECT_EQ(b.infer(Opcode::kDot, {"f32[8,4]", "f32[4,6]"}, b.attrs(dot({}, {1}, {}, {0}))),
            "f32[8,6]");
  EXPECT_EQ(b.infer(Opcode::kDot, {"f32[8,4]", "f32[3,6]"}, b.attrs(dot({}, {}, {}, {}))),
            "f32[8,4,3,6]");
  EXPECT_EQ(b.infer(Opcode::kDot, {"f32[2,3,8,4]", "f32[4,3,6,2]"},
                    b.attrs(dot({1, 0}, {3}, {1, 3}, {0}))),
            "f32[3,2,8,6]");
  EXPECT_EQ(b.infer(Opcode::kDot, {"bf16[8]", "f32[8]"}, b.attrs(dot({}, {0}, {}, {0}))), "f32[]");
  EXPECT_EQ(
      b.infer(Opcode::kDot, {"s8[8,4]", "s8[4,6]"}, b.attrs(dot({}, {1}, {}, {0})), {}, "s32[8,6]"),
      "s32[8,6]");
}

TEST_F(InferContractions, DotRefuses) {
  EXPECT_EQ(b.infer(Opcode::kDot, {"f32[8,4]", "f32[5,6]"}, b.attrs(dot({}, {1}, {}, {0}))),
            "error: dot: contracting dimension 1 of lhs f32[8,4] has 4 elements and dimension 0 of "
            "rhs f32[5,6] has 5 "
            "(sizes of paired dimensions must be equal)");
  EXPECT_EQ(b.infer(Opcode::kDot, {"f32[8,4]", "f32[4,6]"}, b.attrs(dot({}, {1}, {}, {}))),
            "error: dot: 1 contracting dimensions of lhs and 0 of rhs (they pair in order)");
  EXPECT_EQ(b.infer(Opcode::kDot, {"f32[8,4]", "f32[4,6]"}, b.attrs(dot({1}, {1}, {0}, {0}))),
            "error: dot: lhs_batch_dims and lhs_contracting_dims names dimension 1 twice");
  EXPECT_EQ(b.infer(Opcode::kDot, {"f32[8,4]", "f32[4,6]"}, b.attrs(dot({}, {2}, {}, {0}))),
            "error: dot: lhs_batch_dims and lhs_contracting_dims names dimension 2 of a tensor of "
            "rank 2 (dimensions "
            "count from 0 to 1)");
}

TEST_F(InferContractions, RaggedDot) {
  DotAttrs rows = dot({}, {1}, {}, {1});
  rows.lhs_ragged = b.dims({0});
  rows.rhs_group = b.dims({0});
  EXPECT_EQ(b.infer(Opcode::kRaggedDot, {"f32[8,4]", "f32[3,4,6]", "s32[3]"}, b.attrs(rows)),
            "f32[8,6]");
  EXPECT_EQ(b.infer(Opcode::kRaggedDot, {"f32[8,4]", "f32[3,4,6]", "s32[2]"}, b.attrs(rows)),
            "error: ragged-dot: groups and rhs_group_dims: sizes 2 and 3 must be equal");
  DotAttrs contracting = dot({}, {0}, {}, {0});
  contracting.lhs_ragged = b.dims({0});
  EXPECT_EQ(b.infer(Opcode::kRaggedDot, {"f32[8,4]", "f32[8,6]", "s32[3]"}, b.attrs(contracting)),
            "f32[3,4,6]");
  contracting.rhs_group = b.dims({1});
  EXPECT_EQ(b.infer(Opcode::kRaggedDot, {"f32[8,4]", "f32[8,6]", "s32[3]"}, b.attrs(contracting)),
            "error: ragged-dot: rhs_group_dims has 1 entries, 0 are needed (rhs has a group "
            "dimension exactly where the "
            "ragged dimension of lhs is a free one)");
}

TEST_F(InferContractions, ScaledDot) {
  Attrs a = b.attrs(dot({}, {1}, {}, {1}));
  EXPECT_EQ(
      b.infer(Opcode::kScaledDot, {"f8e4m3fn[8,64]", "bf16[8,2]", "f8e4m3fn[6,64]", "bf16[6,2]"}, a,
              {}, "f32[8,6]"),
      "f32[8,6]");
  EXPECT_EQ(b.infer(Opcode::kScaledDot, {"bf16[8,64]", "bf16[8,5]", "bf16[6,64]", "bf16[]"}, a),
            "error: scaled-dot: dimension 1 of lhs has 64 elements and 5 scales (the number of "
            "scales must divide the "
            "number of elements)");
}

TEST_F(InferContractions, Convolution) {
  WindowDim same{.size = 3, .pad_low = 1, .pad_high = 1}, strided{.size = 3, .stride = 2};
  EXPECT_EQ(b.infer(Opcode::kConvolution, {"f32[2,8,9,4]", "f32[3,3,4,16]"},
                    b.attrs(conv2d(same, strided))),
            "f32[2,8,4,16]");
  ConvAttrs grouped = conv2d(same, same);
  grouped.feature_groups = 4;
  EXPECT_EQ(b.infer(Opcode::kConvolution, {"f32[2,8,8,4]", "f32[3,3,1,8]"}, b.attrs(grouped)),
            "f32[2,8,8,8]");
  ConvAttrs batches = conv2d(same, same);
  batches.batch_groups = 2;
  EXPECT_EQ(b.infer(Opcode::kConvolution, {"f32[6,8,8,4]", "f32[3,3,4,8]"}, b.attrs(batches)),
            "f32[3,8,8,8]");
}

TEST_F(InferContractions, ConvolutionRefuses) {
  WindowDim same{.size = 3, .pad_low = 1, .pad_high = 1};
  EXPECT_EQ(
      b.infer(Opcode::kConvolution, {"f32[2,8,8,4]", "f32[3,3,5,8]"}, b.attrs(conv2d(same, same))),
      "error: convolution: 4 input features, and 5 of the kernel in 1 groups (input features must "
      "be the kernel's "
      "input features times feature_group_count)");
  EXPECT_EQ(
      b.infer(Opcode::kConvolution, {"f32[2,8,8,4]", "f32[3,2,4,8]"}, b.attrs(conv2d(same, same))),
      "error: convolution: window and kernel, spatial dimension 1: sizes 3 and 2 must be equal");
  ConvAttrs both = conv2d(same, same);
  both.feature_groups = both.batch_groups = 2;
  EXPECT_EQ(b.infer(Opcode::kConvolution, {"f32[2,8,8,4]", "f32[3,3,2,8]"}, b.attrs(both)),
            "error: convolution: feature_group_count 2 and batch_group_count 2 (both are at least "
            "1, and one of them is 1)");
  ConvAttrs twice = conv2d(same, same);
  twice.dims.output_feature = 0;
  EXPECT_EQ(b.infer(Opcode::kConvolution, {"f32[2,8,8,4]", "f32[3,3,4,8]"}, b.attrs(twice)),
            "error: convolution: dim_labels of the output names dimension 0 twice");
  EXPECT_EQ(
      b.infer(Opcode::kConvolution, {"f32[2,8,8]", "f32[3,3,4,8]"}, b.attrs(conv2d(same, same))),
      "error: convolution: dim_labels names 4 dimensions of the input, which is f32[2,8,8]");
}

TEST_F(InferContractions, Fft) {
  auto fft = [&](FftType t, std::initializer_list<int64_t> n) {
    return b.attrs(FftAttrs{t, b.dims(n)});
  };
  EXPECT_EQ(b.infer(Opcode::kFft, {"c64[3,8]"}, fft(FftType::kFft, {8})), "c64[3,8]");
  EXPECT_EQ(b.infer(Opcode::kFft, {"f32[3,4,8]"}, fft(FftType::kRfft, {4, 8})), "c64[3,4,5]");
  EXPECT_EQ(b.infer(Opcode::kFft, {"f64[7]"}, fft(FftType::kRfft, {7})), "c128[4]");
  EXPECT_EQ(b.infer(Opcode::kFft, {"c64[3,4]"}, fft(FftType::kIrfft, {7})), "f32[3,7]");
  EXPECT_EQ(b.infer(Opcode::kFft, {"c64[3,4]"}, fft(FftType::kIrfft, {8})),
            "error: fft: dimension 1 has 4 elements, fft_length 8 needs 5");
  EXPECT_EQ(b.infer(Opcode::kFft, {"f32[3,4]"}, fft(FftType::kFft, {4})),
            "error: fft: the operand is f32[3,4], c64 or c128 is needed (RFFT takes real numbers, "
            "the others complex ones)");
  EXPECT_EQ(b.infer(Opcode::kFft, {"c64[4]"}, fft(FftType::kFft, {2, 4})),
            "error: fft: fft_length has 2 entries for c64[4]: one to three of its last dimensions");
}

TEST_F(InferContractions, LinearAlgebra) {
  EXPECT_EQ(b.infer(Opcode::kCholesky, {"f32[2,4,4]"}), "f32[2,4,4]");
  EXPECT_EQ(b.infer(Opcode::kCholesky, {"f32[4,5]"}),
            "error: cholesky: operand 0 is f32[4,5]: its last two dimensions must be equal");
  EXPECT_EQ(b.infer(Opcode::kCholesky, {"s32[4,4]"}),
            "error: cholesky: operand 0 is s32[4,4]: a float or complex type is needed");
  Attrs left = b.attrs(TriangularSolveAttrs{.left_side = true}),
        right = b.attrs(TriangularSolveAttrs{});
  EXPECT_EQ(b.infer(Opcode::kTriangularSolve, {"f32[2,4,4]", "f32[2,4,7]"}, left), "f32[2,4,7]");
  EXPECT_EQ(b.infer(Opcode::kTriangularSolve, {"f32[2,4,4]", "f32[2,7,4]"}, right), "f32[2,7,4]");
  EXPECT_EQ(b.infer(Opcode::kTriangularSolve, {"f32[2,4,4]", "f32[2,4,7]"}, right),
            "error: triangular-solve: the matrix and dimension 2 of operand 1 (left_side=false): "
            "sizes 4 and 7 must be equal");
  EXPECT_EQ(b.infer(Opcode::kTriangularSolve, {"f32[2,4,4]", "f32[3,4,7]"}, left),
            "error: triangular-solve: batch dimension 0: sizes 2 and 3 must be equal");
}

TEST_F(InferContractions, RandomNumbers) {
  EXPECT_EQ(b.infer(Opcode::kRng, {"f32[]", "f32[]"}, {}, {}, "f32[8]"), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kRng, {"f32[]", "f32[2]"}, {}, {}, "f32[8]"),
            "error: rng: operand 1 is f32[2], not a scalar");
  EXPECT_EQ(b.infer(Opcode::kRngBitGenerator, {"u64[2]"}, {}, {}, "(u64[2], u32[8])"),
            "(u64[2], u32[8])");
  EXPECT_EQ(b.infer(Opcode::kRngBitGenerator, {"u64[2]"}, {}, {}, "(u64[3], u32[8])"),
            "error: rng-bit-generator: the state is u64[2] and the result (u64[3], u32[8]) (the "
            "result is a tuple of the "
            "new state and an array of bits)");
}

TEST_F(InferContractions, Collectives) {
  auto along = [&](int64_t d, int64_t groups, int64_t size) {
    return b.attrs(CollectiveAttrs{.dimensions = b.dims({d}), .groups = b.groups(groups, size)});
  };
  EXPECT_EQ(b.infer(Opcode::kAllGather, {"f32[8,4]"}, along(1, 2, 4)), "f32[8,16]");
  EXPECT_EQ(b.infer(Opcode::kAllGather, {"f32[8]", "s32[2]"}, along(0, 2, 4)), "(f32[32], s32[8])");
  EXPECT_EQ(b.infer(Opcode::kAllGather, {"f32[8]"}, along(0, 0, 0), {}, "f32[16]"), "f32[16]");
  EXPECT_EQ(b.infer(Opcode::kReduceScatter, {"f32[8,4]"}, along(0, 2, 4)), "f32[2,4]");
  EXPECT_EQ(b.infer(Opcode::kReduceScatter, {"f32[6,4]"}, along(0, 2, 4)),
            "error: reduce-scatter: 6 elements do not divide among the 4 devices of a group (pad "
            "the dimension)");
  EXPECT_EQ(b.infer(Opcode::kAllToAll, {"f32[8,4]"}, along(1, 2, 4)), "f32[8,4]");
  EXPECT_EQ(b.infer(Opcode::kAllToAll, {"f32[8,6]"}, along(1, 2, 4)),
            "error: all-to-all: dimension 1 of operand 0 has 6 elements: not a multiple of the "
            "group's 4 devices (pad the "
            "dimension)");
  Attrs pairs = b.attrs(CollectiveAttrs{.groups = b.groups(2, 2)});
  EXPECT_EQ(b.infer(Opcode::kAllToAll, {"f32[8]", "f32[8]"}, pairs), "(f32[8], f32[8])");
  EXPECT_EQ(b.infer(Opcode::kAllToAll, {"f32[8]", "f32[8]", "f32[8]"}, pairs),
            "error: all-to-all: 3 operands for groups of 2 devices (one for each device)");
  EXPECT_EQ(b.infer(Opcode::kAllReduce, {"f32[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kAllReduce, {"f32[8]", "f32[]"}), "(f32[8], f32[])");
  EXPECT_EQ(b.infer(Opcode::kAllReduceStart, {"f32[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kCollectivePermute, {"f32[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kCollectiveBroadcast, {"f32[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kAllGatherDone, {"(f32[8], f32[16])"}), "f32[16]");
  EXPECT_EQ(b.infer(Opcode::kAllGatherDone, {"f32[8]"}),
            "error: all-gather-done: the operand is f32[8] (it is what the matching -start gives)");
  EXPECT_EQ(b.infer(Opcode::kRaggedAllToAll,
                    {"f32[8,2]", "f32[9,2]", "s32[4]", "s32[4]", "s32[4]", "s32[4]"}),
            "f32[9,2]");
}

TEST_F(InferContractions, Transfers) {
  EXPECT_EQ(b.infer(Opcode::kCopyStart, {"f32[8]"}), "(f32[8], f32[8], u32[])");
  EXPECT_EQ(b.infer(Opcode::kCopyDone, {"(f32[8], f32[8], u32[])"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kSend, {"f32[8]", "token[]"}), "(f32[8], u32[], token[])");
  EXPECT_EQ(b.infer(Opcode::kSend, {"f32[8]", "f32[8]"}),
            "error: send: operand 1 is f32[8], not a token");
  EXPECT_EQ(b.infer(Opcode::kSendDone, {"(f32[8], u32[], token[])"}), "token[]");
  EXPECT_EQ(b.infer(Opcode::kRecv, {"token[]"}, {}, {}, "(f32[8], u32[], token[])"),
            "(f32[8], u32[], token[])");
  EXPECT_EQ(b.infer(Opcode::kRecvDone, {"(f32[8], u32[], token[])"}), "(f32[8], token[])");
  EXPECT_EQ(b.infer(Opcode::kInfeed, {"token[]"}, {}, {}, "((f32[8]), token[])"),
            "((f32[8]), token[])");
  EXPECT_EQ(b.infer(Opcode::kInfeed, {"token[]"}, {}, {}, "f32[8]"),
            "error: infeed: the result is f32[8] (it is a tuple of the data and a token)");
  EXPECT_EQ(b.infer(Opcode::kOutfeed, {"f32[8]", "token[]"}), "token[]");
}

}  // namespace
}  // namespace gspmd
