#pragma once

#include <vector>

#include "gspmd/engine/kernel.h"

namespace gspmd {

// The kernels by family; see Kernel. table.cc says which operator uses which.
#define GSPMD_KERNEL(name)                                               \
  std::vector<Buffer> name([[maybe_unused]] const Instr& instr,          \
                           [[maybe_unused]] absl::Span<Buffer> operands, \
                           [[maybe_unused]] const KernelContext& context)

GSPMD_KERNEL(elementwise_kernel);
GSPMD_KERNEL(convert_kernel);
GSPMD_KERNEL(reduce_precision_kernel);
GSPMD_KERNEL(stochastic_convert_kernel);
GSPMD_KERNEL(copy_kernel);
GSPMD_KERNEL(map_kernel);

GSPMD_KERNEL(iota_kernel);
GSPMD_KERNEL(rng_bit_generator_kernel);

GSPMD_KERNEL(bitcast_kernel);
GSPMD_KERNEL(bitcast_convert_kernel);
GSPMD_KERNEL(broadcast_kernel);
GSPMD_KERNEL(concatenate_kernel);
GSPMD_KERNEL(pad_kernel);
GSPMD_KERNEL(reshape_kernel);
GSPMD_KERNEL(reverse_kernel);
GSPMD_KERNEL(slice_kernel);
GSPMD_KERNEL(transpose_kernel);

GSPMD_KERNEL(dynamic_slice_kernel);
GSPMD_KERNEL(dynamic_update_slice_kernel);
GSPMD_KERNEL(dynamic_reshape_kernel);
GSPMD_KERNEL(get_dimension_size_kernel);
GSPMD_KERNEL(set_dimension_size_kernel);
GSPMD_KERNEL(gather_kernel);
GSPMD_KERNEL(scatter_kernel);

GSPMD_KERNEL(reduce_kernel);
GSPMD_KERNEL(reduce_window_kernel);
GSPMD_KERNEL(select_and_scatter_kernel);
GSPMD_KERNEL(scan_kernel);
GSPMD_KERNEL(sort_kernel);
GSPMD_KERNEL(topk_kernel);
GSPMD_KERNEL(batch_norm_training_kernel);
GSPMD_KERNEL(batch_norm_inference_kernel);
GSPMD_KERNEL(batch_norm_grad_kernel);

GSPMD_KERNEL(dot_kernel);
GSPMD_KERNEL(ragged_dot_kernel);
GSPMD_KERNEL(scaled_dot_kernel);
GSPMD_KERNEL(convolution_kernel);
GSPMD_KERNEL(fft_kernel);
GSPMD_KERNEL(cholesky_kernel);
GSPMD_KERNEL(triangular_solve_kernel);

// What several of them use.

// A shape's array type and sizes of result leaf `leaf` (a wide run widens the type).
Buffer new_result(const Instr& instr, const KernelContext& context, int leaf = 0);
Shape leaf_shape(Shape shape, int leaf);

// The same values in another type, as `convert` has it; the same buffer where it is of that type.
Buffer converted(const Buffer& from, ElementType to);

// Edges of `value` (a scalar; negative ones cut away) and holes of it between elements, as `pad`.
struct Padding {
  absl::Span<const int64_t> low, high, interior;
};
Buffer padded(const Buffer& x, const Buffer& value, const Padding& padding);

// An element type of a wide run: f64 for every float, c128 for every complex type.
ElementType widened(ElementType type);

// Row-major strides, in elements.
DimVector strides_of(absl::Span<const int64_t> dims);

// "name = f32[8] op(...): MESSAGE" as an Error.
[[noreturn]] void refuse_to_run(const Instr& instr, const std::string& message,
                                std::string hint = "");

}  // namespace gspmd
