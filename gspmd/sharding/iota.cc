#include "gspmd/sharding/iota.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "gspmd/base/check.h"

namespace gspmd {

int64_t IdList::size() const {
  if (!is_iota()) return static_cast<int64_t>(ids.size());
  return std::accumulate(reshape.begin(), reshape.end(), int64_t{1}, std::multiplies<>());
}

std::optional<int64_t> checked_product(absl::Span<const int64_t> factors) {
  int64_t product = 1;
  for (int64_t f : factors) {
    if (__builtin_mul_overflow(product, f, &product)) return std::nullopt;
  }
  return product;
}

IdList make_iota(absl::Span<const int64_t> reshape, absl::Span<const int> perm) {
  GSPMD_CHECK(reshape.size() == perm.size(), "an iota list needs one target for each dimension");
  // Runs of dimensions that the transpose leaves side by side become one; 1s do not count.
  std::vector<std::pair<int, int64_t>> runs;  // (first dimension, size), in transposed order
  int last = -2;
  for (int p : perm) {
    if (reshape[p] == 1) continue;
    const bool adjacent = !runs.empty() && last < p &&
                          std::all_of(
                              reshape.begin() + last + 1, reshape.begin() + p,
                              [](int64_t size) { return size == 1; });
    if (adjacent) {
      runs.back().second *= reshape[p];
    } else {
      runs.emplace_back(p, reshape[p]);
    }
    last = p;
  }
  if (runs.empty()) runs.emplace_back(0, 1);

  std::vector<int> order(runs.size());  // runs in the order of their dimensions
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return runs[a].first < runs[b].first; });
  IdList out;
  out.perm.resize(runs.size());
  for (size_t i = 0; i < order.size(); ++i) {
    out.reshape.push_back(runs[order[i]].second);
    out.perm[order[i]] = static_cast<int>(i);
  }
  return out;
}

IdList plain_iota(int64_t n) { return make_iota({n}, {0}); }

bool is_plain(const IdList& ids) {
  if (ids.is_iota()) return std::is_sorted(ids.perm.begin(), ids.perm.end());
  for (size_t i = 0; i < ids.ids.size(); ++i) {
    if (ids.ids[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

std::vector<Digit> iota_digits(const IdList& iota) {
  GSPMD_CHECK(iota.is_iota(), "a written-out list has no digits");
  const size_t n = iota.reshape.size();
  std::vector<int64_t> id_stride(n, 1);
  for (size_t i = n - 1; i-- > 0;) id_stride[i] = id_stride[i + 1] * iota.reshape[i + 1];
  std::vector<Digit> digits(n);
  int64_t place = 1;
  for (size_t k = n; k-- > 0;) {
    const int p = iota.perm[k];
    digits[k] = {{place, iota.reshape[p]}, id_stride[p]};
    place *= iota.reshape[p];
  }
  return digits;
}

std::optional<IdList> as_iota(absl::Span<const int64_t> ids) {
  const int64_t n = static_cast<int64_t>(ids.size());
  if (n == 0 || ids[0] != 0) return std::nullopt;
  // From the minor end: a digit of step s = ids[place] runs as far as ids[k*place] == k*s.
  std::vector<Digit> digits;  // minor to major
  for (int64_t place = 1; place < n;) {
    const int64_t step = ids[place];
    if (step <= 0 || step >= n) return std::nullopt;
    int64_t size = 1;
    while (size < n / place && ids[size * place] == size * step) ++size;
    if (n % (place * size) != 0) return std::nullopt;
    digits.push_back({{place, size}, step});
    place *= size;
  }
  // The ids as a mixed-radix number: the smallest step is its last digit.
  std::vector<int> by_step(digits.size());
  std::iota(by_step.begin(), by_step.end(), 0);
  std::sort(by_step.begin(), by_step.end(),
            [&](int a, int b) { return digits[a].id_stride < digits[b].id_stride; });
  const int rank = static_cast<int>(digits.size());
  std::vector<int64_t> reshape(rank);
  std::vector<int> perm(rank);
  for (int i = 0; i < rank; ++i) {
    reshape[rank - 1 - i] = digits[by_step[i]].place.size;
    perm[rank - 1 - by_step[i]] = rank - 1 - i;
  }
  if (rank == 0) return plain_iota(1);
  // So far a guess: steps of 1 and 3 for sizes 2 and 2 fit no list.
  IdList iota = make_iota(reshape, perm);
  if (expand_ids(iota) != std::vector<int64_t>(ids.begin(), ids.end())) return std::nullopt;
  return iota;
}

std::vector<int64_t> expand_ids(const IdList& list) {
  if (!list.is_iota()) return list.ids;
  std::vector<int64_t> ids{0};
  ids.reserve(list.size());
  // Minor to major: each digit repeats what is there, `id_stride` further on.
  const std::vector<Digit> digits = iota_digits(list);
  for (size_t k = digits.size(); k-- > 0;) {
    const size_t block = ids.size();
    for (int64_t i = 1; i < digits[k].place.size; ++i) {
      for (size_t j = 0; j < block; ++j) ids.push_back(ids[j] + i * digits[k].id_stride);
    }
  }
  return ids;
}

IdList reorder(const IdList& ids, int64_t n, absl::Span<const Piece> digits) {
  // Places as iota: a digit of each piece, by falling stride, is a dimension of the reshape.
  std::vector<int> by_stride(digits.size());
  for (size_t i = 0; i < digits.size(); ++i) by_stride[i] = static_cast<int>(i);
  std::sort(by_stride.begin(), by_stride.end(),
            [&](int a, int b) { return digits[a].stride > digits[b].stride; });
  std::vector<int64_t> reshape;
  std::vector<int> perm(digits.size());
  for (size_t i = 0; i < by_stride.size(); ++i) {
    reshape.push_back(digits[by_stride[i]].size);
    perm[by_stride[i]] = static_cast<int>(i);
  }
  const IdList places = make_iota(reshape, perm);
  GSPMD_CHECK(places.size() == n, "the digits do not cover the list");
  if (ids.size() == 0 || is_plain(ids)) return places;
  // A list over a list: written out, then recognised where it is an iota form again.
  const std::vector<int64_t> values = expand_ids(ids);
  std::vector<int64_t> out = expand_ids(places);
  for (int64_t& place : out) place = values[place];
  if (auto iota = as_iota(out)) return *iota;
  return IdList{.reshape = {}, .perm = {}, .ids = std::move(out)};
}

bool map_piece(absl::Span<const Digit> digits, Piece places, std::vector<Piece>* out) {
  const size_t first = out->size();
  for (const Digit& digit : digits) {
    const int64_t low = std::max(places.stride, digit.place.stride);
    const int64_t high = std::min(places.end(), digit.place.end());
    if (low >= high) continue;
    // Digits lie side by side, so what nests with each of them also nests with the piece.
    if (low % digit.place.stride != 0 || high % low != 0 || digit.place.end() % high != 0) {
      return false;
    }
    const Piece ids{digit.id_stride * (low / digit.place.stride), high / low};
    if (out->size() > first && out->back().stride == ids.end()) {
      out->back() = {ids.stride, ids.size * out->back().size};
    } else {
      out->push_back(ids);
    }
  }
  return true;
}

}  // namespace gspmd
