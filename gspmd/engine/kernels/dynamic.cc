// dynamic-slice, dynamic-update-slice, and operators on run-time sizes.

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {
namespace {

// Where a window of `sizes` starts in an array: clamped so that it lies within. One scalar for each
// dimension or, in old programs, one vector.
DimVector clamped_starts(absl::Span<const Buffer> starts, absl::Span<const int64_t> dims,
                         absl::Span<const int64_t> sizes) {
  const bool vector = starts.size() == 1 && starts[0].rank() == 1;
  DimVector out;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Buffer& from = vector ? starts[0] : starts[d];
    int64_t start = integer_element(from.type(), from.raw(), vector ? static_cast<int64_t>(d) : 0);
    out.push_back(std::clamp<int64_t>(start, 0, dims[d] - sizes[d]));
  }
  return out;
}

// The window of an array, and where it starts in it.
struct WindowCopy {
  DimVector window_strides, strides;
  int64_t start = 0;

  WindowCopy(absl::Span<const int64_t> dims, absl::Span<const int64_t> sizes,
             absl::Span<const int64_t> starts)
      : window_strides(strides_of(sizes)), strides(strides_of(dims)) {
    for (size_t d = 0; d < dims.size(); ++d) start += starts[d] * strides[d];
  }
};

void require_static(const Instr& instr, int64_t size, int64_t bound) {
  if (size == bound) return;
  refuse_to_run(instr,
                fmt::format("a dimension of {} elements gets the run-time size {}", bound, size),
                "sizes known at run time only can not be evaluated");
}

}  // namespace

GSPMD_KERNEL(dynamic_slice_kernel) {
  Buffer& x = operands[0];
  Dims sizes = instr.attrs<DynamicSliceAttrs>().sizes;
  const WindowCopy w(x.dims(), sizes, clamped_starts(operands.subspan(1), x.dims(), sizes));
  Buffer result(x.type(), sizes);
  CopyDims dims;
  for (int d = 0; d < x.rank(); ++d) dims.push_back({sizes[d], w.strides[d], w.window_strides[d]});
  const int width = storage_bytes(x.type());
  copy_strided(width, dims, x.raw() + w.start * width, result.mutable_raw());
  return {std::move(result)};
}

GSPMD_KERNEL(dynamic_update_slice_kernel) {
  const Buffer update = operands[1];
  Buffer result = std::move(operands[0]);
  const WindowCopy w(result.dims(), update.dims(),
                     clamped_starts(operands.subspan(2), result.dims(), update.dims()));
  CopyDims dims;
  for (int d = 0; d < update.rank(); ++d) {
    dims.push_back({update.dims()[d], w.window_strides[d], w.strides[d]});
  }
  const int width = storage_bytes(result.type());
  copy_strided(width, dims, update.raw(), result.mutable_raw() + w.start * width);
  return {std::move(result)};
}

GSPMD_KERNEL(get_dimension_size_kernel) {
  const auto d = static_cast<int>(instr.attrs<DimsAttrs>().dimensions[0]);
  Buffer result(ElementType::kS32, {});
  *result.mutable_data<int32_t>() = static_cast<int32_t>(operands[0].dims()[d]);
  return {std::move(result)};
}

GSPMD_KERNEL(set_dimension_size_kernel) {
  const auto d = static_cast<int>(instr.attrs<DimsAttrs>().dimensions[0]);
  require_static(instr, integer_element(operands[1].type(), operands[1].raw(), 0),
                 operands[0].dims()[d]);
  return {std::move(operands[0])};
}

GSPMD_KERNEL(dynamic_reshape_kernel) {
  for (int d = 0; d < instr.shape.rank(); ++d) {
    const Buffer& size = operands[d + 1];
    require_static(instr, integer_element(size.type(), size.raw(), 0), instr.shape.dim(d));
  }
  Buffer x = std::move(operands[0]);
  return {x.reshaped(instr.shape.dims())};
}

}  // namespace gspmd
