#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/evaluate.h"

namespace gspmd::test {
namespace {

struct Case {
  const char* actual;
  const char* expected;
};

class ContractionKernel : public testing::TestWithParam<Case> {};

TEST_P(ContractionKernel, Gives) { expect_same(GetParam().actual, GetParam().expected); }

// clang-format off
constexpr Case kDots[] = {
    {"s32[2,2] dot(s32[2,2] constant({{1,2},{3,4}}), s32[2,2] constant({{5,6},{7,8}})), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "s32[2,2] constant({{19,22},{43,50}})"},
    {"s32[1] dot(s8[1,2] constant({{100, 100}}), s8[2] constant({100, 100})), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "s32[1] constant({20000})"},
    {"s8[] dot(s8[2] constant({100, 100}), s8[2] constant({100, 100})), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "s8[] constant(32)"},
    {"x = bf16[256] broadcast(bf16[] constant(1.0078125)), dimensions={}\n  ROOT r = bf16[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "bf16[] constant(260)"},
    {"c64[] dot(c64[2] constant({(1,2),(0,1)}), c64[2] constant({(3,0),(0,1)})), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "c64[] constant((2, 6))"},
    {"pred[2] dot(pred[2,2] constant({{1,0},{1,1}}), pred[2] constant({0,1})), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "pred[2] constant({0, 1})"},
    {"f32[2,0] dot(f32[2,3] constant({{1,2,3},{4,5,6}}), f32[3,0] constant({{},{},{}})), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[2,0] constant({{},{}})"},
    {"f32[2] dot(f32[2,0] constant({{},{}}), f32[0] constant({})), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[2] constant({0, 0})"},
};
constexpr Case kRagged[] = {
    // Rows 0 and 1 times 10, row 2 times 100, row 3 in no group.
    {"f32[4,1] ragged-dot(f32[4,1] constant({{1},{2},{3},{4}}), f32[2,1,1] constant({{{10}},{{100}}}), s32[2] constant({2,1})), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}", "f32[4,1] constant({{10},{20},{300},{0}})"},
    {"f32[2,1,1] ragged-dot(f32[1,4] constant({{1,2,3,4}}), f32[4,1] constant({{1},{1},{10},{10}}), s32[2] constant({2,1})), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={}", "f32[2,1,1] constant({{{3}},{{30}}})"},
    // Group sizes by batch.
    {"f32[2,2,1] ragged-dot(f32[2,2,1] constant({{{1},{2}},{{3},{4}}}), f32[2,2,1,1] constant({{{{10}},{{20}}},{{{100}},{{200}}}}), s32[2,2] constant({{1,1},{2,0}})), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={1}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}", "f32[2,2,1] constant({{{10},{200}},{{60},{80}}})"},
};
constexpr Case kScaled[] = {
    {"f32[1] scaled-dot(f32[1,4] constant({{1,2,3,4}}), f32[1,2] constant({{10,100}}), f32[4] constant({1,1,1,1}), f32[] constant(1)), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[1] constant({730})"},
    {"f32[] scaled-dot(f8e4m3fn[2] constant({1,2}), f8e8m0fnu[1] constant({4}), f8e4m3fn[2] constant({1,1}), f8e8m0fnu[2] constant({1,2})), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "f32[] constant(20)"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Dots, ContractionKernel, testing::ValuesIn(kDots));
INSTANTIATE_TEST_SUITE_P(Ragged, ContractionKernel, testing::ValuesIn(kRagged));
INSTANTIATE_TEST_SUITE_P(Scaled, ContractionKernel, testing::ValuesIn(kScaled));

class DotBackend : public testing::TestWithParam<bool> {
 protected:
  DotBackend() : backend_(GetParam() ? make_onednn_backend() : nullptr) {}
  std::unique_ptr<Backend> backend_;
};

// An array of whole numbers in [-3, 3] (times 1/4 for floats), as `NAME`.
std::string array(const char* name, ElementType type, const std::string& dims, int64_t n,
                  int factor) {
  const char* scale = is_float(type) ? "0.25" : "1";
  return fmt::format(
      "  {0}i = s32[{2}] iota(), iota_dimension=0\n  {0}c = s32[] constant({4})\n"
      "  {0}cs = s32[{2}] broadcast({0}c), dimensions={{}}\n  {0}p = s32[{2}] multiply({0}i, "
      "{0}cs)\n"
      "  {0}s = s32[] constant(7)\n  {0}ss = s32[{2}] broadcast({0}s), dimensions={{}}\n"
      "  {0}q = s32[{2}] remainder({0}p, {0}ss)\n  {0}t = s32[] constant(3)\n"
      "  {0}ts = s32[{2}] broadcast({0}t), dimensions={{}}\n  {0}r = s32[{2}] subtract({0}q, "
      "{0}ts)\n"
      "  {0}f = {1}[{2}] convert({0}r)\n  {0}g = {1}[] constant({5})\n"
      "  {0}gs = {1}[{2}] broadcast({0}g), dimensions={{}}\n  {0}h = {1}[{2}] multiply({0}f, "
      "{0}gs)\n"
      "  {0} = {1}[{3}] reshape({0}h)\n",
      name, name_of(type), n, dims, factor, scale);
}

// b [2], m [33], k [3,40], n [35] in every order of dimensions, each type, against plain loops.
TEST_P(DotBackend, ContractsAnyDimensions) {
  struct Order {
    const char *lhs, *rhs;
  };
  // Letters: b batch, m, n free, k and l contracted.
  const Order orders[] = {{"bmkl", "bkln"}, {"bklm", "bkln"}, {"bmkl", "bnkl"},
                          {"mbkl", "knbl"}, {"klbm", "nblk"}, {"lmkb", "bnlk"}};
  const ElementType types[] = {ElementType::kF32, ElementType::kBF16, ElementType::kF16,
                               ElementType::kF64, ElementType::kS8,   ElementType::kS32};
  const absl::flat_hash_map<char, int64_t> sizes = {
      {'b', 2}, {'m', 33}, {'k', 3}, {'l', 40}, {'n', 35}};
  for (const Order& o : orders) {
    for (ElementType type : types) {
      const std::string lhs = o.lhs, rhs = o.rhs;
      auto dims = [&](const std::string& order) {
        std::string out;
        for (char c : order) out += (out.empty() ? "" : ",") + std::to_string(sizes.at(c));
        return out;
      };
      const int64_t lhs_n = 2 * 33 * 120, rhs_n = 2 * 120 * 35;
      // Results that the narrow types hold exactly are wanted: they come out in a wider type.
      const ElementType out = type == ElementType::kS8 ? ElementType::kS32
                              : type == ElementType::kF64 || type == ElementType::kS32
                                  ? type
                                  : ElementType::kF32;
      const std::string program = fmt::format(
          "HloModule m\nENTRY e {{\n{}{}  d = {}[2,33,35] dot(x, y), lhs_batch_dims={{{}}}, "
          "lhs_contracting_dims={{{},{}}}, rhs_batch_dims={{{}}}, rhs_contracting_dims={{{},{}}}\n"
          "  ROOT t = ({}[{}], {}[{}], {}[2,33,35]) tuple(x, y, d)\n}}\n",
          array("x", type, dims(lhs), lhs_n, 13), array("y", type, dims(rhs), rhs_n, 31),
          name_of(out), lhs.find('b'), lhs.find('k'), lhs.find('l'), rhs.find('b'), rhs.find('k'),
          rhs.find('l'), name_of(type), dims(lhs), name_of(type), dims(rhs), name_of(out));
      std::vector<Buffer> r = evaluate(program, false, backend_.get());
      const std::vector<double> x = as_doubles(r[0]), y = as_doubles(r[1]), d = as_doubles(r[2]);
      auto at = [&](const std::string& order, const std::vector<double>& v,
                    absl::flat_hash_map<char, int64_t> i) {
        int64_t place = 0;
        for (char c : order) place = place * sizes.at(c) + i[c];
        return v[static_cast<size_t>(place)];
      };
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t m = 0; m < 33; m += 4) {
          for (int64_t n = 0; n < 35; n += 3) {
            double sum = 0;
            for (int64_t k = 0; k < 3; ++k) {
              for (int64_t l = 0; l < 40; ++l) {
                sum += at(lhs, x, {{'b', b}, {'m', m}, {'k', k}, {'l', l}}) *
                       at(rhs, y, {{'b', b}, {'n', n}, {'k', k}, {'l', l}});
              }
            }
            ASSERT_EQ(d[static_cast<size_t>((b * 33 + m) * 35 + n)], sum)
                << lhs << "," << rhs << " " << name_of(type) << " " << b << " " << m << " " << n;
          }
        }
      }
    }
  }
}

struct Conv {
  std::array<int64_t, 2> in, kernel, stride, low, high, lhs_dilate, rhs_dilate;
  std::array<bool, 2> reversed;
  int64_t batch, features, out_features, feature_groups, batch_groups;
  const char* labels;
};

constexpr Conv kConvs[] = {
    {{9, 8},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {false, false},
     2,
     4,
     6,
     1,
     1,
     "b01f_01io->b01f"},
    {{9, 8},
     {3, 3},
     {2, 1},
     {1, 0},
     {1, 2},
     {1, 1},
     {1, 2},
     {false, false},
     2,
     4,
     6,
     1,
     1,
     "bf01_oi01->bf01"},
    {{9, 8},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {false, false},
     2,
     4,
     6,
     2,
     1,
     "b01f_01io->b01f"},
    {{9, 8},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {false, false},
     2,
     4,
     8,
     4,
     1,
     "b01f_01io->b01f"},
    {{9, 8},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {false, false},
     4,
     3,
     6,
     1,
     2,
     "b01f_01io->b01f"},
    {{5, 4},
     {3, 2},
     {1, 1},
     {2, 1},
     {2, 1},
     {2, 3},
     {1, 1},
     {false, false},
     2,
     4,
     6,
     1,
     1,
     "b01f_01io->b01f"},
    {{9, 8},
     {3, 2},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {1, 1},
     {true, false},
     2,
     4,
     6,
     1,
     1,
     "f01b_i01o->01bf"},
    {{9, 8},
     {3, 3},
     {1, 1},
     {-1, 1},
     {1, -2},
     {1, 1},
     {1, 1},
     {false, true},
     2,
     4,
     6,
     1,
     1,
     "b01f_01io->b01f"},
    {{9, 8},
     {2, 2},
     {2, 3},
     {1, 2},
     {0, 1},
     {2, 1},
     {2, 2},
     {true, true},
     2,
     4,
     6,
     2,
     1,
     "b01f_01io->b01f"},
};

int64_t conv_size(const Conv& c, int d) {
  const int64_t base = (c.in[d] - 1) * c.lhs_dilate[d] + 1 + c.low[d] + c.high[d];
  const int64_t window = (c.kernel[d] - 1) * c.rhs_dilate[d] + 1;
  return base < window ? 0 : (base - window) / c.stride[d] + 1;
}

// Where an element lies in an array whose dimensions are labelled so.
int64_t place(const std::string& labels, absl::flat_hash_map<char, int64_t> sizes,
              absl::flat_hash_map<char, int64_t> at) {
  int64_t out = 0;
  for (char c : labels) out = out * sizes[c] + at[c];
  return out;
}

void check_conv(const Conv& c, ElementType type, Backend* backend) {
  const std::string labels = c.labels;
  const std::string x_labels = labels.substr(0, 4), k_labels = labels.substr(5, 4),
                    r_labels = labels.substr(11, 4);
  absl::flat_hash_map<char, int64_t> x_sizes = {
      {'b', c.batch}, {'f', c.features}, {'0', c.in[0]}, {'1', c.in[1]}};
  absl::flat_hash_map<char, int64_t> k_sizes = {{'i', c.features / c.feature_groups},
                                                {'o', c.out_features},
                                                {'0', c.kernel[0]},
                                                {'1', c.kernel[1]}};
  absl::flat_hash_map<char, int64_t> r_sizes = {{'b', c.batch / c.batch_groups},
                                                {'f', c.out_features},
                                                {'0', conv_size(c, 0)},
                                                {'1', conv_size(c, 1)}};
  auto dims = [](const std::string& order, absl::flat_hash_map<char, int64_t>& sizes, int64_t* n) {
    std::string out;
    *n = 1;
    for (char l : order) {
      out += (out.empty() ? "" : ",") + std::to_string(sizes[l]);
      *n *= sizes[l];
    }
    return out;
  };
  int64_t x_n, k_n, r_n;
  const std::string x_dims = dims(x_labels, x_sizes, &x_n), k_dims = dims(k_labels, k_sizes, &k_n),
                    r_dims = dims(r_labels, r_sizes, &r_n);
  auto pair = [](auto& v, const char* by) { return fmt::format("{}{}{}", v[0], by, v[1]); };
  const std::string program = fmt::format(
      "HloModule m\nENTRY e {{\n{}{}  r = {}[{}] convolution(x, y), window={{size={} stride={} "
      "pad={}_{}x{}_{} lhs_dilate={} rhs_dilate={} rhs_reversal={}x{}}}, dim_labels={}, "
      "feature_group_count={}, batch_group_count={}\n  ROOT t = ({}[{}], {}[{}], {}[{}]) tuple(x, "
      "y, r)\n}}\n",
      array("x", type, x_dims, x_n, 13), array("y", type, k_dims, k_n, 31), name_of(type), r_dims,
      pair(c.kernel, "x"), pair(c.stride, "x"), c.low[0], c.high[0], c.low[1], c.high[1],
      pair(c.lhs_dilate, "x"), pair(c.rhs_dilate, "x"), int{c.reversed[0]}, int{c.reversed[1]},
      labels, c.feature_groups, c.batch_groups, name_of(type), x_dims, name_of(type), k_dims,
      name_of(type), r_dims);
  std::vector<Buffer> results = evaluate(program, false, backend);
  const std::vector<double> x = as_doubles(results[0]), y = as_doubles(results[1]),
                            r = as_doubles(results[2]);
  const int64_t group_in = c.features / c.feature_groups;
  for (int64_t b = 0; b < r_sizes['b']; ++b)
    for (int64_t o = 0; o < c.out_features; ++o)
      for (int64_t p = 0; p < r_sizes['0']; ++p)
        for (int64_t q = 0; q < r_sizes['1']; ++q) {
          double sum = 0;
          const int64_t fg = o / (c.out_features / c.feature_groups),
                        bg = o / (c.out_features / c.batch_groups);
          for (int64_t i = 0; i < group_in; ++i)
            for (int64_t k0 = 0; k0 < c.kernel[0]; ++k0)
              for (int64_t k1 = 0; k1 < c.kernel[1]; ++k1) {
                const int64_t a0 = p * c.stride[0] + k0 * c.rhs_dilate[0] - c.low[0];
                const int64_t a1 = q * c.stride[1] + k1 * c.rhs_dilate[1] - c.low[1];
                if (a0 < 0 || a1 < 0 || a0 % c.lhs_dilate[0] != 0 || a1 % c.lhs_dilate[1] != 0)
                  continue;
                const int64_t i0 = a0 / c.lhs_dilate[0], i1 = a1 / c.lhs_dilate[1];
                if (i0 >= c.in[0] || i1 >= c.in[1]) continue;
                const int64_t t0 = c.reversed[0] ? c.kernel[0] - 1 - k0 : k0;
                const int64_t t1 = c.reversed[1] ? c.kernel[1] - 1 - k1 : k1;
                sum += x[static_cast<size_t>(place(x_labels, x_sizes,
                                                   {{'b', bg * r_sizes['b'] + b},
                                                    {'f', fg * group_in + i},
                                                    {'0', i0},
                                                    {'1', i1}}))] *
                       y[static_cast<size_t>(
                           place(k_labels, k_sizes, {{'i', i}, {'o', o}, {'0', t0}, {'1', t1}}))];
              }
          ASSERT_EQ(r[static_cast<size_t>(
                        place(r_labels, r_sizes, {{'b', b}, {'f', o}, {'0', p}, {'1', q}}))],
                    sum)
              << name_of(type) << " " << b << " " << o << " " << p << " " << q;
        }
}

TEST_P(DotBackend, ConvolvesAnyWindow) {
  for (const Conv& c : kConvs) {
    SCOPED_TRACE(fmt::format("{} kernel {} stride {} dilate {} {}", c.labels,
                             fmt::join(c.kernel, "x"), fmt::join(c.stride, "x"),
                             fmt::join(c.lhs_dilate, "x"), fmt::join(c.rhs_dilate, "x")));
    for (ElementType type : {ElementType::kF32, ElementType::kS32, ElementType::kF64}) {
      check_conv(c, type, backend_.get());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plain, DotBackend, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Onednn, DotBackend, testing::Values(true));

}  // namespace
}  // namespace gspmd::test
