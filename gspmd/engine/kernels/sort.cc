// sort, topk.

#include <algorithm>
#include <numeric>

#include "gspmd/engine/kernels/comparator.h"
#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/near_ties.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {
namespace {

template <typename T>
void permute_line(const std::byte* from, std::byte* to, int64_t start, int64_t stride,
                  const std::vector<int64_t>& order) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to) + start;
  for (size_t i = 0; i < order.size(); ++i) y[static_cast<int64_t>(i) * stride] = x[order[i]];
}

struct Bytes16 {
  uint64_t low, high;
};

void permute_line(int width, const std::byte* from, std::byte* to, int64_t start, int64_t stride,
                  const std::vector<int64_t>& order) {
  switch (width) {
    case 1:
      return permute_line<uint8_t>(from, to, start, stride, order);
    case 2:
      return permute_line<uint16_t>(from, to, start, stride, order);
    case 4:
      return permute_line<uint32_t>(from, to, start, stride, order);
    case 8:
      return permute_line<uint64_t>(from, to, start, stride, order);
    default:
      return permute_line<Bytes16>(from, to, start, stride, order);
  }
}

// Sorts element numbers; always stable, whatever the comparator says.
void sort_line(Comparator* comparator, const std::optional<std::vector<uint64_t>>& keys,
               std::vector<int64_t>* order) {
  if (keys) {
    const std::vector<uint64_t>& key = *keys;
    std::stable_sort(order->begin(), order->end(),
                     [&](int64_t i, int64_t j) { return key[i] < key[j]; });
  } else {
    std::stable_sort(order->begin(), order->end(),
                     [&](int64_t i, int64_t j) { return comparator->before(i, j); });
  }
}

// NaN largest, -0 below +0.
std::vector<uint64_t> topk_keys(const Buffer& x) {
  const Lane lane = lane_of(x.type());
  std::vector<std::byte> lanes(static_cast<size_t>(x.size() * bytes_of(lane)));
  load_lanes(x.type(), x.raw(), x.size(), lanes.data());
  std::vector<uint64_t> keys = order_keys(lane, lanes.data(), x.size(), /*total_order=*/true);
  if (!is_float(lane)) return keys;
  with_lane_type(lane, [&](auto zero) {
    const auto* value = reinterpret_cast<const decltype(zero)*>(lanes.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (value[i] != value[i]) keys[i] = ~uint64_t{0};
    }
  });
  return keys;
}

}  // namespace

GSPMD_KERNEL(sort_kernel) {
  const int64_t dim = instr.attrs<SortAttrs>().dimensions[0];
  const DimVector& dims = operands[0].dims();
  DimVector strides = strides_of(dims), outer = dims;
  const int64_t n = dims[dim], stride = strides[dim];
  outer[dim] = n == 0 ? 0 : 1;
  Comparator comparator(*instr.called[0], operands, context);
  const std::optional<std::vector<uint64_t>> keys = comparator.keys();
  std::vector<Buffer> results;
  for (const Buffer& b : operands) results.emplace_back(b.type(), b.dims());
  std::vector<int64_t> order(static_cast<size_t>(n));
  for_each_offset<1>(outer, {strides}, [&](const int64_t(&at)[1]) {
    for (int64_t i = 0; i < n; ++i) order[i] = at[0] + i * stride;
    sort_line(&comparator, keys, &order);
    for (size_t k = 0; k < results.size(); ++k) {
      permute_line(storage_bytes(results[k].type()), operands[k].raw(), results[k].mutable_raw(),
                   at[0], stride, order);
    }
  });
  return results;
}

GSPMD_KERNEL(topk_kernel) {
  const auto& a = instr.attrs<TopKAttrs>();
  const Buffer& x = operands[0];
  std::vector<uint64_t> keys = topk_keys(x);
  if (a.largest) {
    for (uint64_t& key : keys) key = ~key;
  }
  Buffer values = new_result(instr, context, 0), indices = new_result(instr, context, 1);
  const int64_t n = x.dims().back(), lines = n == 0 ? 0 : x.size() / n;
  const int width = storage_bytes(x.type());
  auto* index = indices.mutable_data<int32_t>();
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t line = 0; line < lines; ++line) {
    std::iota(order.begin(), order.end(), line * n);
    auto before = [&](int64_t i, int64_t j) {
      return keys[i] < keys[j] || (keys[i] == keys[j] && i < j);
    };
    std::partial_sort(order.begin(), order.begin() + a.k, order.end(), before);
    for (int64_t i = 0; i < a.k; ++i) {
      index[line * a.k + i] = static_cast<int32_t>(order[i] - line * n);
    }
    std::vector<int64_t> best(order.begin(), order.begin() + a.k);
    permute_line(width, x.raw(), values.mutable_raw(), line * a.k, 1, best);
  }
  return {std::move(values), std::move(indices)};
}

// Neighbours in the order of the values of each float operand that the order depends on.
std::vector<Nudge> near_ties_of_sort(const Instr& i, absl::Span<const Buffer> own,
                                     absl::Span<const Buffer> reference, const KernelContext&) {
  std::vector<Nudge> out;
  const bool topk = i.opcode == Opcode::kTopK;
  const int64_t key = topk ? 0 : key_operand(*i.called[0]);
  for (size_t k = 0; k < own.size(); ++k) {
    if (!is_float(own[k].type()) || (key >= 0 && key != static_cast<int64_t>(k))) continue;
    const RoundedOperand x(static_cast<int>(k), own[k], reference[k]);
    if (x.exact()) continue;
    const DimVector& dims = own[k].dims();
    const int64_t dim = topk ? own[k].rank() - 1 : i.attrs<SortAttrs>().dimensions[0];
    DimVector strides = strides_of(dims), outer = dims;
    const int64_t n = dims[dim], stride = strides[dim];
    outer[dim] = n == 0 ? 0 : 1;
    std::vector<int64_t> order(static_cast<size_t>(n));
    for_each_offset<1>(outer, {strides}, [&](const int64_t(&at)[1]) {
      for (int64_t e = 0; e < n; ++e) order[e] = at[0] + e * stride;
      std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return x.at(a) < x.at(b) || (x.at(a) == x.at(b) && a < b);
      });
      for (size_t e = 1; e < order.size(); ++e) {
        if (x.nearly_equal(order[e - 1], order[e])) x.add_crossings(order[e], order[e - 1], &out);
      }
    });
  }
  return out;
}

}  // namespace gspmd
