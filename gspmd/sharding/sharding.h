#pragma once

#include <absl/container/inlined_vector.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gspmd/sharding/axes.h"
#include "gspmd/sharding/mesh.h"

namespace gspmd {

// How partial results of a pending (unreduced) value are combined.
enum class Combiner : uint8_t { kNone, kSum, kProduct, kMin, kMax, kAnd, kOr, kXor };

// What a Sharding says; build one, then intern it (ShardingPool::intern).
struct ShardingData {
  const Mesh* mesh = nullptr;
  absl::InlinedVector<AxisList, 4> dims;  // per tensor dimension: the axes that split it
  AxisSet replicated;                   // explicitly replicated: completion may not use these axes
  AxisSet manual;                       // the value is already per-device along these axes
  AxisSet pending;                      // each device along these holds a partial result
  Combiner combiner = Combiner::kNone;  // of `pending`

  // Axes that split a dimension.
  AxisSet splitting() const {
    AxisSet s;
    for (const AxisList& d : dims) s |= d.set();
    return s;
  }
  // Axes that can not be placed on a dimension any more.
  AxisSet used() const { return splitting() | replicated | manual | pending; }

  friend bool operator==(const ShardingData&, const ShardingData&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ShardingData& s) {
    for (const AxisList& d : s.dims) h = H::combine(std::move(h), d);
    return H::combine(std::move(h), s.mesh, s.dims.size(), s.replicated.bits(), s.manual.bits(),
                      s.pending.bits(), s.combiner);
  }
};

// How one array is laid out over a mesh: an interned, immutable value as cheap as a pointer; equal
// shardings of one pool are the same pointer. A default-constructed Sharding is "none".
//
// The local block of a dimension of size D over n shards has ceil(D/n) elements at interfaces; the
// last shards may be short or empty: 9 over 4 is 3, 3, 3, 0.
class Sharding {
 public:
  Sharding() = default;
  explicit Sharding(const ShardingData* data) : data_(data) {}

  explicit operator bool() const { return data_ != nullptr; }
  const ShardingData& operator*() const { return *data_; }
  const ShardingData* operator->() const { return data_; }
  const void* address() const { return data_; }  // equal for equal shardings of one pool
  friend bool operator==(Sharding, Sharding) = default;
  template <typename H>
  friend H AbslHashValue(H h, Sharding s) {
    return H::combine(std::move(h), s.data_);
  }

  const Mesh& mesh() const { return *data_->mesh; }
  int rank() const { return static_cast<int>(data_->dims.size()); }
  const AxisList& dim(int d) const { return data_->dims[d]; }
  int64_t shards(int d) const { return mesh().product(dim(d)); }
  int64_t local_size(int d, int64_t size) const { return ceil_div(size, shards(d)); }
  DimVector local_dims(absl::Span<const int64_t> dims) const;
  bool is_replicated() const;  // nothing split, pending or manual
  bool splits_evenly(absl::Span<const int64_t> dims) const;

 private:
  const ShardingData* data_ = nullptr;
};

// "[{x}, {}, {y,z}] manual={m} pending=sum{w}": for messages, dumps and tests.
std::string to_string(Sharding s);
std::string to_string(const Mesh& mesh, const AxisList& axes);
std::string to_string(const Mesh& mesh, AxisSet axes);
std::string_view to_string(Combiner c);

// True where every device that holds an element under `fine` also holds it under `coarse`: for each
// dimension the coarse axes are the leading ones of the fine axes. Exact for sizes that divide; for
// uneven sizes blocks may not nest.
bool refines(Sharding fine, Sharding coarse);

// Owner of interned shardings. Not thread-safe; one per Context.
class ShardingPool {
 public:
  ShardingPool();
  ~ShardingPool();
  ShardingPool(ShardingPool&&) noexcept;
  ShardingPool& operator=(ShardingPool&&) noexcept;

  const Mesh* add_mesh(Mesh mesh);  // equal meshes share one address
  Sharding intern(const ShardingData& data);
  Sharding replicated(const Mesh* mesh, int rank);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gspmd
