#pragma once

#include <vector>

#include "gspmd/engine/kernel.h"

namespace gspmd {

// What gather and scatter share: index vectors, and where their positions lie in the other arrays.
struct IndexVectors {
  std::vector<int64_t> values;  // all of the indices array
  int64_t step = 0;             // elements between the entries of one vector

  // For each batch position, in row-major order: its sizes, and strides in the batched array
  // (gather's result, scatter's updates), in `values`, and in the operand (batching dimensions).
  DimVector sizes, batch_strides, index_strides, operand_strides;
};

// `batched_dims`: the sizes of the batched array; `window_dims`: its dimensions that are no batch.
IndexVectors index_vectors(const Buffer& indices, int64_t index_vector_dim,
                           absl::Span<const int64_t> batched_dims, const Dims& window_dims,
                           const Dims& operand_batching, const Dims& indices_batching,
                           absl::Span<const int64_t> operand_dims);

}  // namespace gspmd
