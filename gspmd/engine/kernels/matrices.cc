#include "gspmd/engine/kernels/matrices.h"

#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/panels.h"
#include "gspmd/engine/kernels/strided.h"
#include "gspmd/engine/numeric.h"
#include "gspmd/ops/dot_dims.h"

namespace gspmd {
namespace {

bool is_identity(absl::Span<const int64_t> order, absl::Span<const int64_t> sizes) {
  int64_t last = -1;
  for (int64_t d : order) {
    if (sizes[d] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

int64_t product(const Buffer& x, absl::Span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= x.dims()[d];
  return n;
}

// x with its dimensions ordered (batch, rows, columns) or (batch, columns, rows): whichever needs
// no copy.
struct Side {
  Buffer x;
  int64_t rows = 0, columns = 0;  // their strides
};
Side arranged(const Buffer& x, absl::Span<const int64_t> batch, absl::Span<const int64_t> rows,
              absl::Span<const int64_t> columns) {
  auto order = [&](absl::Span<const int64_t> second, absl::Span<const int64_t> third) {
    DimVector all(batch.begin(), batch.end());
    all.insert(all.end(), second.begin(), second.end());
    all.insert(all.end(), third.begin(), third.end());
    return all;
  };
  if (is_identity(order(columns, rows), x.dims()) && !is_identity(order(rows, columns), x.dims())) {
    return {x, 1, product(x, rows)};
  }
  return {permuted(x, order(rows, columns)), product(x, columns), 1};
}

// Elements in type T, and where they lie: for one batch.
template <typename T>
struct Panel {
  const T* data;
  int64_t rows, columns;  // strides
};

// c[m, n] += a[m, k] * b[k, n], with b's rows contiguous: vectors along n, blocks of k and n that
// stay in the cache.
template <typename T>
void multiply_rows(const Panel<T>& a, const T* b, int64_t m, int64_t n, int64_t k, T* c) {
  constexpr int64_t kBlockK = 64, kBlockN = 512;
  for (int64_t n0 = 0; n0 < n; n0 += kBlockN) {
    const int64_t n1 = std::min(n, n0 + kBlockN);
    for (int64_t k0 = 0; k0 < k; k0 += kBlockK) {
      const int64_t k1 = std::min(k, k0 + kBlockK);
      for (int64_t i = 0; i < m; ++i) {
        T* row = c + i * n;
        for (int64_t l = k0; l < k1; ++l) {
          const T factor = a.data[i * a.rows + l * a.columns];
          const T* from = b + l * n;
#pragma GCC ivdep
          for (int64_t j = n0; j < n1; ++j) row[j] += factor * from[j];
        }
      }
    }
  }
}

// The same for few columns: a sum along k in eight parts.
template <typename T>
void multiply_columns(const Panel<T>& a, const Panel<T>& b, int64_t m, int64_t n, int64_t k, T* c) {
  constexpr int64_t kParts = 8;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const T *x = a.data + i * a.rows, *y = b.data + j * b.columns;
      T parts[kParts] = {};
      for (int64_t l = 0; l < k; l += kParts) {
        const int64_t count = std::min(kParts, k - l);
        for (int64_t p = 0; p < count; ++p) {
          parts[p] += x[(l + p) * a.columns] * y[(l + p) * b.rows];
        }
      }
      for (int64_t step = kParts / 2; step > 0; step /= 2) {
        for (int64_t p = 0; p < step; ++p) parts[p] += parts[p + step];
      }
      c[i * n + j] += parts[0];
    }
  }
}

// A buffer's elements in another lane than they are stored in, or as they are.
template <typename T>
class Lanes {
 public:
  Lanes(const Buffer& x, Lane lane) : data_(x.data<T>()) {
    if (is_native(x.type()) && lane_of(x.type()) == lane) return;
    memory_.resize(static_cast<size_t>(x.size()));
    load_as(x.type(), x.raw(), x.size(), lane, memory_.data());
    data_ = memory_.data();
  }
  const T* data() const { return data_; }

 private:
  const T* data_;
  std::vector<T> memory_;
};

// b[k, n] contiguous.
template <typename T>
std::vector<T> packed(const Panel<T>& b, int64_t k, int64_t n) {
  std::vector<T> out(static_cast<size_t>(k * n));
  copy_strided(sizeof(T), {{k, b.rows, n}, {n, b.columns, 1}},
               reinterpret_cast<const std::byte*>(b.data),
               reinterpret_cast<std::byte*>(out.data()));
  return out;
}

template <typename T>
void multiply_as(const Matrices& x, Lane lane, Buffer* result) {
  const Lanes<T> lhs(x.lhs, lane), rhs(x.rhs, lane);
  std::vector<T> out(static_cast<size_t>(x.batch * x.m * x.n), T(0));
  for (int64_t i = 0; i < x.batch; ++i) {
    const Panel<T> a{lhs.data() + i * x.lhs_batch, x.lhs_m, x.lhs_k};
    const Panel<T> b{rhs.data() + i * x.rhs_batch, x.rhs_k, x.rhs_n};
    T* c = out.data() + i * x.m * x.n;
    if (x.n < 8) {
      multiply_columns(a, b, x.m, x.n, x.k, c);
    } else if constexpr (std::is_floating_point_v<T>) {
      multiply_panels(a.data, a.rows, a.columns, b.data, b.rows, b.columns, x.m, x.n, x.k, c);
    } else if (b.columns == 1) {
      multiply_rows(a, b.data, x.m, x.n, x.k, c);
    } else {
      multiply_rows(a, packed(b, x.k, x.n).data(), x.m, x.n, x.k, c);
    }
  }
  store_from(result->type(), lane, out.data(), result->size(), result->mutable_raw());
}

}  // namespace

Buffer permuted(const Buffer& x, absl::Span<const int64_t> order) {
  DimVector sizes;
  for (int64_t d : order) sizes.push_back(x.dims()[d]);
  if (is_identity(order, x.dims())) return x.reshaped(sizes);
  Buffer result(x.type(), sizes);
  DimVector from = strides_of(x.dims()), to = strides_of(sizes);
  CopyDims dims;
  for (size_t i = 0; i < order.size(); ++i) dims.push_back({sizes[i], from[order[i]], to[i]});
  copy_strided(storage_bytes(x.type()), dims, x.raw(), result.mutable_raw());
  return result;
}

Matrices matrices_of(const DotAttrs& a, const Buffer& lhs, const Buffer& rhs) {
  Matrices x;
  const DimVector lhs_free = free_dims(lhs.rank(), {a.lhs_batch, a.lhs_contract});
  const DimVector rhs_free = free_dims(rhs.rank(), {a.rhs_batch, a.rhs_contract});
  x.batch = product(lhs, a.lhs_batch);
  x.k = product(lhs, a.lhs_contract);
  x.m = product(lhs, lhs_free);
  x.n = product(rhs, rhs_free);
  Side l = arranged(lhs, a.lhs_batch, lhs_free, a.lhs_contract);
  Side r = arranged(rhs, a.rhs_batch, a.rhs_contract, rhs_free);
  x.lhs = std::move(l.x);
  x.rhs = std::move(r.x);
  x.lhs_m = l.rows;
  x.lhs_k = l.columns;
  x.rhs_k = r.rows;
  x.rhs_n = r.columns;
  x.lhs_batch = x.m * x.k;
  x.rhs_batch = x.k * x.n;
  return x;
}

void multiply(const Matrices& x, Buffer* result) {
  const Lane lane = lane_of(result->type());
  switch (lane) {
    case Lane::kPred:  // or of ands, by counting
      return multiply_as<uint64_t>(x, Lane::kU64, result);
    case Lane::kS32:
    case Lane::kU32:
      return multiply_as<uint32_t>(x, Lane::kU32, result);
    case Lane::kS64:
    case Lane::kU64:
      return multiply_as<uint64_t>(x, Lane::kU64, result);
    case Lane::kF32:
      return multiply_as<float>(x, lane, result);
    case Lane::kF64:
      return multiply_as<double>(x, lane, result);
    case Lane::kC64:
      return multiply_as<std::complex<float>>(x, lane, result);
    case Lane::kC128:
      return multiply_as<std::complex<double>>(x, lane, result);
  }
}

}  // namespace gspmd
