// dot, ragged-dot, scaled-dot.

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/lanes.h"
#include "gspmd/engine/kernels/matrices.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/ops/dot_dims.h"

namespace gspmd {
namespace {

// Elements [start, start + size) along dimension d of both arrays, from one to the other.
void copy_range(const Buffer& from, int64_t from_start, Buffer* to, int64_t to_start, int64_t d,
                int64_t size) {
  const DimVector f = strides_of(from.dims()), t = strides_of(to->dims());
  CopyDims dims;
  for (int i = 0; i < from.rank(); ++i) {
    dims.push_back({i == d ? size : from.dims()[i], f[i], t[i]});
  }
  const int width = storage_bytes(from.type());
  copy_strided(width, dims, from.raw() + from_start * f[d] * width,
               to->mutable_raw() + to_start * t[d] * width);
}

Buffer range_of(const Buffer& x, int64_t d, int64_t start, int64_t size) {
  DimVector dims = x.dims();
  dims[d] = size;
  Buffer out(x.type(), dims);
  copy_range(x, start, &out, 0, d, size);
  return out;
}

// A ragged dot of buffers, whose group sizes may have leading dimensions: then one for each index
// of lhs's batch dimensions and, where rows are ragged, of its free dimensions before the ragged
// one.
class RaggedDot {
 public:
  RaggedDot(const Instr& instr, const KernelContext& context)
      : instr_(instr),
        a_(instr.attrs<DotAttrs>()),
        type_(result_type(instr, context)),
        ragged_(a_.lhs_ragged[0]),
        contracting_(a_.lhs_contract.contains(ragged_)) {}

  Buffer run(const Buffer& lhs, const Buffer& rhs, const Buffer& sizes) const {
    if (a_.lhs_batch.contains(ragged_)) return product(lhs, rhs);
    if (sizes.rank() == 1)
      return contracting_ ? sum_groups(lhs, rhs, sizes) : rows(lhs, rhs, sizes);
    return each(lhs, rhs, sizes);
  }

 private:
  // What the leading dimensions of the group sizes are on lhs.
  DimVector leading_dims(int lhs_rank) const {
    DimVector dims(a_.lhs_batch.begin(), a_.lhs_batch.end());
    if (contracting_) return dims;
    for (int64_t d : free_dims(lhs_rank, {a_.lhs_batch, a_.lhs_contract})) {
      if (d < ragged_) dims.push_back(d);
    }
    return dims;
  }

  // The result dimension of a batch or free dimension of lhs.
  int64_t result_dim(int lhs_rank, int64_t d) const {
    const int64_t groups = contracting_ ? 1 : 0;
    if (a_.lhs_batch.contains(d)) return groups + a_.lhs_batch.index_of(d);
    const DimVector free = free_dims(lhs_rank, {a_.lhs_batch, a_.lhs_contract});
    const auto at = std::find(free.begin(), free.end(), d) - free.begin();
    return groups + static_cast<int64_t>(a_.lhs_batch.size()) + at;
  }

  DimVector result_dims(const Buffer& lhs, const Buffer& rhs) const {
    DimVector dims;
    for (int64_t d : a_.lhs_batch) dims.push_back(lhs.dims()[d]);
    for (int64_t d : free_dims(lhs.rank(), {a_.lhs_batch, a_.lhs_contract})) {
      dims.push_back(lhs.dims()[d]);
    }
    for (int64_t d : free_dims(rhs.rank(), {a_.rhs_batch, a_.rhs_contract, a_.rhs_group})) {
      dims.push_back(rhs.dims()[d]);
    }
    return dims;
  }

  // A plain dot; rhs's group dimension, if any, has one element.
  Buffer product(const Buffer& lhs, const Buffer& rhs) const {
    Buffer out(type_, result_dims(lhs, rhs));
    multiply(matrices_of(a_, lhs, rhs), &out);
    return out;
  }

  Buffer each(const Buffer& lhs, const Buffer& rhs, const Buffer& sizes) const {
    const DimVector leading = leading_dims(lhs.rank());
    if (static_cast<int>(leading.size()) != sizes.rank() - 1) {
      refuse_to_run(instr_, fmt::format("group sizes of rank {} with {} batch and outer dimensions",
                                        sizes.rank(), leading.size()));
    }
    return each_of(lhs, rhs, sizes, 0);
  }

  // Fixes the indices of the leading dimensions from `depth` on, one after the other.
  Buffer each_of(const Buffer& lhs, const Buffer& rhs, const Buffer& sizes, size_t depth) const {
    const DimVector leading = leading_dims(lhs.rank());
    if (depth == leading.size()) return run(lhs, rhs, sizes.reshaped({sizes.size()}));
    const int64_t d = leading[depth], to_dim = result_dim(lhs.rank(), d);
    const int64_t batch = a_.lhs_batch.index_of(d);
    DimVector dims = result_dims(lhs, rhs);
    if (contracting_) dims.insert(dims.begin(), sizes.dims().back());
    Buffer out = Buffer::zeros(type_, dims);
    for (int64_t i = 0; i < lhs.dims()[d]; ++i) {
      const Buffer r = batch < 0 ? rhs : range_of(rhs, a_.rhs_batch[batch], i, 1);
      Buffer part = each_of(range_of(lhs, d, i, 1), r,
                            range_of(sizes, static_cast<int64_t>(depth), i, 1), depth + 1);
      copy_range(part, 0, &out, i, to_dim, 1);
    }
    return out;
  }

  // Group g takes the next sizes[g] of `length` elements: calls f(g, start, size).
  template <typename F>
  void for_each_group(const Buffer& sizes, int64_t length, F&& f) const {
    int64_t start = 0;
    for (int64_t g = 0; g < sizes.size(); ++g) {
      int64_t size = integer_element(sizes.type(), sizes.raw(), g);
      size = std::clamp<int64_t>(size, 0, length - start);
      f(g, start, size);
      start += size;
    }
  }

  Buffer rows(const Buffer& lhs, const Buffer& rhs, const Buffer& sizes) const {
    Buffer out = Buffer::zeros(type_, result_dims(lhs, rhs));
    const int64_t to_dim = result_dim(lhs.rank(), ragged_);
    for_each_group(sizes, lhs.dims()[ragged_], [&](int64_t g, int64_t start, int64_t size) {
      if (size == 0) return;
      Buffer part =
          product(range_of(lhs, ragged_, start, size), range_of(rhs, a_.rhs_group[0], g, 1));
      copy_range(part, 0, &out, start, to_dim, size);
    });
    return out;
  }

  Buffer sum_groups(const Buffer& lhs, const Buffer& rhs, const Buffer& sizes) const {
    DimVector dims = result_dims(lhs, rhs);
    const int64_t rhs_dim = a_.rhs_contract[a_.lhs_contract.index_of(ragged_)];
    DimVector one = dims;
    one.insert(one.begin(), 1);
    dims.insert(dims.begin(), sizes.size());
    Buffer out = Buffer::zeros(type_, dims);
    for_each_group(sizes, lhs.dims()[ragged_], [&](int64_t g, int64_t start, int64_t size) {
      if (size == 0) return;
      Buffer part =
          product(range_of(lhs, ragged_, start, size), range_of(rhs, rhs_dim, start, size));
      copy_range(part.reshaped(one), 0, &out, g, 0, 1);
    });
    return out;
  }

  const Instr& instr_;
  const DotAttrs& a_;
  ElementType type_;
  int64_t ragged_;
  bool contracting_;
};

// x times its scales, each for a block of elements, in a type that holds the products. A scalar is
// no scaling.
Buffer scaled(const Buffer& x, const Buffer& scale, ElementType type) {
  Buffer out = converted(x, type);
  if (scale.rank() == 0) return out;
  const Buffer scales = converted(scale, type);
  const DimVector strides = strides_of(scales.dims()), to = strides_of(x.dims());
  CopyDims dims;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t block = x.dims()[d] / scales.dims()[d];
    dims.push_back({scales.dims()[d], strides[d], block * to[d]});
    dims.push_back({block, 0, to[d]});
  }
  Buffer all(type, x.dims());
  copy_strided(storage_bytes(type), dims, scales.raw(), all.mutable_raw());
  LaneArgs args;
  args.out = out.mutable_raw();  // copied here if it is still x's
  args.in[0] = out.raw();
  args.in[1] = all.raw();
  args.n = out.size();
  lane_fn(Opcode::kMultiply, lane_of(type))(args);
  return out;
}

std::vector<Buffer> dot(const Instr& instr, const Buffer& lhs, const Buffer& rhs,
                        const KernelContext& context) {
  Buffer result = new_result(instr, context);
  const bool done = context.backend != nullptr && context.backend->dot(instr, lhs, rhs, &result);
  if (!done) multiply(matrices_of(instr.attrs<DotAttrs>(), lhs, rhs), &result);
  return {std::move(result)};
}

}  // namespace

GSPMD_KERNEL(dot_kernel) { return dot(instr, operands[0], operands[1], context); }

GSPMD_KERNEL(ragged_dot_kernel) {
  return {RaggedDot(instr, context).run(operands[0], operands[1], operands[2])};
}

GSPMD_KERNEL(scaled_dot_kernel) {
  const ElementType type = context.wide ? ElementType::kF64 : ElementType::kF32;
  return dot(instr, scaled(operands[0], operands[1], type), scaled(operands[2], operands[3], type),
             context);
}

}  // namespace gspmd
