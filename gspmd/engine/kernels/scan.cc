// scan: a computation applied along one dimension, from (slices, carries) to (slices, carries).

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/strided.h"

namespace gspmd {
namespace {

// One position of dimension `d`: from an array to a slice without it, or back.
CopyDims slice_dims(absl::Span<const int64_t> dims, int64_t d, bool to_slice) {
  const DimVector strides = strides_of(dims);
  DimVector slice;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int64_t>(i) != d) slice.push_back(dims[i]);
  }
  const DimVector slice_strides = strides_of(slice);
  CopyDims out;
  size_t next = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int64_t>(i) == d) continue;
    const int64_t own = strides[i], other = slice_strides[next++];
    out.push_back(to_slice ? CopyDim{dims[i], own, other} : CopyDim{dims[i], other, own});
  }
  return out;
}

Buffer slice_at(const Buffer& x, int64_t d, int64_t position) {
  DimVector dims = x.dims();
  dims.erase(dims.begin() + d);
  Buffer slice(x.type(), dims);
  const int width = storage_bytes(x.type());
  copy_strided(width, slice_dims(x.dims(), d, /*to_slice=*/true),
               x.raw() + position * strides_of(x.dims())[d] * width, slice.mutable_raw());
  return slice;
}

void set_slice(Buffer* x, int64_t d, int64_t position, const Buffer& slice) {
  const int width = storage_bytes(x->type());
  copy_strided(width, slice_dims(x->dims(), d, /*to_slice=*/false), slice.raw(),
               x->mutable_raw() + position * strides_of(x->dims())[d] * width);
}

}  // namespace

GSPMD_KERNEL(scan_kernel) {
  const auto& a = instr.attrs<ScanAttrs>();
  const int64_t d = a.dimensions[0], length = operands[0].dims()[d];
  const auto carries = static_cast<size_t>(a.num_carries);
  const size_t inputs = operands.size() - carries;
  std::vector<Buffer> results;
  const int leaves = instr.shape.num_leaves();
  const size_t outputs = static_cast<size_t>(leaves) - carries;
  for (size_t k = 0; k < outputs; ++k) {
    results.push_back(new_result(instr, context, static_cast<int>(k)));
  }
  std::vector<Buffer> state(operands.begin() + static_cast<int64_t>(inputs), operands.end());
  for (int64_t i = 0; i < length; ++i) {
    const int64_t at = a.is_reverse ? length - 1 - i : i;
    std::vector<Buffer> args;
    for (size_t k = 0; k < inputs; ++k) args.push_back(slice_at(operands[k], d, at));
    args.insert(args.end(), state.begin(), state.end());
    std::vector<Buffer> next = context.call(*instr.called[0], args);
    for (size_t k = 0; k < outputs; ++k) set_slice(&results[k], d, at, next[k]);
    state.assign(next.begin() + static_cast<int64_t>(outputs), next.end());
  }
  results.insert(results.end(), state.begin(), state.end());
  return results;
}

}  // namespace gspmd
