#include "gspmd/ops/shape_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "gspmd/base/error.h"

namespace gspmd {

void refuse(std::string_view op, const std::string& message, std::string hint) {
  throw Error(fmt::format("{}: {}", op, message), std::move(hint));
}

Shape array_operand(const InferArgs& args, int i, std::string_view op) {
  if (i >= static_cast<int>(args.operands.size())) {
    refuse(op, fmt::format("{} operands, operand {} is missing", args.operands.size(), i));
  }
  Shape s = args.operands[i];
  if (!s.is_array()) {
    refuse(op, fmt::format("operand {} is {}, not an array", i, to_string(s)),
           "take the array out with get-tuple-element");
  }
  return s;
}

void check_dim(int64_t dim, int rank, std::string_view op, std::string_view field) {
  if (dim >= 0 && dim < rank) return;
  refuse(op, fmt::format("{} names dimension {} of a tensor of rank {}", field, dim, rank),
         rank == 0 ? "a scalar has no dimensions"
                   : fmt::format("dimensions count from 0 to {}", rank - 1));
}

void check_dims(absl::Span<const int64_t> dims, int rank, std::string_view op,
                std::string_view field) {
  uint64_t seen = 0;
  for (int64_t d : dims) {
    check_dim(d, rank, op, field);
    if (seen >> d & 1) refuse(op, fmt::format("{} names dimension {} twice", field, d));
    seen |= uint64_t{1} << d;
  }
}

void check_sorted(absl::Span<const int64_t> dims, std::string_view op, std::string_view field) {
  if (std::is_sorted(dims.begin(), dims.end())) return;
  refuse(op, fmt::format("{} {{{}}} is not in order", field, fmt::join(dims, ",")), "sort it");
}

void check_same_sizes(const InferArgs& args, int begin, int end, std::string_view op) {
  for (int i = begin + 1; i < end; ++i) {
    Shape a = array_operand(args, begin, op), b = array_operand(args, i, op);
    if (a.dims() == b.dims()) continue;
    refuse(op, fmt::format("operand {} is {} and operand {} is {}: their sizes must be equal",
                           begin, to_string(a), i, to_string(b)));
  }
}

void check_equal(int64_t a, int64_t b, std::string_view op, std::string_view what) {
  if (a != b) refuse(op, fmt::format("{}: sizes {} and {} must be equal", what, a, b));
}

void check_apart(absl::Span<const int64_t> a, absl::Span<const int64_t> b, int rank,
                 std::string_view op, std::string_view fields) {
  DimVector both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  check_dims(both, rank, op, fields);
}

void check_batching(Shape operand, absl::Span<const int64_t> operand_dims, Shape indices,
                    absl::Span<const int64_t> indices_dims, int64_t index_vector_dim,
                    std::string_view op) {
  check_dims(operand_dims, operand.rank(), op, "batching dimensions of the operand");
  check_dims(indices_dims, indices.rank(), op, "batching dimensions of the indices");
  check_equal(static_cast<int64_t>(operand_dims.size()), static_cast<int64_t>(indices_dims.size()),
              op, "batching dimensions of operand and indices");
  for (size_t k = 0; k < operand_dims.size(); ++k) {
    if (indices_dims[k] == index_vector_dim) {
      refuse(op, fmt::format("batching dimension {} of the indices is index_vector_dim",
                             indices_dims[k]));
    }
    check_equal(operand.dim(static_cast<int>(operand_dims[k])),
                indices.dim(static_cast<int>(indices_dims[k])), op,
                fmt::format("batching dimensions {} of the operand and {} of the indices",
                            operand_dims[k], indices_dims[k]));
  }
}

void Sizes::insert(int64_t at, int64_t size) {
  uint64_t low = dynamic_ & ((uint64_t{1} << at) - 1);
  dynamic_ = low | ((dynamic_ ^ low) << 1);
  sizes_.insert(sizes_.begin() + at, size);
}

Shape one_or_tuple(Context& context, absl::Span<const Shape> shapes) {
  return shapes.size() == 1 ? shapes[0] : context.tuple(shapes);
}

void check_countable(Shape s, std::string_view op) {
  for_each_leaf(s, [&](Shape leaf, int) {
    if (!leaf.is_array()) return;
    int64_t bits = std::max(8, bits_of(leaf.type()));
    for (int64_t d : leaf.dims()) {
      if (d <= 0 || !__builtin_mul_overflow(bits, d, &bits)) continue;
      refuse(op, fmt::format("{} has too many elements to count", to_string(leaf)));
    }
  });
}

namespace {

// A size that no array has stands for all larger ones.
int64_t as_size(__int128 n) {
  constexpr int64_t kTooLarge = std::numeric_limits<int64_t>::max() / 2;
  return n > kTooLarge ? kTooLarge : n < -kTooLarge ? -kTooLarge : static_cast<int64_t>(n);
}

}  // namespace

int64_t padded_size(int64_t size, int64_t low, int64_t high, int64_t interior) {
  __int128 holes = static_cast<__int128>(std::max<int64_t>(size - 1, 0)) * interior;
  return as_size(static_cast<__int128>(size) + holes + low + high);
}

int64_t window_positions(int64_t size, const WindowDim& w) {
  __int128 base = size == 0 ? 0 : static_cast<__int128>(size - 1) * w.base_dilation + 1;
  __int128 padded = base + w.pad_low + w.pad_high;
  __int128 reach = static_cast<__int128>(w.size - 1) * w.window_dilation + 1;
  return padded < reach ? 0 : as_size((padded - reach) / w.stride + 1);
}

void check_window(Window window, int rank, std::string_view op) {
  if (static_cast<int>(window.size()) != rank) {
    refuse(op, fmt::format("window has {} dimensions, {} are needed", window.size(), rank));
  }
  for (size_t d = 0; d < window.size(); ++d) {
    const WindowDim& w = window[d];
    for (int64_t n :
         {w.size, w.stride, w.pad_low, w.pad_high, w.base_dilation, w.window_dilation}) {
      if (-kMaxWindowNumber <= n && n <= kMaxWindowNumber) continue;
      refuse(op, fmt::format("window dimension {}: {} is too large", d, n));
    }
    if (w.size > 0 && w.stride > 0 && w.base_dilation > 0 && w.window_dilation > 0) continue;
    refuse(op, fmt::format(
                   "window dimension {}: size {}, stride {}, lhs_dilate {}, rhs_dilate {} must be "
                   "positive",
                   d, w.size, w.stride, w.base_dilation, w.window_dilation));
  }
}

bool is_trivial(const WindowDim& w) {
  return w.size == 1 && w.stride == 1 && w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1;
}

}  // namespace gspmd
