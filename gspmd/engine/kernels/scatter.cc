// scatter.

#include "gspmd/engine/kernels/index_vectors.h"
#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/reducer.h"
#include "gspmd/engine/kernels/strided.h"

namespace gspmd {
namespace {

// Where the updates go: calls f(start in the operand, start in the updates) for each window that
// fits, in row-major order of the indices.
class Windows {
 public:
  Windows(const ScatterAttrs& a, const Buffer& operand, const Buffer& indices,
          const Buffer& updates)
      : a_(a),
        dims_(operand.dims()),
        strides_(strides_of(operand.dims())),
        vectors_(index_vectors(indices, a.index_vector_dim, updates.dims(), a.update_window_dims,
                               a.input_batching_dims, a.scatter_indices_batching_dims,
                               operand.dims())) {
    const DimVector update_strides = strides_of(updates.dims());
    size_t next = 0;
    for (int d = 0; d < operand.rank(); ++d) {
      const bool absent = a.inserted_window_dims.contains(d) || a.input_batching_dims.contains(d);
      if (absent) {
        sizes_.push_back(1);
        continue;
      }
      const int64_t from = a.update_window_dims[next++];
      sizes_.push_back(updates.dims()[from]);
      copy_.push_back({updates.dims()[from], update_strides[from], strides_[d]});
    }
  }

  // One window: from the updates to the operand.
  const CopyDims& copy() const { return copy_; }

  template <typename F>
  void for_each(F&& f) const {
    for (int64_t s : sizes_) {
      if (s == 0) return;
    }
    const IndexVectors& v = vectors_;
    for_each_offset<3>(v.sizes, {v.batch_strides, v.index_strides, v.operand_strides},
                       [&](const int64_t(&at)[3]) {
                         int64_t to = at[2];
                         if (place(at[1], &to)) f(to, at[0]);
                       });
  }

 private:
  // Adds the start of the window of an index vector; false if it does not fit.
  bool place(int64_t vector, int64_t* to) const {
    for (size_t j = 0; j < a_.scatter_dims_to_operand_dims.size(); ++j) {
      const int64_t d = a_.scatter_dims_to_operand_dims[j];
      const int64_t start = vectors_.values[vector + static_cast<int64_t>(j) * vectors_.step];
      if (start < 0 || start > dims_[d] - sizes_[d]) return false;
      *to += start * strides_[d];
    }
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (sizes_[d] > dims_[d]) return false;
    }
    return true;
  }

  const ScatterAttrs& a_;
  DimVector dims_, strides_, sizes_;
  CopyDims copy_;
  IndexVectors vectors_;
};

// Whether the computation returns the updates as they are: then windows are copied.
bool assigns(const Computation& computation) {
  const Instr* root = computation.root();
  return computation.params().size() == 2 && root == computation.params()[1];
}

// Lanes that are folded into: an operand's own memory where it is stored as computed in.
class Target {
 public:
  Target(Buffer operand, Lane lane) : buffer_(std::move(operand)), lane_(lane) {
    if (direct()) return;
    lanes_.resize(static_cast<size_t>(buffer_.size() * bytes_of(lane)));
    load_as(buffer_.type(), buffer_.raw(), buffer_.size(), lane, lanes_.data());
  }

  std::byte* mutable_data() { return direct() ? buffer_.mutable_raw() : lanes_.data(); }
  const std::byte* data() const { return direct() ? buffer_.raw() : lanes_.data(); }
  Buffer result() && {
    if (direct()) return std::move(buffer_);
    Buffer out(buffer_.type(), buffer_.dims());
    store_from(out.type(), lane_, lanes_.data(), out.size(), out.mutable_raw());
    return out;
  }

 private:
  bool direct() const { return is_native(buffer_.type()) && lane_of(buffer_.type()) == lane_; }

  Buffer buffer_;
  Lane lane_;
  std::vector<std::byte> lanes_;
};

// Folds one window, row by row where rows are contiguous on both sides.
void fold_window(Reducer* reducer, const CopyDims& dims, absl::Span<std::byte* const> targets,
                 int64_t to, absl::Span<const std::byte* const> updates, int64_t from) {
  const bool has_row = !dims.empty() && dims.back().from == 1 && dims.back().to == 1;
  const int64_t row = has_row ? dims.back().size : 1;
  DimVector sizes, strides[2];
  for (size_t i = 0; i < dims.size() - (has_row ? 1 : 0); ++i) {
    sizes.push_back(dims[i].size);
    strides[0].push_back(dims[i].to);
    strides[1].push_back(dims[i].from);
  }
  absl::InlinedVector<void*, 4> acc(targets.size());
  absl::InlinedVector<const void*, 4> x(targets.size());
  for_each_offset<2>(sizes, strides, [&](const int64_t(&at)[2]) {
    for (int64_t begin = 0; begin < row; begin += kChunk) {
      for (size_t k = 0; k < targets.size(); ++k) {
        const int width = bytes_of(reducer->lane(static_cast<int>(k)));
        acc[k] = targets[k] + (to + at[0] + begin) * width;
        x[k] = updates[k] + (from + at[1] + begin) * width;
      }
      reducer->fold(absl::MakeSpan(acc), x, std::min(kChunk, row - begin));
    }
  });
}

}  // namespace

GSPMD_KERNEL(scatter_kernel) {
  const auto n = static_cast<int>(operands.size()) / 2;
  const Windows windows(instr.attrs<ScatterAttrs>(), operands[0], operands[n], operands[n + 1]);
  if (assigns(*instr.called[0])) {
    const Buffer updates = operands[2];
    Buffer result = std::move(operands[0]);
    const int width = storage_bytes(result.type());
    const CopyPlan copy(width, windows.copy());
    std::byte* out = result.mutable_raw();
    windows.for_each(
        [&](int64_t to, int64_t from) { copy(updates.raw() + from * width, out + to * width); });
    return {std::move(result)};
  }
  std::vector<ElementType> types;
  for (int k = 0; k < n; ++k) types.push_back(operands[k].type());
  Reducer reducer(*instr.called[0], types, context, Reducer::Sums::kInOwnLane);
  std::vector<Target> targets, updates;
  std::vector<std::byte*> to_data;
  std::vector<const std::byte*> from_data;
  for (int k = 0; k < n; ++k) {
    targets.emplace_back(std::move(operands[k]), reducer.lane(k));
    updates.emplace_back(std::move(operands[n + 1 + k]), reducer.lane(k));
  }
  for (int k = 0; k < n; ++k) {
    to_data.push_back(targets[k].mutable_data());
    from_data.push_back(updates[k].data());
  }
  const CopyDims dims = simplified(windows.copy());
  windows.for_each(
      [&](int64_t to, int64_t from) { fold_window(&reducer, dims, to_data, to, from_data, from); });
  std::vector<Buffer> results;
  for (Target& t : targets) results.push_back(std::move(t).result());
  return results;
}

}  // namespace gspmd
