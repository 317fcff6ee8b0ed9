// fft, in f64: powers of two directly, other lengths by Bluestein's algorithm.

#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {
namespace {

using Complex = std::complex<double>;
using Line = std::vector<Complex>;

Complex product(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// exp(-2 pi i k / n).
Complex root(int64_t k, int64_t n) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// A transform of one length, without scaling.
class Transform {
 public:
  explicit Transform(int64_t n)
      : n_(n), padded_(std::has_single_bit(static_cast<uint64_t>(n)) ? n : 0) {
    if (padded_ == 0) prepare_chirp();
    const int64_t m = padded_;
    for (int64_t k = 0; k < m / 2; ++k) roots_.push_back(root(k, m));
    if (!chirp_.empty()) {
      spectrum_.assign(static_cast<size_t>(m), 0);
      for (int64_t k = 0; k < n_; ++k) {
        spectrum_[k] = std::conj(chirp_[k]);
        if (k > 0) spectrum_[m - k] = std::conj(chirp_[k]);
      }
      power_of_two(&spectrum_);
    }
  }

  void forward(Line* x) const {
    if (chirp_.empty()) return power_of_two(x);
    Line a(static_cast<size_t>(padded_), 0);
    for (int64_t k = 0; k < n_; ++k) a[k] = product((*x)[k], chirp_[k]);
    power_of_two(&a);
    for (int64_t k = 0; k < padded_; ++k) a[k] = std::conj(product(a[k], spectrum_[k]));
    power_of_two(&a);  // of the conjugate: the inverse transform, conjugated
    for (int64_t k = 0; k < n_; ++k) {
      (*x)[k] = product(std::conj(a[k]) / static_cast<double>(padded_), chirp_[k]);
    }
  }

  void inverse(Line* x) const {
    for (Complex& c : *x) c = std::conj(c);
    forward(x);
    for (Complex& c : *x) c = std::conj(c) / static_cast<double>(n_);
  }

 private:
  // exp(-pi i k^2 / n): a transform of length n is a convolution with it.
  void prepare_chirp() {
    padded_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n_ - 1)));
    for (int64_t k = 0; k < n_; ++k) {
      const auto square = static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n_));
      chirp_.push_back(root(square, 2 * n_));
    }
  }

  void power_of_two(Line* x) const {
    const auto n = static_cast<int64_t>(x->size());
    Line& a = *x;
    for (int64_t i = 1, j = 0; i < n; ++i) {
      int64_t bit = n >> 1;
      for (; (j & bit) != 0; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(a[i], a[j]);
    }
    for (int64_t half = 1; half < n; half *= 2) {
      const int64_t step = n / (2 * half);
      for (int64_t start = 0; start < n; start += 2 * half) {
        for (int64_t k = 0; k < half; ++k) {
          const Complex odd = product(roots_[k * step], a[start + half + k]);
          const Complex even = a[start + k];
          a[start + k] = even + odd;
          a[start + half + k] = even - odd;
        }
      }
    }
  }

  int64_t n_, padded_;
  Line roots_, chirp_, spectrum_;
};

// An array of c128 and its sizes.
struct Array {
  Line x;
  DimVector dims;
};

// Replaces every line along dimension d: f(line) may change its length from dims[d] to `length`.
template <typename F>
void map_lines(Array* a, int64_t d, int64_t length, F&& f) {
  DimVector dims = a->dims, outer = a->dims;
  dims[d] = length;
  outer[d] = 1;
  const DimVector from = strides_of(a->dims), to = strides_of(dims);
  int64_t size = 1;
  for (int64_t s : dims) size *= s;
  Line out(static_cast<size_t>(size));
  Line line;
  for_each_offset<2>(outer, {from, to}, [&](const int64_t(&at)[2]) {
    line.resize(static_cast<size_t>(a->dims[d]));
    for (int64_t i = 0; i < a->dims[d]; ++i) line[i] = a->x[at[0] + i * from[d]];
    f(&line);
    for (int64_t i = 0; i < length; ++i) out[at[1] + i * to[d]] = line[i];
  });
  a->x = std::move(out);
  a->dims = dims;
}

void transform_dim(Array* a, int64_t d, bool inverse) {
  const Transform t(a->dims[d]);
  map_lines(a, d, a->dims[d], [&](Line* line) { inverse ? t.inverse(line) : t.forward(line); });
}

// The first half of a real line's transform, the second being its mirror image.
void real_to_half(Array* a, int64_t d, int64_t n) {
  const Transform t(n);
  map_lines(a, d, n / 2 + 1, [&](Line* line) {
    t.forward(line);
    line->resize(static_cast<size_t>(n / 2 + 1));
  });
}

void half_to_real(Array* a, int64_t d, int64_t n) {
  const Transform t(n);
  map_lines(a, d, n, [&](Line* line) {
    line->resize(static_cast<size_t>(n));
    (*line)[0] = (*line)[0].real();
    if (n % 2 == 0) (*line)[n / 2] = (*line)[n / 2].real();
    for (int64_t k = n / 2 + 1; k < n; ++k) (*line)[k] = std::conj((*line)[n - k]);
    t.inverse(line);
  });
}

Array load(const Buffer& b) {
  Array a{Line(static_cast<size_t>(b.size())), b.dims()};
  if (is_complex(b.type())) {
    load_as(b.type(), b.raw(), b.size(), Lane::kC128, a.x.data());
  } else {
    std::vector<double> real(a.x.size());
    load_as(b.type(), b.raw(), b.size(), Lane::kF64, real.data());
    std::copy(real.begin(), real.end(), a.x.begin());
  }
  return a;
}

}  // namespace

GSPMD_KERNEL(fft_kernel) {
  const auto& attrs = instr.attrs<FftAttrs>();
  Buffer result = new_result(instr, context);
  if (result.size() == 0) return {std::move(result)};
  Array a = load(operands[0]);
  const int rank = result.rank(), count = static_cast<int>(attrs.length.size());
  const int64_t last = rank - 1;
  const bool inverse = attrs.type == FftType::kIfft || attrs.type == FftType::kIrfft;
  const int64_t n = count == 0 ? 1 : attrs.length[count - 1];
  if (attrs.type == FftType::kRfft) real_to_half(&a, last, n);
  const bool halves = attrs.type == FftType::kRfft || attrs.type == FftType::kIrfft;
  for (int64_t d = rank - count; d < rank - (halves ? 1 : 0); ++d) transform_dim(&a, d, inverse);
  if (attrs.type == FftType::kIrfft) {
    half_to_real(&a, last, n);
    std::vector<double> real;
    for (Complex c : a.x) real.push_back(c.real());
    store_from(result.type(), Lane::kF64, real.data(), result.size(), result.mutable_raw());
  } else {
    store_from(result.type(), Lane::kC128, a.x.data(), result.size(), result.mutable_raw());
  }
  return {std::move(result)};
}

}  // namespace gspmd
