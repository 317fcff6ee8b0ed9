#include "gspmd/ops/dot_dims.h"

#include <fmt/format.h>

#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

void check_pairs(absl::Span<const int64_t> left, absl::Span<const int64_t> right, Shape lhs,
                 Shape rhs, std::string_view op, std::string_view what) {
  if (left.size() != right.size()) {
    refuse(op,
           fmt::format("{} {} dimensions of lhs and {} of rhs", left.size(), what, right.size()),
           "they pair in order");
  }
  for (size_t i = 0; i < left.size(); ++i) {
    int64_t a = lhs.dim(static_cast<int>(left[i])), b = rhs.dim(static_cast<int>(right[i]));
    if (a == b || lhs.is_dynamic(static_cast<int>(left[i])) ||
        rhs.is_dynamic(static_cast<int>(right[i])))
      continue;
    refuse(
        op,
        fmt::format("{} dimension {} of lhs {} has {} elements and dimension {} of rhs {} has {}",
                    what, left[i], to_string(lhs), a, right[i], to_string(rhs), b),
        "sizes of paired dimensions must be equal");
  }
}

void check_side(absl::Span<const int64_t> batch, absl::Span<const int64_t> contract, Shape s,
                std::string_view op, std::string_view side) {
  DimVector both(batch.begin(), batch.end());
  both.insert(both.end(), contract.begin(), contract.end());
  check_dims(both, s.rank(), op, fmt::format("{}_batch_dims and {}_contracting_dims", side, side));
}

}  // namespace

DimVector free_dims(int rank, std::initializer_list<absl::Span<const int64_t>> taken) {
  DimVector free;
  for (int64_t d = 0; d < rank; ++d) {
    bool is_free = true;
    for (absl::Span<const int64_t> list : taken) {
      if (std::find(list.begin(), list.end(), d) != list.end()) is_free = false;
    }
    if (is_free) free.push_back(d);
  }
  return free;
}

void check_dot_dims(const DotAttrs& a, Shape lhs, Shape rhs, std::string_view op) {
  check_side(a.lhs_batch, a.lhs_contract, lhs, op, "lhs");
  check_side(a.rhs_batch, a.rhs_contract, rhs, op, "rhs");
  check_pairs(a.lhs_batch, a.rhs_batch, lhs, rhs, op, "batch");
  check_pairs(a.lhs_contract, a.rhs_contract, lhs, rhs, op, "contracting");
}

ElementType product_type(const InferArgs& args, Shape lhs, Shape rhs) {
  if (args.stated && args.stated.is_array()) return args.stated.type();
  return bits_of(rhs.type()) > bits_of(lhs.type()) ? rhs.type() : lhs.type();
}

}  // namespace gspmd
