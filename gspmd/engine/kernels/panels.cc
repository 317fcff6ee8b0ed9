// Matrix products in panels: b is packed into panels of two vectors' width, and four rows of a run
// over each panel with their sums in registers.

#include "gspmd/engine/kernels/panels.h"

#include <algorithm>
#include <vector>

#include "gspmd/engine/kernels/strided.h"

namespace gspmd {
namespace {

// 64 bytes of T; compilers split it where the processor's vectors are narrower.
template <typename T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(64), aligned(4)));
};
template <>
struct VectorOf<double> {
  typedef double Type __attribute__((vector_size(64), aligned(8)));
};

template <typename T>
constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));
template <typename T>
constexpr int64_t kWidth = 2 * kLanes<T>;

template <typename T>
struct Problem {
  const T* a;
  int64_t a_row, a_column;
  const T* panel;  // [k, kWidth]
  int64_t m, k;
  T* c;
  int64_t c_row, columns;  // of c that the panel covers
};

// Rows i .. i + kRows - 1 of one panel.
template <int kRows, typename T>
[[gnu::always_inline]] inline void multiply_rows(const Problem<T>& p, int64_t i) {
  using V = typename VectorOf<T>::Type;
  V left[kRows] = {}, right[kRows] = {};
  const T* a = p.a + i * p.a_row;
  const T* b = p.panel;
  for (int64_t l = 0; l < p.k; ++l, b += kWidth<T>, a += p.a_column) {
    const V b0 = *reinterpret_cast<const V*>(b);
    const V b1 = *reinterpret_cast<const V*>(b + kLanes<T>);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const T factor = a[r * p.a_row];
      left[r] += factor * b0;
      right[r] += factor * b1;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    T* c = p.c + (i + r) * p.c_row;
    for (int64_t j = 0; j < p.columns; ++j) {
      c[j] += j < kLanes<T> ? left[r][j] : right[r][j - kLanes<T>];
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void multiply_panel(const Problem<T>& p) {
  int64_t i = 0;
  for (; i + 4 <= p.m; i += 4) multiply_rows<4>(p, i);
  for (; i < p.m; ++i) multiply_rows<1>(p, i);
}

// One body for each kind of processor.
template <typename T>
using PanelFn = void (*)(const Problem<T>&);

#define GSPMD_PANEL_FNS(T)                                                                        \
  __attribute__((target("avx512f,avx512vl,fma"))) void panel_avx512(const Problem<T>& p) {        \
    multiply_panel(p);                                                                            \
  }                                                                                               \
  __attribute__((target("avx2,fma"))) void panel_avx2(const Problem<T>& p) { multiply_panel(p); } \
  void panel_any(const Problem<T>& p) { multiply_panel(p); }
GSPMD_PANEL_FNS(float)
GSPMD_PANEL_FNS(double)
#undef GSPMD_PANEL_FNS

template <typename T>
PanelFn<T> panel_fn() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return panel_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return panel_avx2;
  return panel_any;
}

template <typename T>
void multiply_all(const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t b_row,
                  int64_t b_column, int64_t m, int64_t n, int64_t k, T* c) {
  const PanelFn<T> fn = panel_fn<T>();
  std::vector<T> panel(static_cast<size_t>(k * kWidth<T>), T{0});
  for (int64_t j = 0; j < n; j += kWidth<T>) {
    const int64_t columns = std::min(kWidth<T>, n - j);
    copy_strided(sizeof(T), {{k, b_row, kWidth<T>}, {columns, b_column, 1}},
                 reinterpret_cast<const std::byte*>(b + j * b_column),
                 reinterpret_cast<std::byte*>(panel.data()));
    fn({a, a_row, a_column, panel.data(), m, k, c + j, n, columns});
  }
}

}  // namespace

void multiply_panels(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row,
                     int64_t b_column, int64_t m, int64_t n, int64_t k, float* c) {
  multiply_all(a, a_row, a_column, b, b_row, b_column, m, n, k, c);
}

void multiply_panels(const double* a, int64_t a_row, int64_t a_column, const double* b,
                     int64_t b_row, int64_t b_column, int64_t m, int64_t n, int64_t k, double* c) {
  multiply_all(a, a_row, a_column, b, b_row, b_column, m, n, k, c);
}

}  // namespace gspmd
