#include "gspmd/sharding/chain.h"

#include <algorithm>
#include <numeric>

#include "gspmd/base/check.h"

namespace gspmd {
namespace {

// Products of subsets of `sizes` that divide `n`, sorted.
std::vector<int64_t> products_dividing(absl::Span<const int64_t> sizes, int64_t n) {
  std::vector<int64_t> products{1};
  for (int64_t size : sizes) {
    const size_t before = products.size();
    for (size_t i = 0; i < before; ++i) {
      if (n / products[i] % size == 0) products.push_back(products[i] * size);
    }
    std::sort(products.begin(), products.end());
    products.erase(std::unique(products.begin(), products.end()), products.end());
  }
  return products;
}

}  // namespace

bool Chain::add(absl::Span<const int64_t> cuts) {
  std::vector<int64_t> merged;
  std::vector<int64_t> sorted(cuts.begin(), cuts.end());
  std::sort(sorted.begin(), sorted.end());
  std::set_union(cuts_.begin(), cuts_.end(), sorted.begin(), sorted.end(),
                 std::back_inserter(merged));
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  for (size_t i = 1; i < merged.size(); ++i) {
    if (merged[i] % merged[i - 1] != 0) return false;
  }
  if (merged.back() != cuts_.back()) return false;
  cuts_ = std::move(merged);
  return true;
}

bool Chain::has(absl::Span<const int64_t> cuts) const {
  return std::all_of(cuts.begin(), cuts.end(), [&](int64_t cut) {
    return std::binary_search(cuts_.begin(), cuts_.end(), cut);
  });
}

void Chain::append_axes(Piece piece, AxisList* out) const {
  const auto first = std::lower_bound(cuts_.begin(), cuts_.end(), piece.stride) - cuts_.begin();
  const auto end = std::lower_bound(cuts_.begin(), cuts_.end(), piece.end()) - cuts_.begin();
  GSPMD_CHECK(end < static_cast<int64_t>(cuts_.size()) && cuts_[first] == piece.stride &&
                  cuts_[end] == piece.end(),
              "a piece that is no sequence of axes");
  for (auto k = end; k-- > first;) out->push_back(static_cast<AxisId>(num_axes() - 1 - k));
}

void Chain::cut_at_factor(int64_t major) {
  std::vector<int64_t> cuts;
  for (int a = 0; a < num_axes(); ++a) {
    std::vector<int64_t> others;
    for (int b = 0; b < num_axes(); ++b) {
      if (b != a) others.push_back(size(b));
    }
    for (int64_t before : products_dividing(others, major)) {
      const int64_t shared = std::gcd(size(a), major / before);
      if (shared > 1 && shared < size(a)) cuts.push_back(stride(a) * (size(a) / shared));
    }
  }
  // Of two cuts that do not nest (6 as 2 x 3 and as 3 x 2) the first stays.
  for (int64_t cut : cuts) add({cut});
}

}  // namespace gspmd
