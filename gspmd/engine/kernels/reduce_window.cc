// reduce-window.

#include <algorithm>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/reducer.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/engine/kernels/window_index.h"

namespace gspmd {
namespace {

// Takes one element of every window at a time (so that each result sees its elements in row-major
// order), for whole rows of results.
class WindowFold {
 public:
  WindowFold(Reducer* reducer, Window window, absl::Span<const Buffer> operands,
             absl::Span<const int64_t> result_dims, std::vector<std::vector<std::byte>>* acc)
      : reducer_(*reducer),
        window_(window),
        operands_(operands),
        dims_(operands[0].dims()),
        strides_(strides_of(dims_)),
        result_dims_(result_dims.begin(), result_dims.end()),
        result_strides_(strides_of(result_dims)),
        acc_(*acc),
        lanes_(operands.size(),
               std::vector<std::byte>(static_cast<size_t>(kChunk * kMaxLaneBytes))) {}

  void run() {
    DimVector sizes;
    for (const WindowDim& w : window_) sizes.push_back(w.size);
    for_each_index(sizes, [&](const DimVector& at) { fold_place(at); });
  }

 private:
  // Element `at` of all windows.
  void fold_place(const DimVector& at) {
    const int rank = static_cast<int>(dims_.size());
    if (rank == 0) return fold_row(at, 0, 0, 0, 1, 0);
    DimVector outer(result_dims_.begin(), result_dims_.end() - 1);
    const WindowDim& w = window_[rank - 1];
    const ResultRange range = result_range(w, at[rank - 1], dims_[rank - 1], result_dims_.back());
    if (range.begin >= range.end) return;
    for_each_index(outer, [&](const DimVector& result) {
      int64_t from = 0, to = 0;
      for (int d = 0; d + 1 < rank; ++d) {
        const int64_t i = operand_index(window_[d], result[d], at[d], dims_[d]);
        if (i < 0) return;
        from += i * strides_[d];
        to += result[d] * result_strides_[d];
      }
      fold_row(at, from, to, range.begin, range.end, range.step);
    });
  }

  void fold_row(const DimVector& at, int64_t from, int64_t to, int64_t begin, int64_t end,
                int64_t step) {
    if (dims_.empty()) return fold(to, from, 1, 1);
    const size_t last = dims_.size() - 1;
    const WindowDim& w = window_[last];
    const auto place = [&](int64_t r) { return from + operand_index(w, r, at[last], dims_[last]); };
    if (step != 1) {
      for (int64_t r = begin; r < end; r += step) fold(to + r, place(r), 1, 1);
      return;
    }
    const int64_t apart = w.stride / w.base_dilation;
    for (int64_t r = begin; r < end; r += kChunk) {
      fold(to + r, place(r), std::min(kChunk, end - r), apart);
    }
  }

  // n results from `to` on, each with its operand element, which are `step` apart.
  void fold(int64_t to, int64_t from, int64_t n, int64_t step) {
    absl::InlinedVector<void*, 4> acc;
    absl::InlinedVector<const void*, 4> x;
    for (size_t k = 0; k < operands_.size(); ++k) {
      const Lane lane = reducer_.lane(static_cast<int>(k));
      const ElementType type = operands_[k].type();
      const int width = storage_bytes(type);
      const std::byte* source = operands_[k].raw() + from * width;
      std::byte near[kChunk * kMaxLaneBytes];
      if (step != 1 && n > 1) {
        copy_strided(width, {{n, step, 1}}, source, near);
        source = near;
      }
      load_as(type, source, n, lane, lanes_[k].data());
      x.push_back(lanes_[k].data());
      acc.push_back(acc_[k].data() + to * bytes_of(lane));
    }
    reducer_.fold(absl::MakeSpan(acc), x, n);
  }

  Reducer& reducer_;
  Window window_;
  absl::Span<const Buffer> operands_;
  DimVector dims_, strides_, result_dims_, result_strides_;
  std::vector<std::vector<std::byte>>& acc_;
  std::vector<std::vector<std::byte>> lanes_;
};

// Long windows along one dimension alone, without dilations: the dimension, else -1.
int64_t sliding_dim(Window window) {
  constexpr int64_t kLong = 8;
  int64_t found = -1;
  for (size_t d = 0; d < window.size(); ++d) {
    const WindowDim& w = window[d];
    if (w.size == 1 && w.stride == 1 && w.base_dilation == 1 && w.pad_low == 0 && w.pad_high == 0) {
      continue;
    }
    if (found >= 0 || w.size < kLong || w.base_dilation != 1 || w.window_dilation != 1) return -1;
    found = static_cast<int64_t>(d);
  }
  return found;
}

// Such windows in three folds an element, however long (van Herk 1992): the operand is cut into
// blocks as long as a window; each window is a suffix of one block and a prefix of the next. With
// windows of 3, elements 2..4 are the suffix {2} of block 0..2 and the prefix {3, 4} of block 3..5.
class SlidingFold {
 public:
  SlidingFold(Reducer* reducer, const WindowDim& window, int64_t dim, const Buffer& x)
      : reducer_(*reducer),
        window_(window),
        width_(bytes_of(reducer->lane(0))),
        n_(x.dims()[dim]),
        inner_(strides_of(x.dims())[dim]),
        suffixes_(static_cast<size_t>(x.size() * width_)) {
    load_as(x.type(), x.raw(), x.size(), reducer->lane(0), suffixes_.data());
    prefixes_ = suffixes_;
    for (int64_t o = 0; o < x.size() / (n_ * inner_); ++o) {
      for (int64_t i = 1; i < n_; ++i) {
        if (i % window_.size != 0) fold(row(&prefixes_, o, i), row(&prefixes_, o, i - 1));
      }
      for (int64_t i = n_ - 2; i >= 0; --i) {
        if ((i + 1) % window_.size != 0) fold(row(&suffixes_, o, i), row(&suffixes_, o, i + 1));
      }
    }
  }

  // Accumulators [outer, results, inner] that hold the initial value.
  void run(int64_t results, std::vector<std::byte>* acc) {
    const int64_t rows = static_cast<int64_t>(acc->size()) / (width_ * inner_);
    for (int64_t at = 0; at < rows; ++at) {
      const int64_t o = at / results;
      const int64_t start = at % results * window_.stride - window_.pad_low;
      const int64_t first = std::max<int64_t>(start, 0);
      const int64_t last = std::min(start + window_.size, n_) - 1;
      if (first > last) continue;  // padding alone
      std::byte* to = acc->data() + at * inner_ * width_;
      const bool one_block = first / window_.size == last / window_.size;
      const bool from_start = first % window_.size == 0;
      if (!one_block || !from_start) fold(to, row(&suffixes_, o, first));
      if (!one_block || from_start) fold(to, row(&prefixes_, o, last));
    }
  }

 private:
  std::byte* row(std::vector<std::byte>* values, int64_t outer, int64_t i) const {
    return values->data() + (outer * n_ + i) * inner_ * width_;
  }

  void fold(std::byte* to, const std::byte* from) {
    for (int64_t j = 0; j < inner_; j += kChunk) {
      void* acc[] = {to + j * width_};
      const void* x[] = {from + j * width_};
      reducer_.fold(acc, x, std::min(kChunk, inner_ - j));
    }
  }

  Reducer& reducer_;
  const WindowDim& window_;
  int64_t width_, n_, inner_;
  std::vector<std::byte> suffixes_, prefixes_;
};

}  // namespace

int64_t operand_index(const WindowDim& w, int64_t result, int64_t at, int64_t size) {
  const int64_t place = result * w.stride + at * w.window_dilation - w.pad_low;
  if (place < 0 || place % w.base_dilation != 0) return -1;
  const int64_t i = place / w.base_dilation;
  return i < size ? i : -1;
}

ResultRange result_range(const WindowDim& w, int64_t at, int64_t size, int64_t results) {
  ResultRange range;
  while (range.begin < results && operand_index(w, range.begin, at, size) < 0) ++range.begin;
  range.end = results;
  while (range.end > range.begin && operand_index(w, range.end - 1, at, size) < 0) --range.end;
  if (range.begin + 1 < range.end) {
    while (operand_index(w, range.begin + range.step, at, size) < 0) ++range.step;
  }
  if (w.stride % w.base_dilation != 0) range.step = std::max<int64_t>(range.step, 2);
  return range;
}

GSPMD_KERNEL(reduce_window_kernel) {
  const int arity = static_cast<int>(operands.size()) / 2;
  std::vector<ElementType> types;
  for (int k = 0; k < arity; ++k) types.push_back(result_type(instr, context, k));
  Reducer reducer(*instr.called[0], types, context);
  Dims dims = leaf_shape(instr.shape, 0).dims();
  int64_t size = 1;
  for (int64_t d : dims) size *= d;
  auto acc = reducer.accumulators(operands.subspan(arity), size);
  const Window window = instr.attrs<WindowAttrs>().window;
  const int64_t sliding = reducer.commutes() ? sliding_dim(window) : -1;
  if (size > 0 && sliding >= 0 && operands[0].size() > 0) {
    SlidingFold(&reducer, window[sliding], sliding, operands[0]).run(dims[sliding], &acc[0]);
  } else if (size > 0) {
    WindowFold(&reducer, window, operands.subspan(0, arity), dims, &acc).run();
  }
  return reducer.results(acc, dims);
}

}  // namespace gspmd
