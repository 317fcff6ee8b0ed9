// broadcast, transpose, slice, reverse, concatenate, pad, reshape, bitcast, iota.

#include <complex>
#include <numeric>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {
namespace {

int width_of(const Buffer& b) { return storage_bytes(b.type()); }

// The part of `x` where interior padding of `step - 1` after each element and `low` before the
// first leaves an element within [0, size): elements [begin, end).
struct Kept {
  int64_t begin = 0, end = 0;
};
Kept kept_of(int64_t count, int64_t low, int64_t step, int64_t size) {
  Kept k;
  k.begin = low >= 0 ? 0 : ceil_div(-low, step);
  k.end = std::min(count, size <= low ? 0 : ceil_div(size - low, step));
  return k;
}

}  // namespace

GSPMD_KERNEL(broadcast_kernel) {
  Buffer& x = operands[0];
  Dims to_dims = instr.attrs<DimsAttrs>().dimensions;
  Buffer result(x.type(), instr.shape.dims());
  DimVector x_strides = strides_of(x.dims()), strides = strides_of(result.dims());
  CopyDims dims;
  for (int d = 0; d < result.rank(); ++d) {
    int64_t from = to_dims.index_of(d);
    dims.push_back({result.dims()[d], from < 0 ? 0 : x_strides[from], strides[d]});
  }
  copy_strided(width_of(x), dims, x.raw(), result.mutable_raw());
  return {std::move(result)};
}

GSPMD_KERNEL(transpose_kernel) {
  Buffer& x = operands[0];
  Dims permutation = instr.attrs<DimsAttrs>().dimensions;
  DimVector x_strides = strides_of(x.dims()), sizes;
  for (int64_t d : permutation) sizes.push_back(x.dims()[d]);
  Buffer result(x.type(), sizes);
  DimVector strides = strides_of(sizes);
  CopyDims dims;
  for (size_t d = 0; d < sizes.size(); ++d) {
    dims.push_back({sizes[d], x_strides[permutation[d]], strides[d]});
  }
  copy_strided(width_of(x), dims, x.raw(), result.mutable_raw());
  return {std::move(result)};
}

GSPMD_KERNEL(slice_kernel) {
  Buffer& x = operands[0];
  const auto& a = instr.attrs<SliceAttrs>();
  DimVector x_strides = strides_of(x.dims());
  Buffer result(x.type(), instr.shape.dims());
  DimVector strides = strides_of(result.dims());
  CopyDims dims;
  int64_t start = 0;
  for (int d = 0; d < result.rank(); ++d) {
    int64_t step = a.strides.empty() ? 1 : a.strides[d];
    start += a.starts[d] * x_strides[d];
    dims.push_back({result.dims()[d], step * x_strides[d], strides[d]});
  }
  copy_strided(width_of(x), dims, x.raw() + start * width_of(x), result.mutable_raw());
  return {std::move(result)};
}

GSPMD_KERNEL(reverse_kernel) {
  Buffer& x = operands[0];
  Dims reversed = instr.attrs<DimsAttrs>().dimensions;
  DimVector strides = strides_of(x.dims());
  Buffer result(x.type(), x.dims());
  CopyDims dims;
  int64_t start = 0;
  for (int d = 0; d < x.rank(); ++d) {
    const bool backwards = reversed.contains(d);
    if (backwards) start += (x.dims()[d] - 1) * strides[d];
    dims.push_back({x.dims()[d], backwards ? -strides[d] : strides[d], strides[d]});
  }
  if (x.size() > 0) {
    copy_strided(width_of(x), dims, x.raw() + start * width_of(x), result.mutable_raw());
  }
  return {std::move(result)};
}

GSPMD_KERNEL(concatenate_kernel) {
  const auto dim = static_cast<int>(instr.attrs<DimsAttrs>().dimensions[0]);
  Buffer result(operands[0].type(), instr.shape.dims());
  DimVector strides = strides_of(result.dims());
  const int width = width_of(result);
  std::byte* to = result.mutable_raw();
  for (const Buffer& x : operands) {
    DimVector x_strides = strides_of(x.dims());
    CopyDims dims;
    for (int d = 0; d < x.rank(); ++d) dims.push_back({x.dims()[d], x_strides[d], strides[d]});
    copy_strided(width, dims, x.raw(), to);
    to += x.dims()[dim] * strides[dim] * width;
  }
  return {std::move(result)};
}

Buffer padded(const Buffer& x, const Buffer& value, const Padding& p) {
  DimVector x_strides = strides_of(x.dims()), sizes;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t n = x.dims()[d];
    sizes.push_back(p.low[d] + n + p.high[d] + std::max<int64_t>(n - 1, 0) * p.interior[d]);
    GSPMD_CHECK(sizes[d] >= 0, "padding to a negative size");
  }
  Buffer result(x.type(), sizes);
  DimVector strides = strides_of(sizes);
  const int width = width_of(x);
  fill(width, value.raw(), result.size(), result.mutable_raw());
  CopyDims dims;
  int64_t from = 0, to = 0;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t step = p.interior[d] + 1;
    const Kept kept = kept_of(x.dims()[d], p.low[d], step, sizes[d]);
    if (kept.begin >= kept.end) return result;
    from += kept.begin * x_strides[d];
    to += (p.low[d] + kept.begin * step) * strides[d];
    dims.push_back({kept.end - kept.begin, x_strides[d], step * strides[d]});
  }
  copy_strided(width, dims, x.raw() + from * width, result.mutable_raw() + to * width);
  return result;
}

GSPMD_KERNEL(pad_kernel) {
  const auto& a = instr.attrs<PadAttrs>();
  return {padded(operands[0], operands[1], {a.low.span(), a.high.span(), a.interior.span()})};
}

GSPMD_KERNEL(reshape_kernel) {
  Buffer x = std::move(operands[0]);
  return {x.reshaped(instr.shape.dims())};
}

GSPMD_KERNEL(iota_kernel) {
  Buffer result = new_result(instr, context);
  const auto dim = static_cast<int>(instr.attrs<IotaAttrs>().dimension);
  const int64_t n = result.dims()[dim], inner = strides_of(result.dims())[dim];
  if (result.size() == 0) return {std::move(result)};
  std::vector<int64_t> counts(static_cast<size_t>(n));
  std::iota(counts.begin(), counts.end(), 0);
  Buffer line(result.type(), {n});
  convert_elements(ElementType::kS64, reinterpret_cast<const std::byte*>(counts.data()), n,
                   line.type(), line.mutable_raw());
  copy_strided(width_of(result),
               {{result.size() / (n * inner), 0, n * inner}, {n, 1, inner}, {inner, 0, 1}},
               line.raw(), result.mutable_raw());
  return {std::move(result)};
}

}  // namespace gspmd
