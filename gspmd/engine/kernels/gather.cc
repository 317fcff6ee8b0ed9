// gather.

#include <algorithm>

#include "gspmd/engine/kernels/index_vectors.h"
#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {
namespace {

std::vector<int64_t> integers(const Buffer& b) {
  std::vector<int64_t> out(static_cast<size_t>(b.size()));
  if (b.type() != ElementType::kU64) {
    load_as(b.type(), b.raw(), b.size(), Lane::kS64, out.data());
    return out;
  }
  for (int64_t i = 0; i < b.size(); ++i) out[i] = integer_element(b.type(), b.raw(), i);
  return out;
}

// How a slice lies in the operand and in the result.
CopyDims slice_copy(const GatherAttrs& a, const DimVector& operand_strides,
                    const DimVector& result_strides) {
  CopyDims dims;
  size_t offset = 0;
  for (size_t d = 0; d < operand_strides.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (a.collapsed_slice_dims.contains(dim) || a.operand_batching_dims.contains(dim)) continue;
    dims.push_back({a.slice_sizes[d], operand_strides[d], result_strides[a.offset_dims[offset++]]});
  }
  return dims;
}

}  // namespace

IndexVectors index_vectors(const Buffer& indices, int64_t index_vector_dim,
                           absl::Span<const int64_t> batched_dims, const Dims& window_dims,
                           const Dims& operand_batching, const Dims& indices_batching,
                           absl::Span<const int64_t> operand_dims) {
  IndexVectors v;
  v.values = integers(indices);
  const DimVector strides = strides_of(indices.dims()), batched = strides_of(batched_dims);
  const DimVector operand = strides_of(operand_dims);
  if (index_vector_dim < indices.rank()) v.step = strides[index_vector_dim];
  int64_t d = 0;  // of the indices
  for (size_t r = 0; r < batched_dims.size(); ++r) {
    if (window_dims.contains(static_cast<int64_t>(r))) continue;
    if (d == index_vector_dim) ++d;
    v.sizes.push_back(batched_dims[r]);
    v.batch_strides.push_back(batched[r]);
    v.index_strides.push_back(strides[d]);
    const int64_t at = indices_batching.index_of(d);
    v.operand_strides.push_back(at < 0 ? 0 : operand[operand_batching[at]]);
    ++d;
  }
  return v;
}

GSPMD_KERNEL(gather_kernel) {
  const auto& a = instr.attrs<GatherAttrs>();
  Buffer& x = operands[0];
  Buffer result(x.type(), instr.shape.dims());
  const IndexVectors v =
      index_vectors(operands[1], a.index_vector_dim, result.dims(), a.offset_dims,
                    a.operand_batching_dims, a.start_indices_batching_dims, x.dims());
  const DimVector strides = strides_of(x.dims());
  const int width = storage_bytes(x.type());
  const CopyPlan copy(width, slice_copy(a, strides, strides_of(result.dims())));
  std::byte* out = result.mutable_raw();
  if (result.size() == 0) return {std::move(result)};
  for_each_offset<3>(v.sizes, {v.batch_strides, v.index_strides, v.operand_strides},
                     [&](const int64_t(&at)[3]) {
                       int64_t from = at[2];
                       for (size_t j = 0; j < a.start_index_map.size(); ++j) {
                         const int64_t d = a.start_index_map[j];
                         const int64_t start = v.values[at[1] + static_cast<int64_t>(j) * v.step];
                         const int64_t last = x.dims()[d] - a.slice_sizes[d];
                         from += std::clamp<int64_t>(start, 0, last) * strides[d];
                       }
                       copy(x.raw() + from * width, out + at[0] * width);
                     });
  return {std::move(result)};
}

}  // namespace gspmd
