// reduce, and map. Dimensions are joined to runs of kept and reduced ones; see Fold.

#include <cstring>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/near_ties.h"
#include "gspmd/engine/kernels/reducer.h"
#include "gspmd/engine/kernels/strided.h"

namespace gspmd {
namespace {

// Kept (K) and reduced (R) dimensions, neighbours of one kind joined: [2,3,4] reduced over 1 and 2
// is K2 R12.
struct Run {
  int64_t size;
  bool reduced;
  int64_t from, to;  // strides in the operands and in the results (0 where reduced)
};

std::vector<Run> runs_of(absl::Span<const int64_t> dims, const Dims& reduced) {
  std::vector<Run> runs;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const bool r = reduced.contains(static_cast<int64_t>(d));
    if (!runs.empty() && runs.back().reduced == r) {
      runs.back().size *= dims[d];
    } else {
      runs.push_back({dims[d], r, 0, 0});
    }
  }
  int64_t from = 1, to = 1;
  for (size_t i = runs.size(); i-- > 0;) {
    runs[i].from = from;
    runs[i].to = runs[i].reduced ? 0 : to;
    from *= runs[i].size;
    if (!runs[i].reduced) to *= runs[i].size;
  }
  return runs;
}

// Folds all elements of the operands into accumulators, in row-major order for each of them but
// where the reducer commutes.
class Fold {
 public:
  Fold(Reducer* reducer, absl::Span<const Buffer> operands,
       std::vector<std::vector<std::byte>>* acc)
      : reducer_(*reducer), operands_(operands), acc_(*acc) {
    for (int k = 0; k < reducer->arity(); ++k) {
      lanes_.emplace_back(static_cast<size_t>(kChunk * kMaxLaneBytes));
      totals_.emplace_back(static_cast<size_t>(kChunk * kMaxLaneBytes));
    }
  }

  void run(std::vector<Run> runs) {
    if (runs.empty()) runs.push_back({1, true, 1, 0});
    Run inner = runs.back();
    runs.pop_back();
    Run rows{1, false, 0, 0};  // the kept dimension outside of an inner reduced one
    const bool by_rows =
        inner.reduced && !runs.empty() && (!reducer_.commutes() || inner.size < 64);
    if (by_rows) {
      rows = runs.back();
      runs.pop_back();
    }
    DimVector sizes, strides[2];
    for (const Run& r : runs) {
      sizes.push_back(r.size);
      strides[0].push_back(r.from);
      strides[1].push_back(r.to);
    }
    for_each_offset<2>(sizes, strides, [&](const int64_t(&at)[2]) {
      if (!inner.reduced) {
        fold_kept(at[0], at[1], inner.size);
      } else if (rows.size >= 16 || (by_rows && inner.size < 16)) {
        fold_rows(at[0], at[1], rows, inner);
      } else {
        for (int64_t r = 0; r < rows.size; ++r) {
          fold_run(at[0] + r * rows.from, at[1] + r * rows.to, inner.size);
        }
      }
    });
  }

 private:
  // n elements of every operand from `offset` on, `step` apart, as lanes.
  absl::Span<const void* const> load(int64_t offset, int64_t n, int64_t step) {
    pointers_.clear();
    for (size_t k = 0; k < lanes_.size(); ++k) {
      const ElementType type = operands_[k].type();
      const int width = storage_bytes(type);
      const std::byte* from = operands_[k].raw() + offset * width;
      std::byte near[kChunk * kMaxLaneBytes];
      if (step != 1) {
        copy_strided(width, {{n, step, 1}}, from, near);
        from = near;
      }
      const Lane lane = reducer_.lane(static_cast<int>(k));
      if (step == 1 && is_native(type) && lane_of(type) == lane) {
        pointers_.push_back(from);
        continue;
      }
      load_as(type, from, n, lane, lanes_[k].data());
      pointers_.push_back(lanes_[k].data());
    }
    return pointers_;
  }

  absl::InlinedVector<void*, 4> accumulators(int64_t at) {
    absl::InlinedVector<void*, 4> out;
    for (size_t k = 0; k < acc_.size(); ++k) {
      out.push_back(acc_[k].data() + at * bytes_of(reducer_.lane(static_cast<int>(k))));
    }
    return out;
  }

  // The innermost dimension is kept: an accumulator for each element.
  void fold_kept(int64_t from, int64_t to, int64_t size) {
    for (int64_t i = 0; i < size; i += kChunk) {
      const int64_t n = std::min(kChunk, size - i);
      reducer_.fold(accumulators(to + i), load(from + i, n, 1), n);
    }
  }

  // Several rows at once, element after element: lanes are rows.
  void fold_rows(int64_t from, int64_t to, const Run& rows, const Run& inner) {
    for (int64_t i = 0; i < rows.size; i += kChunk) {
      const int64_t n = std::min(kChunk, rows.size - i);
      const auto acc = accumulators(to + i * rows.to);
      for (int64_t j = 0; j < inner.size; ++j) {
        reducer_.fold(acc, load(from + i * rows.from + j * inner.from, n, rows.from), n);
      }
    }
  }

  // One row into one accumulator: lanes are pieces of the row, joined at the end.
  void fold_run(int64_t from, int64_t to, int64_t size) {
    while (size > 0) {
      const int64_t n = std::min(kChunk, size), pieces = size / n;
      const int64_t step = reducer_.commutes() ? 1 : pieces, next = reducer_.commutes() ? n : 1;
      copy_to_totals(load(from, n, step), n);
      for (int64_t j = 1; j < pieces; ++j) {
        reducer_.fold(totals(), load(from + j * next, n, step), n);
      }
      join_totals(n);
      reducer_.fold(accumulators(to), const_totals(), 1);
      from += n * pieces;
      size -= n * pieces;
    }
  }

  absl::InlinedVector<void*, 4> totals() {
    absl::InlinedVector<void*, 4> out;
    for (auto& t : totals_) out.push_back(t.data());
    return out;
  }
  absl::InlinedVector<const void*, 4> const_totals() {
    absl::InlinedVector<const void*, 4> out;
    for (auto& t : totals_) out.push_back(t.data());
    return out;
  }

  void copy_to_totals(absl::Span<const void* const> lanes, int64_t n) {
    for (size_t k = 0; k < lanes.size(); ++k) {
      const int width = bytes_of(reducer_.lane(static_cast<int>(k)));
      std::memcpy(totals_[k].data(), lanes[k], static_cast<size_t>(n * width));
    }
  }

  // Neighbours in pairs, until one is left.
  void join_totals(int64_t n) {
    for (; n > 1; n = (n + 1) / 2) {
      const int64_t pairs = n / 2;
      for (size_t k = 0; k < totals_.size(); ++k) {
        const int width = bytes_of(reducer_.lane(static_cast<int>(k)));
        std::byte* t = totals_[k].data();
        copy_strided(width, {{pairs, 2, 1}}, t + width, lanes_[k].data());
        for (int64_t i = 1; 2 * i < n; ++i) std::memcpy(t + i * width, t + 2 * i * width, width);
      }
      absl::InlinedVector<const void*, 4> right;
      for (auto& l : lanes_) right.push_back(l.data());
      reducer_.fold(totals(), right, pairs);
    }
  }

  Reducer& reducer_;
  absl::Span<const Buffer> operands_;
  std::vector<std::vector<std::byte>>& acc_;
  std::vector<std::vector<std::byte>> lanes_, totals_;
  absl::InlinedVector<const void*, 4> pointers_;
};

}  // namespace

GSPMD_KERNEL(reduce_kernel) {
  const int arity = static_cast<int>(operands.size()) / 2;
  std::vector<ElementType> types;
  for (int k = 0; k < arity; ++k) types.push_back(result_type(instr, context, k));
  Reducer reducer(*instr.called[0], types, context);
  Dims kept = leaf_shape(instr.shape, 0).dims();
  int64_t size = 1;
  for (int64_t d : kept) size *= d;
  auto acc = reducer.accumulators(operands.subspan(arity), size);
  if (operands[0].size() > 0) {
    Fold(&reducer, operands.subspan(0, arity), &acc)
        .run(runs_of(operands[0].dims(), instr.attrs<DimsAttrs>().dimensions));
  }
  return reducer.results(acc, kept);
}

// Elements of the first operand that nearly equal the one that was chosen, of argmax and the like:
// the result is one of the elements.
std::vector<Nudge> near_ties_of_reduce(const Instr& i, absl::Span<const Buffer> own,
                                       absl::Span<const Buffer> reference,
                                       const KernelContext& wide) {
  std::vector<Nudge> out;
  const RoundedOperand x(0, own[0], reference[0]);
  if (x.exact()) return out;
  std::vector<Buffer> operands(reference.begin(), reference.end());
  const Buffer chosen = reduce_kernel(i, absl::MakeSpan(operands), wide)[0];
  const auto* value = chosen.data<double>();
  DimVector strides[2] = {strides_of(own[0].dims()), {}};
  DimVector of_result = strides_of(chosen.dims());
  const Dims& reduced = i.attrs<DimsAttrs>().dimensions;
  size_t kept = 0;
  for (int64_t d = 0; d < own[0].rank(); ++d) {
    strides[1].push_back(reduced.contains(d) ? 0 : of_result[kept++]);
  }
  std::vector<int64_t> winner(static_cast<size_t>(chosen.size()), -1);
  for_each_offset<2>(own[0].dims(), strides, [&](const int64_t(&at)[2]) {
    if (winner[at[1]] < 0 && x.at(at[0]) == value[at[1]]) winner[at[1]] = at[0];
  });
  for_each_offset<2>(own[0].dims(), strides, [&](const int64_t(&at)[2]) {
    const int64_t best = winner[at[1]];
    if (best >= 0 && best != at[0] && x.nearly_equal(at[0], best)) {
      x.add_crossings(at[0], best, &out);
    }
  });
  return out;
}

}  // namespace gspmd
