#include <gtest/gtest.h>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

constexpr const char* kAdd =
    "add {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] add(a, b)\n}\n";
constexpr const char* kAssign =
    "assign {\n  a = s32[] parameter(0)\n  ROOT b = s32[] parameter(1)\n}\n";

struct Case {
  const char* actual;
  const char* expected;
  const char* computations = "";
};

class IndexingKernel : public testing::TestWithParam<Case> {};

TEST_P(IndexingKernel, Gives) {
  expect_same(GetParam().actual, GetParam().expected, GetParam().computations);
}

// clang-format off
constexpr Case kDynamic[] = {
    {"s32[3] dynamic-slice(s32[10] constant({0,1,2,3,4,5,6,7,8,9}), s32[] constant(9)), dynamic_slice_sizes={3}", "s32[3] constant({7, 8, 9})"},
    {"s32[3] dynamic-slice(s32[10] constant({0,1,2,3,4,5,6,7,8,9}), s32[] constant(-4)), dynamic_slice_sizes={3}", "s32[3] constant({0, 1, 2})"},
    {"s32[3] dynamic-slice(s32[10] constant({0,1,2,3,4,5,6,7,8,9}), u64[] constant(18446744073709551615)), dynamic_slice_sizes={3}", "s32[3] constant({7, 8, 9})"},
    {"s32[1,2] dynamic-slice(s32[2,3] constant({{1,2,3},{4,5,6}}), s8[] constant(1), s8[] constant(1)), dynamic_slice_sizes={1,2}", "s32[1,2] constant({{5, 6}})"},
    {"s32[4] dynamic-update-slice(s32[4] constant({1,2,3,4}), s32[2] constant({8,9}), s32[] constant(7))", "s32[4] constant({1, 2, 8, 9})"},
    {"s32[2,2] dynamic-update-slice(s32[2,2] constant({{1,2},{3,4}}), s32[2,1] constant({{8},{9}}), s32[] constant(-3), s32[] constant(1))", "s32[2,2] constant({{1, 8}, {3, 9}})"},
    {"s32[] get-dimension-size(f32[3,5] constant({{1,2,3,4,5},{1,2,3,4,5},{1,2,3,4,5}})), dimensions={1}", "s32[] constant(5)"},
};
constexpr Case kGathers[] = {
    // r[i,b,j] = a[idx[b], i, j], the second index clamped.
    {"i = s32[24] iota(), iota_dimension=0\n  ROOT r = s32[3,2,2] gather(s32[4,3,2] reshape(i), s32[2] constant({1, 9})), offset_dims={0,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,2}",
     "s32[3,2,2] constant({{{6,7},{18,19}},{{8,9},{20,21}},{{10,11},{22,23}}})"},
    // Index vectors along dimension 0, the map swapped, negative clamped.
    {"i = s32[12] iota(), iota_dimension=0\n  ROOT r = s32[2] gather(s32[3,4] reshape(i), s32[2,2] constant({{3, -5}, {2, 1}})), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={1,1}",
     "s32[2] constant({11, 4})"},
    // Windows of two, clamped so that they lie within.
    {"s32[2,2] gather(s32[5] constant({0,1,2,3,4}), s32[2,1] constant({{4}, {1}})), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2}",
     "s32[2,2] constant({{3,4},{1,2}})"},
    // Batching dimensions: row b of the operand is read by row b of the indices.
    {"s32[2,2] gather(s32[2,3] constant({{10,11,12},{20,21,22}}), s32[2,2,1] constant({{{0},{2}},{{1},{1}}})), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}",
     "s32[2,2] constant({{10,12},{21,21}})"},
};
constexpr Case kScatters[] = {
    {"s32[4] scatter(s32[4] constant({1,2,3,4}), s32[4,1] constant({{1},{1},{7},{-1}}), s32[4] constant({10,20,30,40})), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", "s32[4] constant({1, 32, 3, 4})", kAdd},
    {"s32[4] scatter(s32[4] constant({1,2,3,4}), s32[2,1] constant({{1},{1}}), s32[2] constant({10,20})), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=assign", "s32[4] constant({1, 20, 3, 4})", kAssign},
    // A window that does not fit is skipped as a whole.
    {"s32[4] scatter(s32[4] constant({1,2,3,4}), s32[2,1] constant({{3},{0}}), s32[2,2] constant({{10,20},{30,40}})), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", "s32[4] constant({31, 42, 3, 4})", kAdd},
    // Rows into a table.
    {"s32[3,2] scatter(s32[3,2] constant({{1,2},{3,4},{5,6}}), s32[2] constant({2,2}), s32[2,2] constant({{10,20},{30,40}})), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", "s32[3,2] constant({{1,2},{3,4},{45,66}})", kAdd},
    // Columns: the window runs along the operand's first dimension.
    {"s32[3,2] scatter(s32[3,2] constant({{1,2},{3,4},{5,6}}), s32[1] constant({1}), s32[1,3] constant({{10,20,30}})), update_window_dims={1}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=add", "s32[3,2] constant({{1,12},{3,24},{5,36}})", kAdd},
    {"s32[2,3] scatter(s32[2,3] constant({{0,0,0},{0,0,0}}), s32[2,1,1] constant({{{2}},{{0}}}), s32[2,1] constant({{5},{6}})), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=add", "s32[2,3] constant({{0,0,5},{6,0,0}})", kAdd},
};
constexpr const char* kTwo =
    "two {\n  a = s32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  d = f32[] parameter(3)\n"
    "  s = s32[] add(a, c)\n  m = f32[] maximum(b, d)\n  ROOT t = (s32[], f32[]) tuple(s, m)\n}\n";
constexpr Case kVariadic[] = {
    {"(s32[2], f32[2]) scatter(s32[2] constant({1,2}), f32[2] constant({1,2}), s32[2,1] constant({{1},{1}}), s32[2] constant({10,20}), f32[2] constant({5,4})), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=two", "(s32[2], f32[2]) tuple(s32[2] constant({1,32}), f32[2] constant({1,5}))", kTwo},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Dynamic, IndexingKernel, testing::ValuesIn(kDynamic));
INSTANTIATE_TEST_SUITE_P(Gathers, IndexingKernel, testing::ValuesIn(kGathers));
INSTANTIATE_TEST_SUITE_P(Scatters, IndexingKernel, testing::ValuesIn(kScatters));
INSTANTIATE_TEST_SUITE_P(Variadic, IndexingKernel, testing::ValuesIn(kVariadic));

TEST(IndexingKernels, AnUpdateOfMemoryHeldOnceIsInPlace) {
  Buffer x = Buffer::zeros(ElementType::kS32, {1000});
  const std::byte* memory = x.raw();
  // The kernel looks at operands only; any instruction of the operator will do.
  auto context = std::make_shared<Context>();
  Module module(context, "m");
  Computation* c = module.add_computation("c");
  Instr* instr =
      module.add(c, Opcode::kDynamicUpdateSlice, context->array(ElementType::kS32, {1000}), {});
  Buffer update = Buffer::zeros(ElementType::kS32, {1}),
         start = Buffer::zeros(ElementType::kS32, {});
  update.mutable_data<int32_t>()[0] = 5;
  std::vector<Buffer> operands = {std::move(x), update, start};
  std::vector<Buffer> r =
      kernel_of(Opcode::kDynamicUpdateSlice)(*instr, absl::MakeSpan(operands), {});
  EXPECT_EQ(r[0].raw(), memory);
  EXPECT_EQ(r[0].data<int32_t>()[0], 5);
}

}  // namespace
}  // namespace gspmd::test
