#include "gspmd/propagate/projection.h"

namespace gspmd {
namespace {

// Size of a factor as it stands in a dimension of one factor (window factors have other sizes in
// operand and result).
int64_t minor_product(const Rule& rule, absl::Span<const FactorId> factors) {
  int64_t n = 1;
  for (size_t k = 1; k < factors.size(); ++k) n *= rule.factor(factors[k]).size;
  return n;
}

// Blocks of `size` over n shards are whole numbers of major-factor steps, and as many as
// ceil(major/n).
bool uneven_split_fits(int64_t size, int64_t major, int64_t minor, int64_t n) {
  return ceil_div(size, n) == ceil_div(major, n) * minor;
}

int take_by_composite(const Mesh& mesh, const Rule& rule, absl::Span<const FactorId> factors,
                      int64_t size, const AxisList& axes, absl::Span<AxisList> out) {
  size_t k = 0;
  int64_t left = rule.factor(factors[0]).size;
  int64_t taken_by_major = 1;
  for (int i = 0; i < axes.size(); ++i) {
    int64_t n = mesh.size(axes[i]);
    while (left == 1 && k + 1 < factors.size()) left = rule.factor(factors[++k]).size;
    if (left % n != 0) {
      int64_t major = rule.factor(factors[0]).size;
      bool fits = k == 0 &&
                  uneven_split_fits(size, major, minor_product(rule, factors), taken_by_major * n);
      if (!fits) return i;
      out[factors[0]].push_back(axes[i]);  // nothing can follow an uneven split
      return i + 1;
    }
    left /= n;
    if (k == 0) taken_by_major *= n;
    out[factors[k]].push_back(axes[i]);
  }
  return axes.size();
}

}  // namespace

int project_dim(const Mesh& mesh, const Rule& rule, absl::Span<const FactorId> factors,
                int64_t size, const AxisList& axes, absl::Span<AxisList> out) {
  if (axes.empty() || factors.empty()) return 0;
  if (factors.size() == 1) {
    out[factors[0]].append(axes);
    return axes.size();
  }
  return take_by_composite(mesh, rule, factors, size, axes, out);
}

bool project(const Rule& rule, int tensor, Sharding sharding, absl::Span<const int64_t> dims,
             FactorAxes* out) {
  out->assign(static_cast<size_t>(rule.num_factors()), AxisList());
  bool complete = true;
  for (int d = 0; d < rule.rank(tensor); ++d) {
    const AxisList& axes = sharding.dim(d);
    if (axes.empty()) continue;
    int n = project_dim(sharding.mesh(), rule, rule.dim(tensor, d), dims[d], axes,
                        absl::MakeSpan(*out));
    complete &= n == axes.size();
  }
  return complete;
}

AxisList dim_axes(const Mesh& mesh, const Rule& rule, absl::Span<const FactorId> factors,
                  int64_t size, absl::Span<const AxisList> axes, bool* complete) {
  if (factors.empty()) return {};
  if (factors.size() == 1) return axes[factors[0]];
  AxisList out = axes[factors[0]];
  int64_t major = rule.factor(factors[0]).size;
  int64_t n = mesh.product(out);
  if (!out.empty() && !uneven_split_fits(size, major, minor_product(rule, factors), n)) {
    *complete = false;
    return {};
  }
  bool full = n == major;
  for (size_t k = 1; k < factors.size(); ++k) {
    const AxisList& more = axes[factors[k]];
    int64_t size_k = rule.factor(factors[k]).size;
    int64_t n_k = mesh.product(more);
    if (!more.empty()) {
      if (!full || size_k % n_k != 0) {
        *complete = false;
        return out;
      }
      out.append(more);
    }
    full = full && n_k == size_k;
  }
  return out;
}

}  // namespace gspmd
