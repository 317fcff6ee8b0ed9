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

TEST(Verify, TypesOfStatedShapes) {
  auto x = [](std::string_view type, std::string_view y) {
    std::string got = verified(fmt::format("  x = {}[8] parameter(0)\n  ROOT y = {}", type, y));
    return got == "fine" ? got : got.substr(5);  // without the place
  };
  EXPECT_EQ(x("c64", "f32[8] convert(x)"),
            "y = f32[8] convert(x): convert: c64 becomes f32 (take its part with real or imag "
            "first)");
  EXPECT_EQ(x("f32", "c64[8] convert(x)"), "fine");
  EXPECT_EQ(x("f32", "s32[8,4] broadcast(x), dimensions={0}"),
            "y = s32[8,4] broadcast(x): broadcast: f32[8] becomes s32[8,4] (arrays of one type)");
  EXPECT_EQ(x("s32", "s32[8] reduce-precision(x), exponent_bits=8, mantissa_bits=7"),
            "y = s32[8] reduce-precision(x): reduce-precision: operand 0 is s32[8] (floating-point "
            "numbers are needed)");
  EXPECT_EQ(x("f32", "f32[8] reduce-precision(x), exponent_bits=0, mantissa_bits=7"),
            "y = f32[8] reduce-precision(x): reduce-precision: exponent_bits 0, mantissa_bits 7 "
            "(at least 1 and 0)");
  EXPECT_EQ(x("f32", "bf16[8] stochastic-convert(x, x)"),
            "y = bf16[8] stochastic-convert(x, x): stochastic-convert: random bits f32[8] for "
            "f32[8] (an unsigned type of the same width is needed)");
  EXPECT_EQ(x("f32", "f32[2,2] bitcast(x)"),
            "y = f32[2,2] bitcast(x): bitcast: f32[8] becomes f32[2,2] (both must be arrays of as "
            "many bytes)");
  EXPECT_EQ(x("f32", "pred[8] iota(), iota_dimension=0"),
            "y = pred[8] iota(): iota: pred has no numbers (convert it)");
  EXPECT_EQ(x("s32", "s32[<=2,<=4] dynamic-reshape(x, x)"),
            "y = s32[<=2,<=4] dynamic-reshape(x, x): dynamic-reshape: 1 sizes for s32[<=2,<=4] "
            "(one for each dimension)");
}

TEST(Verify, AsynchronousInstructions) {
  constexpr std::string_view kUnary =
      "f {\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] negate(a)\n}\n";
  auto run = [&](std::string_view start, std::string_view done) {
    std::string got = verified(
        fmt::format("  x = f32[8] parameter(0)\n  s = {} async-start(x), calls=f\n  ROOT d = {} "
                    "async-done(s)",
                    start, done),
        kUnary);
    size_t message = got.find("async-", got.find("): "));
    return message == std::string::npos ? got : got.substr(message);
  };
  EXPECT_EQ(run("((f32[8]), f32[8], s32[])", "f32[8]"), "fine");
  EXPECT_EQ(run("(f32[8], f32[8])", "f32[8]"),
            "async-start: (f32[8], f32[8]) is no operation under way (it is a tuple of the "
            "operands' tuple, the result and more)");
  EXPECT_EQ(run("((f32[4]), f32[8])", "f32[8]"),
            "async-start: element 0 of ((f32[4]), f32[8]) is not the tuple of the operands");
  EXPECT_EQ(run("((f32[8]), f32[4])", "f32[4]"), "async-start: f gives f32[8] for a result f32[4]");
  EXPECT_EQ(run("((f32[8]), f32[8])", "f32[4]"),
            "async-done: ((f32[8]), f32[8]) gives f32[4] (element 1 is the result)");
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

TEST_F(VerifyModule, EntryLayout) {
  c->set_root(m.add(c, Opcode::kNegate, f32, {parameter(0)}, {}, "a"));
  m.attrs.entry_parameter_layouts = {f32};
  m.attrs.entry_result_layout = f32;
  EXPECT_EQ(verified(), "fine");
  m.attrs.entry_result_layout = m.context().array(ElementType::kF32, {2});
  EXPECT_EQ(verified(), "a = f32[] negate(p0): entry_computation_layout says the result is f32[2]");
  m.attrs.entry_parameter_layouts = {m.attrs.entry_result_layout};
  EXPECT_EQ(verified(), "p0 = f32[] parameter(): entry_computation_layout says f32[2]");
  m.attrs.entry_parameter_layouts = {};
  EXPECT_EQ(verified(), "m: entry_computation_layout has 0 parameters, main has 1");
}

TEST_F(VerifyModule, Header) {
  c->set_root(parameter(0));
  m.attrs.num_partitions = 0;
  EXPECT_EQ(verified(), "m: num_partitions 0, replica_count 1");
  m.set_entry(nullptr);
  EXPECT_EQ(verified(), "m: the module has no entry computation");
}

TEST_F(VerifyModule, AliasesAndDonors) {
  Instr* p = parameter(0);
  Shape s = m.context().tuple({f32, m.context().array(ElementType::kF32, {2})});
  Instr* wide =
      m.add(c, Opcode::kBroadcast, s.element(1), {p}, m.context().attrs(DimsAttrs{}), "w");
  c->set_root(m.add(c, Opcode::kTuple, s, {p, wide}, {}, "t"));
  m.attrs.aliases = {{.output_index = {0}, .parameter = 0, .parameter_index = {}}};
  m.attrs.donors = {{.parameter = 0, .index = {}}};
  EXPECT_EQ(verified(), "fine");
  m.attrs.aliases[0].output_index = {1};
  EXPECT_EQ(verified(), "m: input_output_alias of result {1}, f32[2], and parameter 0 {}, f32[]");
  m.attrs.aliases[0].output_index = {2};
  EXPECT_EQ(verified(),
            "m: input_output_alias of result {2}, which does not exist, and parameter 0 {}, f32[]");
  m.attrs.aliases[0] = {.output_index = {0}, .parameter = 1, .parameter_index = {}};
  EXPECT_EQ(verified(),
            "m: input_output_alias of result {0}, f32[], and parameter 1 {}, which does not exist");
  m.attrs.aliases.clear();
  m.attrs.donors = {{.parameter = 0, .index = {0}}};
  EXPECT_EQ(verified(), "m: buffer_donor names parameter 0 {0}, which does not exist");
}

TEST_F(VerifyModule, ShapesTooLargeToCount) {
  Shape large = m.context().array(ElementType::kF32, {int64_t{1} << 40, int64_t{1} << 40});
  c->set_root(
      m.add(c, Opcode::kBroadcast, large, {parameter(0)}, m.context().attrs(DimsAttrs{}), "w"));
  EXPECT_EQ(verified(),
            "w = f32[1099511627776,1099511627776] broadcast(p0): broadcast: "
            "f32[1099511627776,1099511627776] has too many elements to count");
}

TEST_F(VerifyModule, CalledCounts) {
  Instr* p = parameter(0);
  c->set_root(m.add(c, Opcode::kCall, f32, {p}, m.context().attrs(CallAttrs{}), "call"));
  EXPECT_EQ(verified(), "call = f32[] call(p0): call calls 0 computations, 1 are needed");
}

TEST_F(VerifyModule, Names) {
  parameter(0);
  c->set_root(m.add(c, Opcode::kNegate, f32, {c->params()[0]}, {}, "p0"));
  EXPECT_EQ(verified(), "p0 = f32[] negate(p0): the name p0 is taken");
}

TEST_F(VerifyModule, TwoParametersOfOneNumber) {
  parameter(0);
  c->set_root(m.add(c, Opcode::kParameter, f32, {}, m.context().attrs(ParameterAttrs{0}), "q"));
  EXPECT_EQ(verified(), "main: two parameters have the same number");
}

}  // namespace
}  // namespace gspmd
