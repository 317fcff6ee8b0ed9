#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/sharding/sharding.h"
#include "gspmd/sharding/spelling.h"

// What spellings and shardings mean, by the definition and device by device: slow, simple, and
// written without the library's algebra.
namespace gspmd::brute_force {

// Per device: the tile index in each tensor dimension, and one number for its place among the
// manual, pending and explicitly replicated parts.
struct Tile {
  std::vector<int64_t> index;
  int64_t manual = 0, pending = 0, replicated = 0;
  friend bool operator==(const Tile&, const Tile&) = default;
};
using Tiles = std::map<int64_t, Tile>;

// transpose(reshape(0..n-1, reshape), perm), flattened, by counting through the transposed index.
inline std::vector<int64_t> ids(const std::vector<int64_t>& reshape, const std::vector<int>& perm) {
  int64_t n = 1;
  for (int64_t size : reshape) n *= size;
  std::vector<int64_t> out;
  std::vector<int64_t> index(perm.size(), 0);  // in transposed dimensions
  for (int64_t k = 0; k < n; ++k) {
    std::vector<int64_t> original(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) original[perm[i]] = index[i];
    int64_t id = 0;
    for (size_t i = 0; i < perm.size(); ++i) id = id * reshape[i] + original[i];
    out.push_back(id);
    for (size_t i = perm.size(); i-- > 0;) {
      if (++index[i] < reshape[perm[i]]) break;
      index[i] = 0;
    }
  }
  return out;
}

inline std::vector<int64_t> ids(const IdList& list) {
  return list.is_iota() ? ids(list.reshape, list.perm) : list.ids;
}

inline Tiles tiles(const ShardingSpelling& s) {
  const std::vector<int64_t> devices = ids(s.devices);
  const size_t rank = s.tile_dims.size() - s.subgroups.size();
  Tiles out;
  for (size_t place = 0; place < devices.size(); ++place) {
    Tile& tile = out[devices[place]];
    tile.index.resize(rank);
    int64_t rest = static_cast<int64_t>(place), manual_scale = 1, pending_scale = 1;
    for (size_t t = s.tile_dims.size(); t-- > 0;) {
      const int64_t i = rest % s.tile_dims[t];
      rest /= s.tile_dims[t];
      if (t < rank) {
        tile.index[t] = i;
      } else if (s.subgroups[t - rank] == SubgroupType::kManual) {
        tile.manual += i * manual_scale;
        manual_scale *= s.tile_dims[t];
      } else if (s.subgroups[t - rank] == SubgroupType::kUnreduced) {
        tile.pending += i * pending_scale;
        pending_scale *= s.tile_dims[t];
      }
    }
  }
  return out;
}

inline int64_t coordinate(const Mesh& mesh, int64_t position, int axis) {
  for (int a = mesh.num_axes() - 1; a > axis; --a) position /= mesh.size(static_cast<AxisId>(a));
  return position % mesh.size(static_cast<AxisId>(axis));
}

inline int64_t device(const Mesh& mesh, int64_t position) {
  return mesh.has_device_table() ? mesh.device_of_position()[position] : position;
}

inline int64_t number_along(const Mesh& mesh, int64_t position, AxisSet axes) {
  int64_t number = 0;
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (axes.contains(static_cast<AxisId>(a))) {
      number = number * mesh.size(static_cast<AxisId>(a)) + coordinate(mesh, position, a);
    }
  }
  return number;
}

inline Tiles tiles(Sharding s) {
  const Mesh& mesh = s.mesh();
  Tiles out;
  for (int64_t position = 0; position < mesh.num_devices(); ++position) {
    Tile& tile = out[device(mesh, position)];
    for (int d = 0; d < s.rank(); ++d) {
      int64_t index = 0;
      for (AxisId a : s.dim(d)) index = index * mesh.size(a) + coordinate(mesh, position, a);
      tile.index.push_back(index);
    }
    tile.manual = number_along(mesh, position, s->manual);
    tile.pending = number_along(mesh, position, s->pending);
    tile.replicated = number_along(mesh, position, s->replicated);
  }
  return out;
}

// Renames the numbers of manual, pending and replicated parts by first occurrence: which devices
// share one is what counts.
inline Tiles canonical(Tiles tiles) {
  for (int64_t Tile::* part : {&Tile::manual, &Tile::pending, &Tile::replicated}) {
    std::map<int64_t, int64_t> names;
    for (auto& [device, tile] : tiles) {
      tile.*part = names.emplace(tile.*part, static_cast<int64_t>(names.size())).first->second;
    }
  }
  return tiles;
}

// All ways to write n as an ordered product of factors >= 2; of 1: the empty one.
inline std::vector<std::vector<int64_t>> factorizations(int64_t n) {
  if (n == 1) return {{}};
  std::vector<std::vector<int64_t>> out;
  for (int64_t f = 2; f <= n; ++f) {
    if (n % f != 0) continue;
    for (std::vector<int64_t> rest : factorizations(n / f)) {
      rest.insert(rest.begin(), f);
      out.push_back(std::move(rest));
    }
  }
  return out;
}

// A small generator whose numbers are the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  int64_t below(int64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(n));
  }
  template <typename T>
  void shuffle(std::vector<T>* list) {
    for (size_t i = list->size(); i > 1; --i) std::swap((*list)[i - 1], (*list)[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace gspmd::brute_force
