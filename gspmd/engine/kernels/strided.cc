#include "gspmd/engine/kernels/strided.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "gspmd/base/check.h"

namespace gspmd {
namespace {

struct Bytes16 {
  uint64_t low, high;
};

template <typename T>
void copy_row(const CopyDim& d, const T* from, T* to) {
  if (d.to == 1 && d.from == 1) {
    std::memcpy(to, from, static_cast<size_t>(d.size) * sizeof(T));
  } else if (d.to == 1 && d.from == 0) {
    std::fill_n(to, d.size, *from);
  } else {
    for (int64_t i = 0; i < d.size; ++i) to[i * d.to] = from[i * d.from];
  }
}

// Two dimensions that are contiguous on different sides, in tiles that fit the cache.
template <typename T>
void copy_tiled(const CopyDim& outer, const CopyDim& inner, const T* from, T* to) {
  constexpr int64_t kTile = 32;
  for (int64_t i = 0; i < outer.size; i += kTile) {
    const int64_t rows = std::min(kTile, outer.size - i);
    for (int64_t j = 0; j < inner.size; j += kTile) {
      const CopyDim columns{std::min(kTile, inner.size - j), inner.from, inner.to};
      for (int64_t r = i; r < i + rows; ++r) {
        copy_row(columns, from + r * outer.from + j * inner.from, to + r * outer.to + j * inner.to);
      }
    }
  }
}

template <typename T>
void copy_all(const CopyDims& dims, const std::byte* from_bytes, std::byte* to_bytes) {
  const auto* from = reinterpret_cast<const T*>(from_bytes);
  auto* to = reinterpret_cast<T*>(to_bytes);
  if (dims.empty()) {
    *to = *from;
    return;
  }
  if (dims.size() == 1) return copy_row(dims[0], from, to);
  const size_t inner = 2;
  DimVector sizes, strides[2];
  for (const CopyDim& d : absl::MakeConstSpan(dims).subspan(0, dims.size() - inner)) {
    sizes.push_back(d.size);
    strides[0].push_back(d.from);
    strides[1].push_back(d.to);
  }
  for_each_offset<2>(sizes, strides, [&](const int64_t(&at)[2]) {
    const T* f = from + at[0];
    T* t = to + at[1];
    const CopyDim& outer = dims[dims.size() - 2];
    if (dims.back().from > 1) {
      copy_tiled(outer, dims.back(), f, t);
    } else {
      for (int64_t i = 0; i < outer.size; ++i) {
        copy_row(dims.back(), f + i * outer.from, t + i * outer.to);
      }
    }
  });
}

// Puts the dimension that is contiguous in `from` beside the innermost one, where that one strides:
// a transposition is then copied in tiles.
void bring_contiguous_inward(CopyDims* dims) {
  if (dims->size() < 3 || dims->back().from <= 1) return;
  for (size_t d = 0; d + 2 < dims->size(); ++d) {
    if (std::abs((*dims)[d].from) != 1) continue;
    std::rotate(dims->begin() + static_cast<int64_t>(d),
                dims->begin() + static_cast<int64_t>(d) + 1, dims->end() - 1);
    return;
  }
}

}  // namespace

CopyDims simplified(const CopyDims& dims) {
  CopyDims out;
  for (const CopyDim& d : dims) {
    if (d.size == 1) continue;
    bool joins =
        !out.empty() && out.back().from == d.from * d.size && out.back().to == d.to * d.size;
    if (joins) {
      out.back() = {out.back().size * d.size, d.from, d.to};
    } else {
      out.push_back(d);
    }
  }
  return out;
}

CopyPlan::CopyPlan(int width, CopyDims dims) : width_(width), dims_(simplified(dims)) {
  for (const CopyDim& d : dims_) empty_ = empty_ || d.size == 0;
  bring_contiguous_inward(&dims_);
}

void CopyPlan::operator()(const std::byte* from, std::byte* to) const {
  if (empty_) return;
  switch (width_) {
    case 1:
      return copy_all<uint8_t>(dims_, from, to);
    case 2:
      return copy_all<uint16_t>(dims_, from, to);
    case 4:
      return copy_all<uint32_t>(dims_, from, to);
    case 8:
      return copy_all<uint64_t>(dims_, from, to);
    case 16:
      return copy_all<Bytes16>(dims_, from, to);
    default:
      GSPMD_CHECK(false, "no element is so wide");
  }
}

void copy_strided(int width, CopyDims dims, const std::byte* from, std::byte* to) {
  CopyPlan(width, std::move(dims))(from, to);
}

void fill(int width, const std::byte* value, int64_t n, std::byte* to) {
  copy_strided(width, {{n, 0, 1}}, value, to);
}

}  // namespace gspmd
