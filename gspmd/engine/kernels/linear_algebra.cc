// cholesky, triangular-solve: in f64 or c128, rounded once.

#include <cmath>
#include <complex>
#include <limits>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {
namespace {

double conjugate(double x) { return x; }
std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }
double real_of(double x) { return x; }
double real_of(std::complex<double> x) { return x.real(); }

template <typename T>
std::vector<T> loaded(const Buffer& b, Lane lane) {
  std::vector<T> out(static_cast<size_t>(b.size()));
  load_as(b.type(), b.raw(), b.size(), lane, out.data());
  return out;
}

// A row-major matrix.
template <typename T>
struct Matrix {
  T* data;
  int64_t columns;
  T& operator()(int64_t i, int64_t j) const { return data[i * columns + j]; }
};

// a becomes L with a = L L^H, from its lower triangle; false if it is not positive definite.
template <typename T>
bool factorize(const Matrix<T>& a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double pivot = real_of(a(j, j));
    for (int64_t k = 0; k < j; ++k) pivot -= std::norm(a(j, k));
    if (!(pivot > 0)) return false;
    const double root = std::sqrt(pivot);
    a(j, j) = root;
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= a(i, k) * conjugate(a(j, k));
      a(i, j) = sum / root;
    }
  }
  return true;
}

template <typename T>
void cholesky_one(T* data, int64_t n, bool lower) {
  const Matrix<T> a{data, n};
  if (!lower) {  // U = L^H, and the upper triangle of a is its lower one's mirror image
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) a(i, j) = conjugate(a(j, i));
    }
  }
  if (!factorize(a, n)) {
    std::fill(data, data + n * n, T(std::numeric_limits<double>::quiet_NaN()));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      a(i, j) = lower ? T(0) : conjugate(a(j, i));
      if (!lower) a(j, i) = T(0);
    }
  }
}

template <typename T>
void cholesky_all(const Buffer& x, Lane lane, bool lower, Buffer* result) {
  std::vector<T> data = loaded<T>(x, lane);
  const int64_t n = x.dims().back(), size = n * n;
  for (int64_t at = 0; at < x.size(); at += size) cholesky_one(data.data() + at, n, lower);
  store_from(result->type(), lane, data.data(), result->size(), result->mutable_raw());
}

// op(a) of a triangular matrix, as a function of its indices.
template <typename T>
struct Triangle {
  Matrix<const T> a;
  TransposeA transpose;
  bool unit;

  T operator()(int64_t i, int64_t j) const {
    if (unit && i == j) return T(1);
    if (transpose == TransposeA::kNoTranspose) return a(i, j);
    return transpose == TransposeA::kAdjoint ? conjugate(a(j, i)) : a(j, i);
  }
};

// t x = b for x in b's place; `entry(k, c)` is element k of right-hand side c.
template <typename T, typename Get, typename Entry>
void substitute(const Get& t, bool lower, int64_t n, int64_t columns, const Entry& entry) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = lower ? step : n - 1 - step;
      T sum = entry(i, c);
      const int64_t begin = lower ? 0 : i + 1, end = lower ? i : n;
      for (int64_t k = begin; k < end; ++k) sum -= t(i, k) * entry(k, c);
      entry(i, c) = sum / t(i, i);
    }
  }
}

template <typename T>
void solve_one(const TriangularSolveAttrs& attrs, const T* a, T* b, int64_t rows, int64_t columns) {
  const int64_t n = attrs.left_side ? rows : columns;
  const Triangle<T> t{{a, n}, attrs.transpose_a, attrs.unit_diagonal};
  const bool lower = attrs.lower == (attrs.transpose_a == TransposeA::kNoTranspose);
  const Matrix<T> x{b, columns};
  if (attrs.left_side) {
    substitute<T>(t, lower, n, columns, [&](int64_t k, int64_t c) -> T& { return x(k, c); });
  } else {  // x op(a) = b is op(a)^T x^T = b^T
    const auto transposed = [&](int64_t i, int64_t j) { return t(j, i); };
    substitute<T>(transposed, !lower, n, rows, [&](int64_t k, int64_t r) -> T& { return x(r, k); });
  }
}

template <typename T>
void solve_all(const TriangularSolveAttrs& attrs, absl::Span<const Buffer> operands, Lane lane,
               Buffer* result) {
  const std::vector<T> a = loaded<T>(operands[0], lane);
  std::vector<T> b = loaded<T>(operands[1], lane);
  const DimVector& dims = operands[1].dims();
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  const int64_t n = operands[0].dims().back(), size = rows * columns;
  for (int64_t i = 0; size > 0 && i < operands[1].size() / size; ++i) {
    solve_one(attrs, a.data() + i * n * n, b.data() + i * size, rows, columns);
  }
  store_from(result->type(), lane, b.data(), result->size(), result->mutable_raw());
}

}  // namespace

GSPMD_KERNEL(cholesky_kernel) {
  const bool lower = instr.attrs<CholeskyAttrs>().lower;
  Buffer result(operands[0].type(), operands[0].dims());
  if (result.size() == 0) return {std::move(result)};
  if (is_complex(result.type())) {
    cholesky_all<std::complex<double>>(operands[0], Lane::kC128, lower, &result);
  } else {
    cholesky_all<double>(operands[0], Lane::kF64, lower, &result);
  }
  return {std::move(result)};
}

GSPMD_KERNEL(triangular_solve_kernel) {
  const auto& attrs = instr.attrs<TriangularSolveAttrs>();
  Buffer result(operands[1].type(), operands[1].dims());
  if (is_complex(result.type())) {
    solve_all<std::complex<double>>(attrs, operands, Lane::kC128, &result);
  } else {
    solve_all<double>(attrs, operands, Lane::kF64, &result);
  }
  return {std::move(result)};
}

}  // namespace gspmd
