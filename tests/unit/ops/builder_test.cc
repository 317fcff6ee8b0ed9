#include "gspmd/ops/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ir/literal.h"
#include "gspmd/ops/builder_ops.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

using ::testing::HasSubstr;

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kS32 = ElementType::kS32;

const NamedMesh kMesh{{{"x", 2}, {"y", 4}}};

std::string annotation_of(Expr v) {
  return v.instr()->annotation == nullptr ? "" : print_hlo_sharding(*v.instr()->annotation);
}

// "MESSAGE | HINT" of the error that `f` throws.
template <typename F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message() + (e.hint().empty() ? "" : " | " + e.hint());
  }
  return "no error";
}

TEST(Builder, WritesALayer) {
  Builder b("layer", 8);
  Expr x = MeshSplit(b.parameter("x", kF32, {64, 512}), kMesh, {0, -1});
  Expr w = MeshSplit(b.parameter("w", kF32, {512, 1024}), kMesh, {-1, 1});
  Expr h = MeshSplit(einsum("bm,mh->bh", x, w), kMesh, {0, 1});
  auto program = b.build(tuple({maximum(h, b.scalar(kF32, 0)), h}));
  EXPECT_EQ(print_hlo(*program), R"(HloModule layer, num_partitions=8

ENTRY main {
  x = f32[64,512]{1,0} parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}
  w = f32[512,1024]{1,0} parameter(1), sharding={devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}
  dot.2 = f32[64,1024]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  custom-call.3 = f32[64,1024]{1,0} custom-call(dot.2), custom_call_target="Sharding", sharding={devices=[2,4]<=[8]}
  constant.4 = f32[] constant(0)
  broadcast.5 = f32[64,1024]{1,0} broadcast(constant.4), dimensions={}
  maximum.6 = f32[64,1024]{1,0} maximum(custom-call.3, broadcast.5)
  ROOT tuple.7 = (f32[64,1024]{1,0}, f32[64,1024]{1,0}) tuple(maximum.6, custom-call.3)
}
)");
}

TEST(Builder, WhatItWritesReadsBack) {
  Builder b("loop");
  Expr x = b.parameter("x", kF32, {8});
  Expr zero = b.scalar(kS32, 0);
  auto last = while_loop(
      {zero, x},
      [](Builder& c, Exprs s) { return compare(Direction::kLt, s[0], c.scalar(kS32, 5)); },
      [](Builder& c, Exprs s) {
        Expr sum = reduce(s[1], c.scalar(kF32, 0), {0}, Opcode::kAdd);
        return std::vector<Expr>{s[0] + c.scalar(kS32, 1), s[1] + sum};
      });
  auto program = b.build(last[1]);
  std::string text = print_hlo(*program);
  auto again = parse_hlo(std::make_shared<Context>(), text, "loop.hlo");
  verify(*again);
  EXPECT_EQ(print_hlo(*again), text);
  EXPECT_EQ(again->computations().size(), 4u);
  EXPECT_EQ(again->computations().front()->name(), "condition");
  EXPECT_EQ(again->entry()->name(), "main");
}

TEST(Builder, ALoopOfOneValueCarriesNoTuple) {
  Builder b("loop");
  auto last = while_loop(
      {b.parameter("n", kS32)},
      [](Builder& c, Exprs s) { return compare(Direction::kGt, s[0], c.scalar(kS32, 0)); },
      [](Builder& c, Exprs s) { return std::vector<Expr>{s[0] - c.scalar(kS32, 1)}; });
  auto program = b.build(last[0]);
  EXPECT_EQ(to_string(program->entry()->root()->shape), "s32[]");
  EXPECT_EQ(program->entry()->root()->opcode, Opcode::kWhile);
}

TEST(Builder, AReducerIsMadeOnce) {
  Builder b("sums");
  Expr x = b.parameter("x", kF32, {4, 6});
  Expr zero = b.scalar(kF32, 0);
  Expr rows = reduce(x, zero, {1}, Opcode::kAdd), columns = reduce(x, zero, {0}, Opcode::kAdd);
  Expr high = reduce(x, zero, {0, 1}, Opcode::kMaximum);
  EXPECT_EQ(rows.instr()->called[0], columns.instr()->called[0]);
  EXPECT_EQ(combiner_of(*high.instr()->called[0]), Combiner::kMax);
  auto program = b.build(tuple({rows, columns, high}));
  EXPECT_EQ(program->computations().size(), 3u);
}

TEST(Builder, BranchesAndCalls) {
  Builder b("branches");
  Shape s = b.shape(kF32, {3});
  Computation* twice = b.define("twice", {s}, [](Builder&, Exprs p) { return p[0] + p[0]; });
  Computation* same = b.define("same", {s}, [](Builder&, Exprs p) { return p[0]; });
  Expr p = b.parameter("p", ElementType::kPred), x = b.parameter("x", s);
  Expr y = conditional(p, {twice, same}, {x, x});
  auto program = b.build(call(twice, {y}));
  EXPECT_EQ(to_string(program->entry()->root()->shape), "f32[3]");
}

TEST(Builder, Einsum) {
  struct Case {
    const char* equation;
    std::vector<int64_t> lhs, rhs;
    const char* result;
    Opcode last;
  };
  const Case cases[] = {
      {"bm,mh->bh", {2, 3}, {3, 5}, "f32[2,5]", Opcode::kDot},
      {"bm,mh->hb", {2, 3}, {3, 5}, "f32[5,2]", Opcode::kTranspose},
      {"ebcm,emh->ebch", {4, 2, 6, 3}, {4, 3, 5}, "f32[4,2,6,5]", Opcode::kDot},
      {"bsnd,btnd->bnst", {2, 3, 4, 5}, {2, 7, 4, 5}, "f32[2,4,3,7]", Opcode::kDot},
      {"i,j->ij", {2}, {3}, "f32[2,3]", Opcode::kDot},
      {"i,i->", {4}, {4}, "f32[]", Opcode::kDot},
  };
  for (const Case& c : cases) {
    Builder b("einsum");
    Expr y = einsum(c.equation, b.parameter("l", kF32, c.lhs), b.parameter("r", kF32, c.rhs));
    EXPECT_EQ(to_string(y.shape()), c.result) << c.equation;
    EXPECT_EQ(y.instr()->opcode, c.last) << c.equation;
  }
}

TEST(Builder, EinsumRefuses) {
  Builder b("einsum");
  Expr x = b.parameter("x", kF32, {2, 3}), w = b.parameter("w", kF32, {3, 5});
  EXPECT_EQ(error_of([&] { einsum("bm->b", x, w); }),
            "einsum: \"bm->b\" is no equation | write it as \"bm,mh->bh\"");
  EXPECT_THAT(error_of([&] { einsum("bb,bh->bh", x, w); }), HasSubstr("has b twice in bb"));
  EXPECT_THAT(error_of([&] { einsum("bsm,mh->bsh", x, w); }),
              HasSubstr("has 3 dimensions in bsm for f32[2,3]"));
  EXPECT_THAT(error_of([&] { einsum("bm,mh->b", x, w); }), HasSubstr("gives bh and wants b"));
  EXPECT_THAT(error_of([&] { einsum("mb,mh->bh", x, w); }),
              HasSubstr("has 2 elements and dimension 0"));
}

TEST(Builder, MovesAndIndices) {
  Builder b("moves");
  Expr x = b.parameter("x", kF32, {4, 6}), zero = b.scalar(kF32, 0), i = b.scalar(kS32, 1);
  EXPECT_EQ(to_string(slice(x, {1, 0}, {4, 6}, {2, 3}).shape()), "f32[2,2]");
  EXPECT_EQ(to_string(slice(x, {1, 0}, {4, 6}).shape()), "f32[3,6]");
  EXPECT_EQ(to_string(pad(x, zero, {1, 0}, {0, 2}).shape()), "f32[5,8]");
  EXPECT_EQ(to_string(pad(x, zero, {0, 0}, {0, 0}, {1, 0}).shape()), "f32[7,6]");
  EXPECT_EQ(to_string(concatenate({x, x}, 1).shape()), "f32[4,12]");
  EXPECT_EQ(to_string(transpose(x, {1, 0}).shape()), "f32[6,4]");
  EXPECT_EQ(to_string(reshape(x, {24}).shape()), "f32[24]");
  EXPECT_EQ(to_string(reverse(x, {0}).shape()), "f32[4,6]");
  Expr part = dynamic_slice(x, {i, i}, {2, 6});
  EXPECT_EQ(to_string(part.shape()), "f32[2,6]");
  EXPECT_EQ(to_string(dynamic_update_slice(x, part, {i, i}).shape()), "f32[4,6]");
  EXPECT_EQ(to_string(convert(x, ElementType::kBF16).shape()), "bf16[4,6]");
  EXPECT_EQ(to_string(b.iota(kS32, {3, 2}, 1).shape()), "s32[3,2]");
  int64_t offset[] = {1}, collapsed[] = {0}, map[] = {0}, sizes[] = {1, 6};
  GatherAttrs g;
  g.offset_dims = Dims(offset);
  g.collapsed_slice_dims = Dims(collapsed);
  g.start_index_map = Dims(map);
  g.slice_sizes = Dims(sizes);
  g.index_vector_dim = 1;
  EXPECT_EQ(to_string(gather(x, b.parameter("ids", kS32, {5}), g).shape()), "f32[5,6]");
}

// Attributes are copied with the lists that they point to.
TEST(Builder, AttributesOnTheStackMayGo) {
  Builder b("stack");
  Expr x = b.parameter("x", kF32, {4, 6});
  std::vector<int64_t> dims{1, 0};
  std::string target = "mine";
  std::vector<WindowDim> window{{.size = 2}, {}};
  Expr t = transpose(x, dims), c = custom_call(target, {x}, x.shape());
  Expr w = reduce_window(x, b.scalar(kF32, 0), window, Opcode::kAdd);
  dims.assign({7, 7});
  target.assign("gone");
  window[0].size = 9;
  EXPECT_EQ(t.instr()->attrs<DimsAttrs>().dimensions[0], 1);
  EXPECT_EQ(c.instr()->attrs<CustomCallAttrs>().target, "mine");
  EXPECT_EQ(w.instr()->attrs<WindowAttrs>().window[0].size, 2);
}

TEST(Builder, Constants) {
  Builder b("constants");
  auto value = [](Expr v, int64_t i = 0) {
    return integer_at(*v.instr()->attrs<ConstantAttrs>().literal, i);
  };
  EXPECT_EQ(value(b.scalar(ElementType::kS8, -128)), -128);
  EXPECT_EQ(value(b.scalar(ElementType::kU4, 15)), 15);
  EXPECT_EQ(value(b.scalar(ElementType::kU64, 0x1p63)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value(b.scalar(ElementType::kPred, 3)), 1);
  EXPECT_EQ(value(b.constant({2, 2}, std::vector<int32_t>{1, 2, 3, -4}), 3), -4);
  EXPECT_EQ(print_hlo(*b.scalar(ElementType::kBF16, 1.5).instr()).substr(13),
            "bf16[] constant(1.5)");
  EXPECT_EQ(print_hlo(*b.scalar(ElementType::kC64, -2).instr()).substr(13),
            "c64[] constant((-2, 0))");
  EXPECT_EQ(print_hlo(*b.constant({2}, std::vector<float>{0.5f, -1}).instr()).substr(13),
            "f32[2]{0} constant({0.5, -1})");
  EXPECT_EQ(error_of([&] { b.scalar(ElementType::kS8, 128); }),
            "constant: s8 does not hold 128 | whole numbers from -128 to 127");
  EXPECT_THAT(error_of([&] { b.scalar(ElementType::kU32, -1); }),
              HasSubstr("u32 does not hold -1"));
  EXPECT_THAT(error_of([&] { b.scalar(kS32, 0.5); }), HasSubstr("s32 does not hold 0.5"));
  EXPECT_THAT(error_of([&] { b.scalar(kS32, std::nan("")); }), HasSubstr("s32 does not hold nan"));
  EXPECT_EQ(error_of([&] { b.constant({3}, std::vector<float>{1, 2}); }),
            "constant: 2 elements for f32[3] | 3 are needed");
}

TEST(Builder, MeshSplit) {
  struct Case {
    std::vector<int64_t> mapping;
    const char* sharding;
  };
  const Case cases[] = {
      {{0, -1, 1}, "{devices=[2,1,4]<=[8]}"},
      {{1, 0, -1}, "{devices=[4,2,1]<=[2,4]T(1,0)}"},
      {{-1, -1, -1}, "{replicated}"},
      {{-1, -1, 0}, "{devices=[1,1,2,4]<=[8] last_tile_dim_replicate}"},
      {{-1, 1, -1}, "{devices=[1,4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"},
  };
  Builder b("splits");
  Expr x = b.parameter("x", kF32, {8, 8, 8});
  for (const Case& c : cases)
    EXPECT_EQ(annotation_of(MeshSplit(x + x, kMesh, c.mapping)), c.sharding);
  // Axes of one device, device orders, and dimensions that completion may split.
  NamedMesh narrow{{{"x", 1}, {"y", 4}}};
  EXPECT_EQ(annotation_of(MeshSplit(x + x, narrow, {0, 1, -1})), "{devices=[1,4,1]<=[4]}");
  NamedMesh turned = kMesh;
  turned.device_ids = {.reshape = {4, 2}, .perm = {1, 0}, .ids = {}};
  EXPECT_EQ(annotation_of(MeshSplit(x + x, turned, {0, 1, -1})), "{devices=[2,4,1]<=[4,2]T(1,0)}");
  Expr open = MeshSplit(x, kMesh, {0, -1, -1}, {1, 2});
  EXPECT_EQ(open.instr()->opcode, Opcode::kCustomCall);
  EXPECT_EQ(open.instr()->extras->backend_config, "\"unspecified_dims=[1,2]\"");
  EXPECT_EQ(annotation_of(x), "");
  // A parameter's first annotation is its own; a second one is a step from one to the other.
  EXPECT_EQ(MeshSplit(x, kMesh, {0, -1, -1}).instr(), x.instr());
  Expr again = MeshSplit(x, kMesh, {-1, 0, -1});
  EXPECT_EQ(again.instr()->opcode, Opcode::kCustomCall);
  EXPECT_EQ(annotation_of(x), "{devices=[2,1,1,4]<=[8] last_tile_dim_replicate}");
}

TEST(Builder, MeshSplitRefuses) {
  Builder b("splits");
  Expr x = b.parameter("x", kF32, {8, 8});
  EXPECT_EQ(error_of([&] { MeshSplit(x, kMesh, {0}); }),
            "MeshSplit: 1 mesh axes for f32[8,8] | one for each dimension, -1 for none");
  EXPECT_EQ(error_of([&] { MeshSplit(x, kMesh, {0, 2}); }),
            "MeshSplit: axis 2 of a mesh of 2 for dimension 1 | axes count from 0; -1 is none");
  EXPECT_EQ(error_of([&] { MeshSplit(x, kMesh, {1, 1}); }),
            "MeshSplit: axis 1 splits dimensions 0 and 1 | each axis splits one dimension at most");
  EXPECT_EQ(annotation_of(x), "");
}

TEST(Builder, OtherAnnotations) {
  Builder b("annotations");
  Expr x = b.parameter("x", kF32, {8, 8});
  EXPECT_EQ(annotation_of(annotate(x, "{devices=[4,2]<=[2,4]T(1,0)}")),
            "{devices=[4,2]<=[2,4]T(1,0)}");
  EXPECT_EQ(annotation_of(annotate(x, "{maximal device=3}")), "{maximal device=3}");
  EXPECT_THAT(error_of([&] { annotate(x, "{devices=[3,2]<=[8]}"); }), HasSubstr("annotate: "));
  EXPECT_THAT(error_of([&] { annotate(x, "{replicated} or so"); }), HasSubstr("text after"));
}

TEST(Builder, RefusesWhatDoesNotFit) {
  Builder b("wrong");
  Expr x = b.parameter("x", kF32, {8, 4}), y = b.parameter("y", kF32, {4, 8});
  EXPECT_THAT(error_of([&] { x + y; }),
              HasSubstr("add: operand 0 is f32[8,4] and operand 1 is f32[4,8]"));
  EXPECT_THAT(error_of([&] { op(Opcode::kAdd, {x}); }),
              HasSubstr("add has 1 operands, 2 are needed"));
  EXPECT_THAT(error_of([&] { op(Opcode::kReshape, {x}); }), HasSubstr("state it"));
  EXPECT_THAT(error_of([&] { reshape(x, {31}); }), HasSubstr("32 elements"));
  DotAttrs dot;
  EXPECT_THAT(error_of([&] { op(Opcode::kTranspose, {x}, &dot); }),
              HasSubstr("transpose: attributes of another operator"));
  EXPECT_THAT(error_of([&] { op(Opcode::kTuple, {}); }), HasSubstr("no operand"));
  Builder other("other");
  Expr z = other.parameter("z", kF32, {8, 4});
  EXPECT_THAT(error_of([&] { x + z; }), HasSubstr("belongs to another computation"));
  EXPECT_THAT(
      error_of([&] { b.define("f", {x.shape()}, [&](Builder&, Exprs p) { return p[0] + x; }); }),
      HasSubstr("belongs to another computation"));
  EXPECT_THAT(error_of([&] { b.build(z); }), HasSubstr("not a value of its entry"));
}

TEST(Builder, BuildsOnce) {
  Builder b("once");
  Expr x = b.parameter("x", kF32);
  auto first = b.build(x);
  EXPECT_EQ(error_of([&] { b.build(x); }),
            "build() was called before | a Builder makes one module");
}

TEST(Builder, ParametersHaveDifferentNames) {
  Builder b("names");
  b.parameter("x", kF32);
  Expr second = b.parameter("x", kF32);
  EXPECT_THAT(error_of([&] { b.build(second); }), HasSubstr("the name x is taken"));
}

TEST(Builder, PlacesOfTheModel) {
  Builder b("places");
  Expr x = b.parameter("x", kF32);
  b.locate("step/add", "model.cc", 12);
  Expr y = x + x;
  auto program = b.build(y);
  EXPECT_EQ(program->model_place(y.instr()->metadata), "model.cc:12");
  EXPECT_EQ(x.instr()->metadata, nullptr);
}

}  // namespace
}  // namespace gspmd
