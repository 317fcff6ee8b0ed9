#include "gspmd/formats/hlo_text.h"

#include <gtest/gtest.h>

#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

std::unique_ptr<Module> parse(const std::string& text,
                              std::vector<std::string>* warnings = nullptr) {
  return parse_hlo(std::make_shared<Context>(), text, "test", warnings);
}

// What is printed for the instructions of the entry computation, given between its braces.
std::string reprint(const std::string& body) {
  try {
    auto m = parse("HloModule m\nENTRY e {\n" + body + "\n}\n");
    std::string out;
    for (const Instr* i : m->entry()->instrs()) out += print_hlo(*i) + "\n";
    return out;
  } catch (const Error& e) {
    return e.render();
  }
}

struct Case {
  std::string name, body, printed;
};
class HloInstructions : public testing::TestWithParam<Case> {};

TEST_P(HloInstructions, ArePrintedAs) { EXPECT_EQ(reprint(GetParam().body), GetParam().printed); }

const Case kCases[] = {
    {"percent_and_operand_shapes",
     "%x = f32[4]{0} parameter(0)\nROOT %y = f32[4]{0} add(f32[4]{0} %x, f32[4] %x)",
     "x = f32[4]{0} parameter(0)\ny = f32[4]{0} add(x, x)\n"},
    {"omitted_shape",
     "x = f32[4] parameter(0)\ny = negate(x)\nt = tuple(x, y)\ng = get-tuple-element(t), index=1",
     "x = f32[4]{0} parameter(0)\ny = f32[4]{0} negate(x)\nt = (f32[4]{0}, f32[4]{0}) tuple(x, y)\n"
     "g = f32[4]{0} get-tuple-element(t), index=1\n"},
    {"nested_operands", "x = f32[] parameter(0)\ny = f32[] add(negate(x), f32[] constant(2))",
     "x = f32[] parameter(0)\nnegate.1 = f32[] negate(x)\nconstant.2 = f32[] constant(2)\n"
     "y = f32[] add(negate.1, constant.2)\n"},
    {"names_of_nested_operands_avoid_others",
     "x = f32[] parameter(0)\ny = f32[] add(negate(x), x)\nnegate.1 = f32[] negate(y)",
     "x = f32[] parameter(0)\nnegate.1.n = f32[] negate(x)\ny = f32[] add(negate.1.n, x)\n"
     "negate.1 = f32[] negate(y)\n"},
    {"element_of_tuple", "t = (f32[2], (s32[], pred[])) parameter(0)\ny = not(t#1#1)",
     "t = (f32[2]{0}, (s32[], pred[])) parameter(0)\n"
     "get-tuple-element.1 = (s32[], pred[]) get-tuple-element(t), index=1\n"
     "get-tuple-element.2 = pred[] get-tuple-element(get-tuple-element.1), index=1\n"
     "y = pred[] not(get-tuple-element.2)\n"},
    {"reserved_names", "%f32 = f32[] parameter(0)\n%true = f32[] negate(%f32)",
     "%f32 = f32[] parameter(0)\n%true = f32[] negate(%f32)\n"},
    {"names_like_opcodes", "add = f32[] parameter(0)\nmultiply = f32[] multiply(add, add)",
     "add = f32[] parameter(0)\nmultiply = f32[] multiply(add, add)\n"},
    {"layouts",
     "x = f32[8,4]{0,1:T(8,128)(2,1)S(5)} parameter(0)\ny = f32[]{} parameter(1)\nz = "
     "f32[2]{0:E(4)} parameter(2)",
     "x = f32[8,4]{0,1:T(8,128)(2,1)S(5)} parameter(0)\ny = f32[] parameter(1)\n"
     "z = f32[2]{0:E(4)} parameter(2)\n"},
    {"dynamic_dimensions", "x = f32[<=8,?,3] parameter(0)",
     "x = f32[<=8,?,3]{2,1,0} parameter(0)\n"},
    {"tokens", "x = token[] after-all()\ny = (token[], opaque[]) parameter(0)",
     "x = token[] after-all()\ny = (token[], opaque[]) parameter(0)\n"},
    {"empty_tuple", "x = () tuple()", "x = () tuple()\n"},
    {"comments", "x /* a */ = f32[] // b\n parameter(/*c*/0)", "x = f32[] parameter(0)\n"},
    {"integers",
     "a = s8[2] constant({-128, 127})\nb = u64[] constant(18446744073709551615)\nc = s4[2] "
     "constant({-8,7})",
     "a = s8[2]{0} constant({-128, 127})\nb = u64[] constant(18446744073709551615)\n"
     "c = s4[2]{0} constant({-8, 7})\n"},
    {"predicates", "a = pred[3] constant({true, 0, 1})\nb = pred[] constant(1)",
     "a = pred[3]{0} constant({1, 0, 1})\nb = pred[] constant(true)\n"},
    {"floats",
     "a = f32[6] constant({0.1, -0.0, 1234567.88, 3.40282347e+38, inf, -inf})\nb = bf16[] "
     "constant(3.14)\n"
     "c = f16[2] constant({0.099976, 65504})\nd = f64[] constant(1e-300)\ne1 = f32[2] "
     "constant({-0, 0})",
     "a = f32[6]{0} constant({0.1, -0.0, 1234567.9, 3.4028235e+38, inf, -inf})\nb = bf16[] "
     "constant(3.141)\n"
     "c = f16[2]{0} constant({0.099976, 65504})\nd = f64[] constant(1e-300)\n"
     "e1 = f32[2]{0} constant({-0.0, 0})\n"},
    {"small_floats",
     "a = f8e4m3fn[3] constant({448, -0.0, nan})\nb = f4e2m1fn[2] constant({6, 0.5})\nc = "
     "f8e8m0fnu[] constant(0.25)",
     "a = f8e4m3fn[3]{0} constant({448, -0.0, nan})\nb = f4e2m1fn[2]{0} constant({6, 0.5})\n"
     "c = f8e8m0fnu[] constant(0.25)\n"},
    {"nans", "a = f32[4] constant({nan, -nan, nan(0x123), -nan(0x400001)})",
     "a = f32[4]{0} constant({nan, -nan, nan(0x123), -nan(0x400001)})\n"},
    {"complex", "a = c64[2] constant({(1, -2.5), (0, inf)})\nb = c128[] constant((1,0))",
     "a = c64[2]{0} constant({(1, -2.5), (0, inf)})\nb = c128[] constant((1, 0))\n"},
    {"nested_arrays",
     "a = s32[2,2] constant({{1,2},{3,4}})\nb = s32[2,1,1] constant({{{1}},{{2}}})",
     "a = s32[2,2]{1,0} constant({ {1, 2}, {3, 4} })\n"
     "b = s32[2,1,1]{2,1,0} constant({ { {1} }, { {2} } })\n"},
    {"empty_arrays",
     "a = f32[0] constant({})\nb = f32[2,0] constant({ {}, {} })\nc = f32[0,3] constant({})",
     "a = f32[0]{0} constant({})\nb = f32[2,0]{1,0} constant({})\nc = f32[0,3]{1,0} "
     "constant({})\n"},
    {"tuple_constant", "a = (f32[2],(s32[],pred[])) constant(({1,2},(3,true)))",
     "a = (f32[2]{0}, (s32[], pred[])) constant(({1, 2}, (3, true)))\n"},
    {"elided", "a = f32[20] constant({...})\nb = (f32[20], s32[]) constant(({...}, 3))",
     "a = f32[20]{0} constant({...})\nb = (f32[20]{0}, s32[]) constant(({...}, 3))\n"},
    {"slices",
     "x = f32[8,8] parameter(0)\na = f32[4,2] slice(x), slice={[0:8:2], [1:3]}\nb = f32[8,2] "
     "slice(x), slice={[0:8], [1:3:1]}",
     "x = f32[8,8]{1,0} parameter(0)\na = f32[4,2]{1,0} slice(x), slice={[0:8:2], [1:3:1]}\n"
     "b = f32[8,2]{1,0} slice(x), slice={[0:8], [1:3]}\n"},
    {"padding",
     "x = f32[8,8] parameter(0)\nz = f32[] constant(0)\na = pad(x, z), padding=0_1x-1_2_1",
     "x = f32[8,8]{1,0} parameter(0)\nz = f32[] constant(0)\n"
     "a = f32[9,16]{1,0} pad(x, z), padding=0_1_0x-1_2_1\n"},
    {"convolution",
     "x = f32[2,8,8,3] parameter(0)\nw = f32[3,3,3,4] parameter(1)\n"
     "y = convolution(x, w), dim_labels=b01f_01io->b01f, window={rhs_dilate=1x1 pad=1_1x0_2 "
     "size=3x3, stride=1x2}",
     "x = f32[2,8,8,3]{3,2,1,0} parameter(0)\nw = f32[3,3,3,4]{3,2,1,0} parameter(1)\n"
     "y = f32[2,8,4,4]{3,2,1,0} convolution(x, w), window={size=3x3 stride=1x2 pad=1_1x0_2}, "
     "dim_labels=b01f_01io->b01f\n"},
    {"dot",
     "x = f32[4,8] parameter(0)\ny = dot(x, x), rhs_contracting_dims={1}, "
     "lhs_contracting_dims={1}, operand_precision={highest,default}",
     "x = f32[4,8]{1,0} parameter(0)\ny = f32[4,4]{1,0} dot(x, x), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={1}, operand_precision={highest,default}\n"},
    {"computation_in_place",
     "x = f32[4] parameter(0)\nz = f32[] constant(0)\n"
     "y = reduce(x, z), dimensions={0}, to_apply={ a = f32[] parameter(0)\n b = f32[] "
     "parameter(1)\n ROOT c = add(a, b) }",
     "x = f32[4]{0} parameter(0)\nz = f32[] constant(0)\ny = f32[] reduce(x, z), dimensions={0}, "
     "to_apply=_\n"},
    {"sharding",
     "x = f32[4,4] parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}",
     "x = f32[4,4]{1,0} parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}\n"},
    {"tuple_sharding",
     "x = (f32[4], s32[]) parameter(0), sharding={{devices=[2]<=[2]}, {replicated}}",
     "x = (f32[4]{0}, s32[]) parameter(0), sharding={{devices=[2]<=[2]}, {replicated}}\n"},
    {"metadata",
     "x = f32[] parameter(0), metadata={op_type=\"add\", op_name=\"a\\\"b\" source_file='f.py' "
     "source_line=3 "
     "stack_frame_id=2 profile_type={1}}",
     "x = f32[] parameter(0), metadata={op_type=\"add\" op_name=\"a\\\"b\" source_file=\"f.py\" "
     "source_line=3 "
     "stack_frame_id=2 profile_type={1}}\n"},
    {"raw_attributes",
     "x = f32[] parameter(0), backend_config={\"a\":{\"b\":\"}\"}}, "
     "frontend_attributes={a=\"b\",c={d}}, "
     "statistics={visualizing_index=0,a=1.5}, origin={{\"x\"}}",
     "x = f32[] parameter(0), frontend_attributes={a=\"b\",c={d}}, "
     "statistics={visualizing_index=0,a=1.5}, "
     "origin={{\"x\"}}, backend_config={\"a\":{\"b\":\"}\"}}\n"},
    {"control_predecessors", "x = f32[] parameter(0)\ny = negate(x), control-predecessors={%x}",
     "x = f32[] parameter(0)\ny = f32[] negate(x), control-predecessors={x}\n"},
    {"unknown_attribute", "x = f32[] parameter(0), wondrous={a, {b}}, odd=x-3",
     "x = f32[] parameter(0), wondrous={a, {b}}, odd=x-3\n"},
    {"collectives",
     "x = f32[4] parameter(0)\na = f32[16] all-gather(x), dimensions={0}, "
     "replica_groups=[2,4]<=[4,2]T(1,0), channel_id=3, use_global_device_ids=true\n"
     "b = f32[4] collective-permute(x), source_target_pairs={{0,1}, {1,0}}",
     "x = f32[4]{0} parameter(0)\na = f32[16]{0} all-gather(x), channel_id=3, "
     "replica_groups=[2,4]<=[4,2]T(1,0), "
     "dimensions={0}, use_global_device_ids=true\n"
     "b = f32[4]{0} collective-permute(x), source_target_pairs={{0,1},{1,0}}\n"},
    {"custom_call",
     "x = f32[4] parameter(0)\ny = f32[4] custom-call(x), custom_call_target=\"a \\\"b\\\"\", "
     "literal=f32[2]{0} {1, 2}, operand_layout_constraints={f32[4]{0}}, "
     "api_version=API_VERSION_TYPED_FFI",
     "x = f32[4]{0} parameter(0)\ny = f32[4]{0} custom-call(x), custom_call_target=\"a "
     "\\\"b\\\"\", "
     "operand_layout_constraints={f32[4]{0}}, literal=f32[2]{0} {1, 2}, "
     "api_version=API_VERSION_TYPED_FFI\n"},
    {"asynchronous",
     "x = f32[4] parameter(0)\ns = ((f32[4]), f32[4], u32[]) negate-start(x)\nd = f32[4] "
     "negate-done(s)",
     "x = f32[4]{0} parameter(0)\ns = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(x), "
     "calls=async_negate\n"
     "d = f32[4]{0} async-done(s)\n"},
    {"many_operands", "x = f32[] parameter(0)\nt = tuple(x, x, x, x, x, x)",
     "x = f32[] parameter(0)\nt = (f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[]) "
     "tuple(x, x, x, x, x, /*index=5*/x)\n"},
};
INSTANTIATE_TEST_SUITE_P(Text, HloInstructions, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(HloText, Module) {
  const std::string text =
      "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {0}, "
      "must-alias) }, "
      "buffer_donor={ (1, {1}) }, entry_computation_layout={(f32[4]{0}, (s32[], "
      "s32[2]{0}))->(f32[4]{0}, s32[])}, "
      "allow_spmd_sharding_propagation_to_parameters={true,false}, "
      "allow_spmd_sharding_propagation_to_output={true}, replica_count=2, num_partitions=8, "
      "frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<[\"a\"=2]>}}, "
      "alias_passthrough_params=true\n"
      "\nFileNames\n1 \"a.py\"\n\nFunctionNames\n1 \"f\"\n\nFileLocations\n"
      "1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 "
      "end_column=9}\n\nStackFrames\n"
      "1 {file_location_id=1 parent_frame_id=1}\n"
      "2 {file_location_id=1 parent_frame_id=2}\n"
      "\nhelper {\n  ROOT a = f32[4]{0} parameter(0)\n}, execution_thread=\"host\"\n"
      "\nENTRY main {\n  x = f32[4]{0} parameter(0)\n  t = (s32[], s32[2]{0}) parameter(1)\n"
      "  c = f32[4]{0} call(x), to_apply=helper, metadata={stack_frame_id=2}\n"
      "  g = s32[] get-tuple-element(t), index=0\n  ROOT r = (f32[4]{0}, s32[]) tuple(c, g)\n}\n";
  auto m = parse(text);
  EXPECT_EQ(print_hlo(*m), text);
  EXPECT_EQ(m->attrs.num_partitions, 8);
  EXPECT_EQ(m->attrs.aliases[1].parameter_index, std::vector<int64_t>{0});
  EXPECT_EQ(m->model_place(m->entry()->instrs()[2]->metadata), "a.py:3");
  EXPECT_EQ(frontend_attribute(*m, "xla.sdy.meshes"), "{mesh = #sdy.mesh<[\"a\"=2]>}");
  PrintOptions bare;
  bare.metadata = false;
  EXPECT_EQ(print_hlo(*m, bare).find("FileNames"), std::string::npos);
  EXPECT_EQ(print_hlo(*m, bare).find("metadata"), std::string::npos);
}

TEST(HloText, HeadingsAndEntryFirst) {
  auto m = parse(
      "HloModule m\nENTRY %main (p.1: f32[4], q: (s32[], f32[])) -> f32[4] {\n  ROOT %p.1 = "
      "f32[4]{0} parameter(0)\n"
      "  %q = (s32[], f32[]) parameter(1)\n}\nunused (a: f32[]) -> f32[] {\n  ROOT a = f32[] "
      "parameter(0)\n}\n");
  EXPECT_EQ(m->entry()->name(), "main");
  EXPECT_EQ(m->computations().back().get(), m->entry());
  EXPECT_EQ(m->entry()->root()->name, "p.1");
}

TEST(HloText, WithoutHeader) {
  auto m = parse(
      "a {\n  x = f32[] parameter(0)\n}\n\nb {\n  x = f32[] parameter(0)\n  y = f32[] call(x), "
      "to_apply=a\n}");
  EXPECT_EQ(m->name(), "module_b");
  EXPECT_EQ(m->entry()->name(), "b");
  EXPECT_EQ(m->entry()->root()->name, "y");
}

TEST(HloText, OneInstruction) {
  auto m = parse("f32[4] add(f32[4], f32[4] %y)");
  ASSERT_EQ(m->entry()->params().size(), 2u);
  EXPECT_EQ(m->entry()->params()[1]->name, "y");
  EXPECT_EQ(m->entry()->root()->opcode, Opcode::kAdd);
  auto named = parse("ROOT %z = f32[4] negate(f32[4] %y), metadata={op_name=\"z\"}");
  EXPECT_EQ(named->entry()->root()->name, "z");
}

TEST(HloText, OldSpellings) {
  std::vector<std::string> warnings;
  auto m = parse(
      "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] "
      "add(a, b)\n}\n"
      "ENTRY e {\n  x = f32[4] parameter(0)\n"
      "  y = f32[4] cross-replica-sum(x), replica_groups={}, all_reduce_id=5, mode=flattened_id, "
      "to_apply=add\n"
      "  ROOT z = f32[4] custom-call(y), custom_call_target=\"t\", opaque=\"o\"\n}\n",
      &warnings);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(m->entry()->instrs()[1]->attrs<CollectiveAttrs>().channel_id, 5);
  EXPECT_EQ(m->entry()->root()->extras->backend_config, "\"o\"");
}

TEST(HloText, Warnings) {
  std::vector<std::string> warnings;
  parse("HloModule m, fancy={1}\nENTRY e {\n  x = f32[9] constant({...}), odd=1\n}\n", &warnings);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0],
            "test:1:14: warning: the module's attribute 'fancy' is unknown and kept as it is");
  EXPECT_EQ(warnings[1], "test:3:23: warning: the values of a constant f32[9] are not in the text");
  EXPECT_EQ(warnings[2],
            "test:3:31: warning: the attribute 'odd' of 'constant' is unknown and kept as it is");
}

TEST(HloText, InstructionsOfPassesGetNames) {
  auto m =
      parse("HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  negate.2 = f32[] negate(x)\n}\n");
  Instr* x = m->entry()->params()[0];
  Instr* made = m->add(m->entry(), Opcode::kNegate, x->shape, {&x, 1});
  m->entry()->set_root(made);
  EXPECT_NE(print_hlo(*m).find("  ROOT negate.2.1 = f32[] negate(x)\n"), std::string::npos)
      << print_hlo(*m);
}

TEST(HloText, Conditionals) {
  const std::string branch = " {\n  ROOT x = f32[] parameter(0)\n}\n";
  const std::string head =
      "HloModule m\na" + branch + "b" + branch + "ENTRY e {\n  x = f32[] parameter(0)\n";
  auto by_pred =
      parse(head +
            "  p = pred[] parameter(1)\n"
            "  r = f32[] conditional(p, x, x), false_computation=b, true_computation=a\n}");
  EXPECT_EQ(print_hlo(*by_pred->entry()->root()),
            "r = f32[] conditional(p, x, x), true_computation=a, false_computation=b");
  auto by_index = parse(head +
                        "  i = s32[] parameter(1)\n"
                        "  r = f32[] conditional(i, x, x), branch_computations={a, b}\n}");
  EXPECT_EQ(print_hlo(*by_index->entry()->root()),
            "r = f32[] conditional(i, x, x), branch_computations={a, b}");
}

TEST(HloText, ReplicaGroupsAsMesh) {
  auto m = parse(
      "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n"
      "  y = f32[4] collective-broadcast(x), replica_groups=mesh['a'=2,'b'=2] {'a'}\n}");
  PrintOptions as_iota;
  as_iota.replica_groups = PrintOptions::ReplicaGroups::kIota;
  EXPECT_NE(print_hlo(*m).find("mesh['a'=2,'b'=2] {'a'}"), std::string::npos);
  EXPECT_NE(print_hlo(*m, as_iota).find("replica_groups=[2,2]<=[2,2]T(1,0)"), std::string::npos);
}

TEST(FrontendAttributes, AreReadAndSet) {
  auto m = parse(
      "HloModule m\nENTRY e {\n  x = f32[4] parameter(0), "
      "frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<@mesh, "
      "[{\\\"a\\\"}]>\",raw={x=1}}\n}");
  Instr* x = m->entry()->params()[0];
  EXPECT_EQ(frontend_attribute(*x, "xla.sdy.sharding"), "#sdy.sharding<@mesh, [{\"a\"}]>");
  EXPECT_EQ(frontend_attribute(*x, "raw"), "{x=1}");
  EXPECT_EQ(frontend_attribute(*x, "xla.sdy"), std::nullopt);
  set_frontend_attribute(x, "xla.sdy.sharding", std::nullopt);
  set_frontend_attribute(x, "new", "a\"b");
  EXPECT_EQ(x->extras->frontend_attributes, "{raw={x=1},new=\"a\\\"b\"}");
  EXPECT_THROW(read_frontend_attributes("{a=\"b"), Error);
  EXPECT_THROW(read_frontend_attributes("{a=b}"), Error);
}

}  // namespace
}  // namespace gspmd
