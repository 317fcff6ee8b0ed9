// batch-norm-training, -inference, -grad: statistics over all dimensions but the feature's, in f64.

#include <cmath>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {
namespace {

std::vector<double> doubles(const Buffer& b) {
  std::vector<double> out(static_cast<size_t>(b.size()));
  load_as(b.type(), b.raw(), b.size(), Lane::kF64, out.data());
  return out;
}

Buffer stored(const std::vector<double>& x, ElementType type, absl::Span<const int64_t> dims) {
  Buffer b(type, dims);
  store_from(type, Lane::kF64, x.data(), b.size(), b.mutable_raw());
  return b;
}

// Which feature each element of an array belongs to.
struct Features {
  int64_t count, inner, size;

  Features(const Buffer& x, int64_t dim)
      : count(x.dims()[dim]), inner(strides_of(x.dims())[dim]), size(x.size()) {}
  int64_t of(int64_t i) const { return i / inner % count; }
  double elements() const { return static_cast<double>(size) / static_cast<double>(count); }

  // Means over each feature of f(i).
  template <typename F>
  std::vector<double> means(F&& f) const {
    std::vector<double> sums = this->sums(f);
    for (double& s : sums) s /= elements();
    return sums;
  }
  template <typename F>
  std::vector<double> sums(F&& f) const {
    std::vector<double> out(static_cast<size_t>(count), 0);
    for (int64_t i = 0; i < size; ++i) out[of(i)] += f(i);
    return out;
  }
};

}  // namespace

GSPMD_KERNEL(batch_norm_training_kernel) {
  const auto& a = instr.attrs<BatchNormAttrs>();
  const Features f(operands[0], a.feature_index);
  const std::vector<double> x = doubles(operands[0]), scale = doubles(operands[1]),
                            offset = doubles(operands[2]);
  const std::vector<double> mean = f.means([&](int64_t i) { return x[i]; });
  const std::vector<double> variance = f.means([&](int64_t i) {
    const double d = x[i] - mean[f.of(i)];
    return d * d;
  });
  std::vector<double> y(x.size());
  for (int64_t i = 0; i < f.size; ++i) {
    const int64_t c = f.of(i);
    y[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + a.epsilon) * scale[c] + offset[c];
  }
  return {stored(y, result_type(instr, context, 0), operands[0].dims()),
          stored(mean, result_type(instr, context, 1), {f.count}),
          stored(variance, result_type(instr, context, 2), {f.count})};
}

GSPMD_KERNEL(batch_norm_inference_kernel) {
  const auto& a = instr.attrs<BatchNormAttrs>();
  const Features f(operands[0], a.feature_index);
  const std::vector<double> x = doubles(operands[0]), scale = doubles(operands[1]),
                            offset = doubles(operands[2]), mean = doubles(operands[3]),
                            variance = doubles(operands[4]);
  std::vector<double> y(x.size());
  for (int64_t i = 0; i < f.size; ++i) {
    const int64_t c = f.of(i);
    y[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + a.epsilon) * scale[c] + offset[c];
  }
  return {stored(y, result_type(instr, context), operands[0].dims())};
}

GSPMD_KERNEL(batch_norm_grad_kernel) {
  const auto& a = instr.attrs<BatchNormAttrs>();
  const Features f(operands[0], a.feature_index);
  const std::vector<double> x = doubles(operands[0]), scale = doubles(operands[1]),
                            mean = doubles(operands[2]), variance = doubles(operands[3]),
                            g = doubles(operands[4]);
  const auto centered = [&](int64_t i) { return x[i] - mean[f.of(i)]; };
  const std::vector<double> sum = f.sums([&](int64_t i) { return g[i]; });
  const std::vector<double> product = f.sums([&](int64_t i) { return g[i] * centered(i); });
  std::vector<double> dx(x.size()), dscale(sum.size());
  const double n = f.elements();
  for (int64_t c = 0; c < f.count; ++c) dscale[c] = product[c] / std::sqrt(variance[c] + a.epsilon);
  for (int64_t i = 0; i < f.size; ++i) {
    const int64_t c = f.of(i);
    const double v = variance[c] + a.epsilon;
    dx[i] = scale[c] / std::sqrt(v) * (g[i] - sum[c] / n - centered(i) * product[c] / (n * v));
  }
  return {stored(dx, result_type(instr, context, 0), operands[0].dims()),
          stored(dscale, result_type(instr, context, 1), {f.count}),
          stored(sum, result_type(instr, context, 2), {f.count})};
}

}  // namespace gspmd
