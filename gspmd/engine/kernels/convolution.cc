// convolution: windows of the input are laid out as the rows of a matrix, which is multiplied with
// the kernel's taps, chunk by chunk.

#include <algorithm>
#include <cstring>

#include "gspmd/engine/kernels/channels_last.h"
#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/matrices.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/engine/kernels/window_index.h"

namespace gspmd {
namespace {

DimVector order_of(int64_t first, const Dims& spatial, std::initializer_list<int64_t> rest) {
  DimVector order;
  if (first >= 0) order.push_back(first);
  order.insert(order.end(), spatial.begin(), spatial.end());
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

DimVector middle(const DimVector& dims, size_t drop_front, size_t drop_back) {
  return DimVector(dims.begin() + static_cast<int64_t>(drop_front),
                   dims.end() - static_cast<int64_t>(drop_back));
}

int64_t product(absl::Span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// A kernel [taps..., in, out] whose taps are reversed where the window says so.
Buffer with_reversals(const Buffer& kernel, Window window) {
  const auto is_reversed = [](const WindowDim& w) { return w.reversal; };
  if (std::none_of(window.begin(), window.end(), is_reversed)) return kernel;
  const DimVector strides = strides_of(kernel.dims());
  Buffer out(kernel.type(), kernel.dims());
  CopyDims dims;
  int64_t start = 0;
  for (int d = 0; d < kernel.rank(); ++d) {
    const bool reversed = d < static_cast<int>(window.size()) && window[d].reversal;
    if (reversed) start += (kernel.dims()[d] - 1) * strides[d];
    dims.push_back({kernel.dims()[d], reversed ? -strides[d] : strides[d], strides[d]});
  }
  const int width = storage_bytes(kernel.type());
  if (kernel.size() == 0) return out;
  copy_strided(width, dims, kernel.raw() + start * width, out.mutable_raw());
  return out;
}

class Convolution {
 public:
  Convolution(const Instr& instr, ChannelsLast arrays, ElementType result_type)
      : a_(instr.attrs<ConvAttrs>()),
        x_(std::move(arrays.input)),
        kernel_(std::move(arrays.kernel)),
        result_(result_type, arrays.result_dims),
        back_(std::move(arrays.back)) {
    in_spatial_ = middle(x_.dims(), 1, 1);
    taps_ = middle(kernel_.dims(), 0, 2);
    out_spatial_ = middle(result_.dims(), 1, 1);
  }

  Buffer run() {
    const int64_t groups = std::max(a_.feature_groups, a_.batch_groups);
    const int64_t in = kernel_.dims()[kernel_.rank() - 2];
    const int64_t out = kernel_.dims().back() / groups, batch = result_.dims()[0];
    for (int64_t g = 0; g < groups; ++g) {
      const Buffer matrix = group_kernel(g, out);
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t from = a_.batch_groups > 1 ? g * batch + b : b;
        const int64_t feature = a_.feature_groups > 1 ? g * in : 0;
        multiply_image(from, feature, in, matrix, b, g * out, out);
      }
    }
    return permuted(result_, back_);
  }

 private:
  // The taps of one group's output features, as a matrix [taps * in, out].
  Buffer group_kernel(int64_t group, int64_t out) const {
    const int64_t all = kernel_.dims().back(), rows = all == 0 ? 0 : kernel_.size() / all;
    Buffer matrix(kernel_.type(), {rows, out});
    const int width = storage_bytes(kernel_.type());
    copy_strided(width, {{rows, all, out}, {out, 1, 1}}, kernel_.raw() + group * out * width,
                 matrix.mutable_raw());
    return matrix;
  }

  // One image of the batch, a chunk of result positions at a time.
  void multiply_image(int64_t image, int64_t feature, int64_t in, const Buffer& matrix,
                      int64_t result_image, int64_t result_feature, int64_t out) {
    const int64_t positions = product(out_spatial_), depth = matrix.dims()[0];
    const int64_t step = std::clamp<int64_t>((1 << 18) / std::max<int64_t>(depth, 1), 16, 4096);
    const int width = storage_bytes(result_.type());
    const int64_t channels = result_.dims().back();
    for (int64_t begin = 0; begin < positions; begin += step) {
      const int64_t n = std::min(step, positions - begin);
      Matrices m;
      m.m = n;
      m.n = out;
      m.k = depth;
      m.lhs = windows(image, feature, in, begin, n);
      m.rhs = matrix;
      m.lhs_m = m.k;
      m.lhs_k = 1;
      m.rhs_k = m.n;
      m.rhs_n = 1;
      Buffer part(result_.type(), {n, out});
      multiply(m, &part);
      const int64_t to = (result_image * positions + begin) * channels + result_feature;
      copy_strided(width, {{n, out, channels}, {out, 1, 1}}, part.raw(),
                   result_.mutable_raw() + to * width);
    }
  }

  // Rows [n, taps * in]: what each of n result positions from `begin` on reads; zero where that is
  // padding.
  Buffer windows(int64_t image, int64_t feature, int64_t in, int64_t begin, int64_t n) const {
    const int64_t taps = product(taps_), channels = x_.dims().back();
    Buffer rows = Buffer::zeros(x_.type(), {n, taps * in});
    const DimVector strides = strides_of(x_.dims());
    const int width = storage_bytes(x_.type());
    const std::byte* source =
        x_.raw() + (image * (channels == 0 ? 0 : strides[0]) + feature) * width;
    std::byte* to = rows.mutable_raw();
    DimVector position(out_spatial_.size(), 0);
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = begin + i;
      for (size_t d = out_spatial_.size(); d-- > 0; rest /= out_spatial_[d]) {
        position[d] = rest % out_spatial_[d];
      }
      for_each_index(taps_, [&](const DimVector& tap) {
        const int64_t from = place(position, tap, strides);
        if (from >= 0) std::memcpy(to, source + from * width, static_cast<size_t>(in * width));
        to += in * width;
      });
    }
    return rows;
  }

  int64_t place(const DimVector& position, const DimVector& tap, const DimVector& strides) const {
    int64_t from = 0;
    for (size_t d = 0; d < position.size(); ++d) {
      const int64_t i = operand_index(a_.window[d], position[d], tap[d], in_spatial_[d]);
      if (i < 0) return -1;
      from += i * strides[d + 1];
    }
    return from;
  }

  const ConvAttrs& a_;
  Buffer x_, kernel_, result_;
  DimVector in_spatial_, taps_, out_spatial_, back_;
};

}  // namespace

ChannelsLast channels_last(const Instr& convolution, const Buffer& lhs, const Buffer& rhs) {
  const auto& a = convolution.attrs<ConvAttrs>();
  ChannelsLast c;
  c.input =
      permuted(lhs, order_of(a.dims.input_batch, a.dims.input_spatial, {a.dims.input_feature}));
  c.kernel = with_reversals(permuted(rhs, order_of(-1, a.dims.kernel_spatial,
                                                   {a.dims.kernel_input, a.dims.kernel_output})),
                            a.window);
  const DimVector order =
      order_of(a.dims.output_batch, a.dims.output_spatial, {a.dims.output_feature});
  c.back.assign(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    c.result_dims.push_back(convolution.shape.dim(static_cast<int>(order[i])));
    c.back[order[i]] = static_cast<int64_t>(i);
  }
  return c;
}

GSPMD_KERNEL(convolution_kernel) {
  if (context.backend != nullptr) {
    Buffer result = new_result(instr, context);
    if (context.backend->convolution(instr, operands[0], operands[1], &result)) {
      return {std::move(result)};
    }
  }
  ChannelsLast arrays = channels_last(instr, operands[0], operands[1]);
  return {Convolution(instr, std::move(arrays), result_type(instr, context)).run()};
}

}  // namespace gspmd
