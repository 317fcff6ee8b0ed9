// Element types that element-wise operators take.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ops/op_bench.h"

namespace gspmd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Which of pred, s32, u8, bf16, c64 an operator takes, a letter for each; with operands of one
// type.
std::string types_of(OpBench& b, Opcode op) {
  std::string taken;
  for (std::string_view type : {"pred", "s32", "u8", "bf16", "c64"}) {
    std::string shape = fmt::format("{}[2]", type);
    bool binary = def(op).min_operands == 2;
    std::string got = binary ? b.infer(op, {shape, shape}) : b.infer(op, {shape});
    if (!got.starts_with("error")) taken += type[0];
  }
  return taken;
}

TEST(InferElementwise, Types) {
  OpBench b;
  struct Case {
    const char* types;
    std::vector<Opcode> opcodes;
  };
  using enum Opcode;
  const Case cases[] = {
      {"bc", {kAcos, kAcosh, kAsin,     kAsinh, kAtanh, kCbrt, kCos,  kCosh, kExp, kExpm1, kImag,
              kLog,  kLog1p, kLogistic, kReal,  kRsqrt, kSin,  kSinh, kSqrt, kTan, kTanh,  kAtan2}},
      {"b", {kCeil, kErf, kFloor, kIsFinite, kRoundNearestAfz, kRoundNearestEven}},
      {"su", {kClz, kPopcnt, kMulhi, kShiftLeft, kShiftRightArithmetic, kShiftRightLogical}},
      {"psu", {kAnd, kNot, kOr, kXor}},
      {"sub", {kRemainder}},
      {"subc", {kAbs, kDivide, kNegate, kPower, kSign, kSubtract}},
      {"psub", {kMaximum, kMinimum}},
      {"psubc", {kAdd, kCopy, kMultiply}},
  };
  for (const Case& c : cases) {
    for (Opcode op : c.opcodes) EXPECT_EQ(types_of(b, op), c.types) << name_of(op);
  }
}

TEST(InferElementwise, RefusedTypesSayWhatIsNeeded) {
  OpBench b;
  EXPECT_EQ(b.infer(Opcode::kExp, {"s32[8]"}),
            "error: exponential: operand 0 is s32[8] (floating-point or complex numbers are "
            "needed)");
  EXPECT_EQ(b.infer(Opcode::kAnd, {"f32[8]", "f32[8]"}),
            "error: and: operand 0 is f32[8] (integers or pred are needed)");
  EXPECT_EQ(b.infer(Opcode::kSubtract, {"pred[]", "pred[]"}),
            "error: subtract: operand 0 is pred[] (numbers are needed, not pred)");
  EXPECT_EQ(b.infer(Opcode::kMaximum, {"c64[8]", "c64[8]"}),
            "error: maximum: operand 0 is c64[8] (complex numbers have no order)");
}

TEST(InferElementwise, MixedTypes) {
  OpBench b;
  EXPECT_EQ(b.infer(Opcode::kSelect, {"pred[]", "bf16[8]", "f32[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kSelect, {"pred[8]", "s32[8]", "f32[8]"}),
            "error: select: operand 1 has type s32 and operand 2 has f32 (convert one of them)");
  EXPECT_EQ(b.infer(Opcode::kClamp, {"f32[]", "bf16[8]", "bf16[8]"}), "f32[8]");
  EXPECT_EQ(b.infer(Opcode::kClamp, {"s32[]", "s32[8]", "s64[]"}),
            "error: clamp: operand 1 has type s32 and operand 2 has s64 (convert one of them)");
  EXPECT_THAT(b.infer(Opcode::kClamp, {"c64[]", "c64[8]", "c64[]"}), HasSubstr("no order"));
}

TEST(InferElementwise, Compare) {
  OpBench b;
  auto compare = [&](Direction d, std::string_view shape) {
    return b.infer(Opcode::kCompare, {shape, shape}, b.attrs(CompareAttrs{d}));
  };
  EXPECT_EQ(compare(Direction::kLt, "bf16[2,3]"), "pred[2,3]");
  EXPECT_EQ(compare(Direction::kNe, "c64[2]"), "pred[2]");
  EXPECT_EQ(compare(Direction::kEq, "c64[2]"), "pred[2]");
  EXPECT_EQ(compare(Direction::kGe, "c64[2]"),
            "error: compare: operand 0 is c64[2] (complex numbers have no order)");
}

TEST(InferElementwise, Map) {
  OpBench b;
  Computation* add = b.reducer(Opcode::kAdd);
  auto map = [&](std::initializer_list<std::string_view> operands,
                 std::initializer_list<int64_t> dims, Computation* f) {
    return b.infer(Opcode::kMap, operands, b.attrs(DimsAttrs{b.dims(dims)}), {f});
  };
  EXPECT_EQ(map({"f32[8,4]", "f32[8,4]"}, {0, 1}, add), "f32[8,4]");
  EXPECT_EQ(map({"f32[8,4]", "f32[8,4]"}, {}, add), "f32[8,4]");
  EXPECT_EQ(map({"f32[8,4]", "f32[8,4]"}, {1, 0}, add),
            "error: map: dimensions do not list those of f32[8,4] (all, in order)");
  EXPECT_EQ(map({"f32[8]"}, {0}, add), "error: map: add has 2 parameters and gets 1 operands");
  EXPECT_EQ(map({"f32[8]", "s32[8]"}, {0}, add),
            "error: map: parameter 1 of add is f32[] and gets elements of s32[8]");
  EXPECT_EQ(map({"f32[8]"}, {0}, b.opaque({"f32[]"}, "f32[2]")),
            "error: map: opaque gives f32[2] (a scalar is needed)");
}

}  // namespace
}  // namespace gspmd
