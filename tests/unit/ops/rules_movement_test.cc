// Rules of element-wise operators, leaves, data movement, gather and scatter, as einsum-like lines.

#include <gtest/gtest.h>

#include "tests/unit/ops/op_bench.h"

namespace gspmd {
namespace {

using List = std::initializer_list<int64_t>;

class MovementRules : public ::testing::Test {
 protected:
  Attrs over(List d) { return b.attrs(DimsAttrs{b.dims(d)}); }
  std::string reshape(std::string_view from, std::string_view to) {
    return b.rule(Opcode::kReshape, {from}, {}, {}, to);
  }
  OpBench b;
};

TEST_F(MovementRules, Elementwise) {
  EXPECT_EQ(b.rule(Opcode::kAdd, {"f32[8,4]", "f32[8,4]"}), "ab,ab->ab");
  EXPECT_EQ(b.rule(Opcode::kExp, {"f32[8,1,4]"}), "abc->abc");
  EXPECT_EQ(b.rule(Opcode::kNegate, {"f32[]"}), "->");
  EXPECT_EQ(b.rule(Opcode::kSelect, {"pred[8]", "f32[8]", "f32[8]"}), "a,a,a->a");
  EXPECT_EQ(b.rule(Opcode::kSelect, {"pred[]", "f32[8]", "f32[8]"}), ",a,a->a");
  EXPECT_EQ(b.rule(Opcode::kClamp, {"f32[]", "f32[8]", "f32[]"}), ",a,->a");
  EXPECT_EQ(b.rule(Opcode::kConvert, {"f32[8]"}, {}, {}, "bf16[8]"), "a->a");
  EXPECT_EQ(b.rule(Opcode::kMap, {"f32[8]", "f32[8]"}, over({0}), {b.reducer(Opcode::kAdd)}),
            "a,a->a");
}

TEST_F(MovementRules, Leaves) {
  EXPECT_EQ(b.rule(Opcode::kIota, {}, b.attrs(IotaAttrs{1}), {}, "s32[8,4]"),
            "->ab | b: parallel, by handler");
  EXPECT_EQ(b.rule(Opcode::kPartitionId, {}), "->");
}

TEST_F(MovementRules, BroadcastTransposeReverse) {
  EXPECT_EQ(b.rule(Opcode::kBroadcast, {"f32[8,4]"}, over({0, 2}), {}, "f32[8,3,4]"), "ab->acb");
  EXPECT_EQ(b.rule(Opcode::kBroadcast, {"f32[]"}, over({}), {}, "f32[8,3]"), "->ab");
  EXPECT_EQ(b.rule(Opcode::kTranspose, {"f32[8,3,4]"}, over({2, 0, 1})), "abc->cab");
  EXPECT_EQ(b.rule(Opcode::kReverse, {"f32[8,3]"}, over({1})), "ab->ab | b: permute");
}

TEST_F(MovementRules, ConcatenateSlicePad) {
  EXPECT_EQ(b.rule(Opcode::kConcatenate, {"f32[8,3]", "f32[8,5]"}, over({1})),
            "ab,ab->ab | b: window");
  auto slice = [&](List starts, List limits, List strides) {
    return b.rule(Opcode::kSlice, {"f32[8,6]"},
                  b.attrs(SliceAttrs{b.dims(starts), b.dims(limits), b.dims(strides)}));
  };
  EXPECT_EQ(slice({0, 1}, {8, 6}, {1, 2}), "ab->ab | b: window");
  EXPECT_EQ(slice({0, 0}, {8, 6}, {1, 1}), "ab->ab");
  auto pad = [&](List low, List high, List interior) {
    return b.rule(Opcode::kPad, {"f32[8,6]", "f32[]"},
                  b.attrs(PadAttrs{b.dims(low), b.dims(high), b.dims(interior)}));
  };
  EXPECT_EQ(pad({0, 1}, {0, 0}, {0, 0}), "ab,->ab | b: window");
  EXPECT_EQ(pad({0, 0}, {0, 0}, {2, 0}), "ab,->ab | a: window");
}

TEST_F(MovementRules, WindowsOfSlicesAndPads) {
  // Result index i of the slice reads operand 1 + 2 i.
  Attrs slice = b.attrs(SliceAttrs{b.dims({1}), b.dims({6}), b.dims({2})});
  const Factor& s = b.rule_of(*b.make(Opcode::kSlice, {"f32[6]"}, slice)).factor(0);
  EXPECT_EQ(s.size, 3);
  EXPECT_EQ(s.window->stride, 2);
  EXPECT_EQ(s.window->pad_low, -1);
  // A stride that reaches no second element says nothing.
  Attrs one = b.attrs(SliceAttrs{b.dims({1}), b.dims({6}), b.dims({int64_t{1} << 62})});
  EXPECT_EQ(b.rule_of(*b.make(Opcode::kSlice, {"f32[6]"}, one)).factor(0).window->stride, 1);
  Attrs pad = b.attrs(PadAttrs{b.dims({2}), b.dims({-1}), b.dims({1})});
  const Factor& p = b.rule_of(*b.make(Opcode::kPad, {"f32[6]", "f32[]"}, pad)).factor(0);
  EXPECT_EQ(p.size, 12);
  EXPECT_EQ(p.window->base_dilation, 2);
  EXPECT_EQ(p.window->pad_low, 2);
  EXPECT_EQ(p.window->pad_high, -1);
}

TEST_F(MovementRules, Reshape) {
  struct Case {
    std::string_view from, to, rule;
  };
  const Case kCases[] = {
      {"f32[8]", "f32[8]", "a->a"},
      {"f32[8,6]", "f32[48]", "ab->(ab)"},
      {"f32[48]", "f32[8,6]", "(ab)->ab"},
      {"f32[8,6]", "f32[2,4,6]", "(ab)c->abc"},
      {"f32[8,6]", "f32[2,24]", "(ab)c->a(bc)"},
      {"f32[8,1,6]", "f32[1,8,6]", "a_b->_ab"},
      {"f32[8,1]", "f32[8]", "a_->a"},
      {"f32[1,1]", "f32[]", "__->"},
      {"f32[]", "f32[1]", "->_"},
      {"f32[6,4]", "f32[4,6]", "(ab)c->(ad)e | b: whole, c: whole, d: whole, e: whole"},
      {"f32[6,4,5]", "f32[4,6,5]", "(ab)cd->(ae)fd | b: whole, c: whole, e: whole, f: whole"},
      {"f32[3,5]", "f32[5,3]", "ab->cd | a: whole, b: whole, c: whole, d: whole"},
      {"f32[2,3,5]", "f32[2,15]", "abc->a(bc)"},
      {"f32[0,4]", "f32[0]", "__->_"},
      {"f32[4,0]", "f32[0,7]", "__->__"},
      {"f32[4,0]", "f32[2,2,0]", "__->___"},
  };
  for (const Case& c : kCases) EXPECT_EQ(reshape(c.from, c.to), c.rule) << c.from << " -> " << c.to;
}

TEST_F(MovementRules, BitcastConvert) {
  EXPECT_EQ(b.rule(Opcode::kBitcastConvert, {"f32[8]"}, {}, {}, "s32[8]"), "a->a");
  EXPECT_EQ(b.rule(Opcode::kBitcastConvert, {"u32[8]"}, {}, {}, "u8[8,4]"), "a->a_");
  EXPECT_EQ(b.rule(Opcode::kBitcastConvert, {"u8[8,4]"}, {}, {}, "u32[8]"), "a_->a");
}

TEST_F(MovementRules, DynamicSlices) {
  Attrs sizes = b.attrs(DynamicSliceAttrs{b.dims({8, 2})});
  EXPECT_EQ(b.rule(Opcode::kDynamicSlice, {"f32[8,6]", "s32[]", "s32[]"}, sizes),
            "ab,,->a_ | b: indexed(sum)");
  EXPECT_EQ(b.rule(Opcode::kDynamicSlice, {"pred[8,6]", "s32[]", "s32[]"}, sizes),
            "ab,,->a_ | b: indexed(or)");
  EXPECT_EQ(b.rule(Opcode::kDynamicUpdateSlice, {"f32[8,6]", "f32[8,2]", "s32[]", "s32[]"}),
            "ab,a_,,->ab | b: parallel, by handler");
}

// Rows of a table: operand [9,5], indices [8] or [8,1], result [8,5].
GatherAttrs rows(OpBench& b, int64_t vector_dim) {
  GatherAttrs a;
  a.offset_dims = b.dims({1});
  a.collapsed_slice_dims = b.dims({0});
  a.start_index_map = b.dims({0});
  a.slice_sizes = b.dims({1, 5});
  a.index_vector_dim = vector_dim;
  return a;
}

TEST_F(MovementRules, Gather) {
  EXPECT_EQ(b.rule(Opcode::kGather, {"f32[9,5]", "s32[8]"}, b.attrs(rows(b, 1))),
            "ab,c->cb | a: indexed(sum)");
  EXPECT_EQ(b.rule(Opcode::kGather, {"pred[9,5]", "s32[8,1]"}, b.attrs(rows(b, 1))),
            "ab,c_->cb | a: indexed(or)");
  GatherAttrs part = rows(b, 1);  // three of five columns: not in place
  part.slice_sizes = b.dims({1, 3});
  EXPECT_EQ(b.rule(Opcode::kGather, {"f32[9,5]", "s32[8,1]"}, b.attrs(part)),
            "a_,b_->b_ | a: indexed(sum)");
  // The index chooses columns only: every slice has row 0, which one shard alone holds.
  GatherAttrs columns = rows(b, 1);
  columns.start_index_map = b.dims({1});
  EXPECT_EQ(b.rule(Opcode::kGather, {"f32[9,5]", "s32[8,1]"}, b.attrs(columns)), "_a,b_->ba");
  GatherAttrs batched = rows(b, 2);
  batched.operand_batching_dims = b.dims({0});
  batched.start_indices_batching_dims = b.dims({1});
  batched.collapsed_slice_dims = b.dims({});
  batched.start_index_map = b.dims({1});
  batched.offset_dims = b.dims({2});
  batched.slice_sizes = b.dims({1, 1});
  EXPECT_EQ(b.rule(Opcode::kGather, {"f32[4,5]", "s32[8,4,1]"}, b.attrs(batched)),
            "ab,ca_->ca_ | b: indexed(sum)");
}

// Rows added to a table: operand [9,5], indices [8,1], updates [8,5].
ScatterAttrs add_rows(OpBench& b) {
  ScatterAttrs a;
  a.update_window_dims = b.dims({1});
  a.inserted_window_dims = b.dims({0});
  a.scatter_dims_to_operand_dims = b.dims({0});
  a.index_vector_dim = 1;
  return a;
}

TEST_F(MovementRules, Scatter) {
  auto* add = b.reducer(Opcode::kAdd);
  auto* take = b.opaque({"f32[]", "f32[]"}, "f32[]");
  EXPECT_EQ(
      b.rule(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[8,5]"}, b.attrs(add_rows(b)), {add}),
      "ab,c_,cb->ab | a: indexed, c: reduce(sum, by handler)");
  EXPECT_EQ(
      b.rule(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[8,5]"}, b.attrs(add_rows(b)), {take}),
      "ab,c_,cb->ab | a: indexed, c: reduce(none, by handler)");
  EXPECT_EQ(
      b.rule(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[8,3]"}, b.attrs(add_rows(b)), {add}),
      "ab,c_,c_->ab | a: indexed, b: indexed, c: reduce(sum, by handler)");
  // The index chooses columns only: all updates go to row 0, which one shard alone holds.
  ScatterAttrs columns = add_rows(b);
  columns.scatter_dims_to_operand_dims = b.dims({1});
  EXPECT_EQ(b.rule(Opcode::kScatter, {"f32[9,5]", "s32[8,1]", "f32[8,5]"}, b.attrs(columns), {add}),
            "ab,c_,cb->ab | a: whole, c: reduce(sum, by handler)");
  ScatterAttrs batched = add_rows(b);
  batched.input_batching_dims = b.dims({0});
  batched.scatter_indices_batching_dims = b.dims({0});
  batched.inserted_window_dims = b.dims({1});
  batched.scatter_dims_to_operand_dims = b.dims({1});
  batched.update_window_dims = b.dims({});
  batched.index_vector_dim = 2;
  EXPECT_EQ(
      b.rule(Opcode::kScatter, {"f32[4,5]", "s32[4,8,1]", "f32[4,8]"}, b.attrs(batched), {add}),
      "ab,ac_,ac->ab | b: indexed, c: reduce(sum, by handler)");
}

}  // namespace
}  // namespace gspmd
