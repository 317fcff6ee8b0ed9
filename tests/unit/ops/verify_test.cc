// What the verifier refuses, with the place it points at. Programs that the reader itself refuses
// are in its own tests.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

// "LINE:COLUMN: MESSAGE (HINT)" or "fine", for an entry computation with this body.
std::string verified(std::string_view body, std::string_view before = "") {
  std::string text = fmt::format("HloModule m\n{}ENTRY main {{\n{}\n}}\n", before, body);
  auto m = parse_hlo(std::make_shared<Context>(), text, "program.hlo");
  try {
    verify(*m);
    return "fine";
  } catch (const Error& e) {
    return fmt::format("{}:{}: {}{}", e.place().line, e.place().column, e.message(),
                       e.hint().empty() ? "" : fmt::format(" ({})", e.hint()));
  }
}

TEST(Verify, StatedShapes) {
  EXPECT_EQ(verified("  x = f32[8] parameter(0)\n  ROOT y = f32[8]{0} negate(x)"), "fine");
  EXPECT_EQ(verified("  x = f32[8] parameter(0)\n  ROOT y = f32[4] negate(x)"),
            "4:8: y = f32[4] negate(x): the shape is stated as f32[4], the operands give f32[8] "
            "(correct the shape or "
            "leave it out)");
  EXPECT_EQ(verified("  x = f32[8] parameter(0)\n  ROOT y = s32[8] negate(x)"),
            "4:8: y = s32[8] negate(x): the shape is stated as s32[8], the operands give f32[8] "
            "(correct the shape or "
            "leave it out)");
  // Old programs mix float types: the stated one stands.
  EXPECT_EQ(verified("  x = bf16[8] parameter(0)\n  ROOT y = f32[8] negate(x)"), "fine");
}

TEST(Verify, AttributesAgainstStatedShapes) {
  EXPECT_EQ(verified("  x = f32[8] parameter(0)\n  ROOT y = f32[3,4] reshape(x)"),
            "4:8: y = f32[3,4] reshape(x): reshape: f32[8] has 8 elements and f32[3,4] has 12 (the "
            "numbers must be the "
            "same)");
  EXPECT_EQ(verified("  x = f32[8] parameter(0)\n  ROOT y = f32[8,4] broadcast(x), dimensions={1}"),
            "4:8: y = f32[8,4] broadcast(x): broadcast: operand dimension 0 and result dimension "
            "1: sizes 8 and 4 must "
            "be equal");
  EXPECT_EQ(verified("  ROOT y = s32[8] iota(), iota_dimension=1"),
            "3:8: y = s32[8] iota(): iota: iota_dimension names dimension 1 of a tensor of rank 1 "
            "(dimensions count "
            "from 0 to 0)");
  EXPECT_EQ(verified("  x = f32[8] parameter(0)\n  ROOT y = bf16[4] convert(x)"),
            "4:8: y = bf16[4] convert(x): convert: operand f32[8] becomes bf16[4] (the sizes must "
            "be the same)");
  EXPECT_EQ(verified("  x = u32[8] parameter(0)\n  ROOT y = u8[8,2] bitcast-convert(x)"),
            "4:8: y = u8[8,2] bitcast-convert(x): bitcast-convert: u32[8] can not become u8[8,2] "
            "(a narrower type adds "
            "a last dimension of the ratio of widths, a wider one removes it)");
}

TEST(Verify, CalledComputations) {
  constexpr std::string_view kUnary =
      "f {\n  a = f32[] parameter(0)\n  ROOT b = f32[] negate(a)\n}\n";
  EXPECT_EQ(
      verified("  x = f32[8] parameter(0)\n  z = f32[] constant(0)\n  ROOT y = f32[] reduce(x, z), "
               "dimensions={0}, to_apply=f",
               kUnary),
      "9:8: y = f32[] reduce(x, z): reduce: reducer f has 1 parameters, 1 arrays need 2 (one "
      "accumulator and one "
      "element for each array)");
  EXPECT_EQ(verified("  x = f32[8] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f", kUnary),
            "8:8: y = f32[] call(x): call: parameter 0 of f is f32[] and gets f32[8]");
}

// Modules made by hand can break what the reader never lets through.
class VerifyModule : public ::testing::Test {
 protected:
  VerifyModule() : m(std::make_shared<Context>(), "m"), c(m.add_computation("main")) {
    m.set_entry(c);
  }
  Instr* parameter(int64_t n) {
    return m.add(c, Opcode::kParameter, f32, {}, m.context().attrs(ParameterAttrs{n}),
                 m.context().name(fmt::format("p{}", n)));
  }
  std::string verified() {
    try {
      verify(m);
      return "fine";
    } catch (const Error& e) {
      return e.message();
    }
  }
  Module m;
  Computation* c;
  Shape f32 = m.context().scalar(ElementType::kF32);
};

TEST_F(VerifyModule, OrderOfDefinition) {
  Instr* p = parameter(0);
  Instr* a = m.add(c, Opcode::kNegate, f32, {p}, {}, "a");
  Instr* b = m.add(c, Opcode::kNegate, f32, {a}, {}, "b");
  c->set_root(b);
  EXPECT_EQ(verified(), "fine");
  c->set_instrs({p, b, a});
  EXPECT_EQ(verified(), "b = f32[] negate(a): operand a is not defined before");
}

TEST_F(VerifyModule, OperandOfAnotherComputation) {
  Computation* other = m.add_computation("other");
  Instr* q = m.add(other, Opcode::kParameter, f32, {}, m.context().attrs(ParameterAttrs{0}), "q");
  other->set_root(q);
  c->set_root(m.add(c, Opcode::kNegate, f32, {q}, {}, "a"));
  Computation* order[] = {other, c};
  m.set_computations(order);
  EXPECT_EQ(verified(), "a = f32[] negate(q): operand q is not defined before");
}

TEST_F(VerifyModule, CallsItself) {
  Instr* p = parameter(0);
  Instr* call = m.add(c, Opcode::kCall, f32, {p}, m.context().attrs(CallAttrs{}), "call");
  call->called = m.computation_array({c});
  c->set_root(call);
  EXPECT_EQ(verified(),
            "call = f32[] call(p0): main is called before it is defined, or calls itself");
}

TEST_F(VerifyModule, OperandCounts) {
  Instr* p = parameter(0);
  c->set_root(m.add(c, Opcode::kAdd, f32, {p}, {}, "a"));
  EXPECT_EQ(verified(), "a = f32[] add(p0): add has 1 operands, 2 are needed");
}

TEST_F(VerifyModule, Parameters) {
  parameter(1);
  c->set_root(parameter(2));
  EXPECT_EQ(verified(), "main: there is no parameter 0 of 3");
}

}  // namespace
}  // namespace gspmd
