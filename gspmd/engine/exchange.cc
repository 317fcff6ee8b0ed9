// What each collective does with the contributions of its group.

#include <algorithm>
#include <cstring>

#include "gspmd/base/check.h"
#include "gspmd/base/error.h"
#include "gspmd/engine/communicator.h"
#include "gspmd/engine/kernels/reducer.h"
#include "gspmd/engine/numeric.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/sharding/device_groups.h"

namespace gspmd {
namespace {

// A row-major array seen as [outer, size, inner] around one dimension; bytes.
struct Rows {
  int64_t outer = 1, size = 1, inner = 1;
};
Rows rows_of(const Buffer& b, int64_t dim) {
  Rows r;
  for (int64_t d = 0; d < b.rank(); ++d)
    (d < dim ? r.outer : d == dim ? r.size : r.inner) *= b.dims()[d];
  r.inner *= storage_bytes(b.type());
  return r;
}

// Part `k` of n along a dimension.
Buffer part(const Buffer& b, int64_t dim, int64_t k, int64_t n) {
  Rows r = rows_of(b, dim);
  DimVector dims = b.dims();
  dims[dim] /= n;
  Buffer out(b.type(), dims);
  int64_t chunk = r.size / n * r.inner;
  std::byte* to = out.mutable_raw();
  for (int64_t o = 0; o < r.outer; ++o)
    std::memcpy(to + o * chunk, b.raw() + o * r.size * r.inner + k * chunk, chunk);
  return out;
}

Buffer concatenate(const std::vector<Buffer>& parts, int64_t dim) {
  DimVector dims = parts[0].dims();
  dims[dim] = 0;
  for (const Buffer& p : parts) dims[dim] += p.dims()[dim];
  Buffer out(parts[0].type(), dims);
  Rows whole = rows_of(out, dim);
  int64_t at = 0;
  std::byte* to = out.mutable_raw();
  for (const Buffer& p : parts) {
    Rows r = rows_of(p, dim);
    int64_t chunk = r.size * r.inner;
    for (int64_t o = 0; o < r.outer; ++o)
      std::memcpy(to + o * whole.size * whole.inner + at, p.raw() + o * chunk, chunk);
    at += chunk;
  }
  return out;
}

class Exchange {
 public:
  Exchange(const Program& program, const Instr& i, absl::Span<const int64_t> members,
           std::vector<Contribution> c, bool wide)
      : program_(program),
        i_(i),
        members_(members),
        c_(std::move(c)),
        n_(static_cast<int64_t>(members.size())) {
    context_.wide = wide;
    context_.call = [this](const Computation& f, absl::Span<const Buffer> scalars) {
      Value v = evaluate(program_, f, {scalars.begin(), scalars.end()}, context_.wide);
      if (!v.is_tuple) return std::vector<Buffer>{v.array};
      std::vector<Buffer> out;
      for (const Value& e : v.elements) out.push_back(e.array);
      return out;
    };
  }

  std::vector<Value> run() {
    switch (i_.opcode) {
      case Opcode::kAllReduce:
      case Opcode::kAllReduceStart:
        return same_for_all([&](size_t k) { return reduced(k); });
      case Opcode::kAllGather:
        return same_for_all([&](size_t k) { return concatenate(all(k), dimension()); });
      case Opcode::kAllGatherStart:
        return gather_start();
      case Opcode::kReduceScatter:
        return for_each([&](int64_t m, size_t k) { return part(reduced(k), dimension(), m, n_); });
      case Opcode::kAllToAll:
        return all_to_all();
      case Opcode::kCollectiveBroadcast:
        return same_for_all([&](size_t k) { return c_[0].operands[k].array; });
      case Opcode::kCollectivePermute:
      case Opcode::kCollectivePermuteStart:
        return permute();
      case Opcode::kAllReduceDone:
      case Opcode::kAllGatherDone:
      case Opcode::kCollectivePermuteDone:
        return done();
      case Opcode::kCustomCall:
        return leave_manual();
      default:
        throw error_at(program_.module(), i_, "this collective can not be run here");
    }
  }

 private:
  int64_t dimension() const { return i_.attrs<CollectiveAttrs>().dimensions[0]; }

  std::vector<Buffer> all(size_t k) const {
    std::vector<Buffer> out;
    for (const Contribution& c : c_) out.push_back(c.operands[k].array);
    return out;
  }

  // Folded in the order of the group, a piece at a time; float sums are kept in f64 and rounded
  // once.
  Buffer reduced(size_t k) {
    const Buffer& first = c_[0].operands[k].array;
    ElementType type = first.type();
    Reducer reducer(*i_.called[0], {&type, 1}, context_);
    Buffer out(type, first.dims());
    int64_t bytes = storage_bytes(type);
    std::vector<std::byte> sum(kChunk * kMaxLaneBytes), next(sum.size());
    void* sums[] = {sum.data()};
    const void* nexts[] = {next.data()};
    std::byte* to = out.mutable_raw();
    for (int64_t at = 0; at < out.size(); at += kChunk) {
      int64_t n = std::min(kChunk, out.size() - at);
      load_as(type, first.raw() + at * bytes, n, reducer.lane(0), sum.data());
      for (size_t m = 1; m < c_.size(); ++m) {
        load_as(type, c_[m].operands[k].array.raw() + at * bytes, n, reducer.lane(0), next.data());
        reducer.fold(sums, nexts, n);
      }
      store_from(type, reducer.lane(0), sum.data(), n, to + at * bytes);
    }
    return out;
  }

  // One result for each operand; the same on every member.
  template <typename F>
  std::vector<Value> same_for_all(F f) {
    std::vector<Value> parts;
    for (size_t k = 0; k < c_[0].operands.size(); ++k) parts.emplace_back(f(k));
    Value v = i_.shape.is_tuple() ? Value::tuple(parts) : parts[0];
    return std::vector<Value>(c_.size(), v);
  }
  template <typename F>
  std::vector<Value> for_each(F f) {
    std::vector<Value> out;
    for (int64_t m = 0; m < n_; ++m) {
      std::vector<Value> parts;
      for (size_t k = 0; k < c_[0].operands.size(); ++k) parts.emplace_back(f(m, k));
      out.push_back(i_.shape.is_tuple() ? Value::tuple(parts) : parts[0]);
    }
    return out;
  }

  std::vector<Value> gather_start() {
    std::vector<Value> out;
    Buffer whole = concatenate(all(0), dimension());
    for (const Contribution& c : c_) out.push_back(Value::tuple({c.operands[0], Value(whole)}));
    return out;
  }

  std::vector<Value> done() {
    std::vector<Value> out;
    for (const Contribution& c : c_) {
      const Value& v = c.operands[0];
      out.push_back(v.is_tuple && i_.opcode != Opcode::kAllReduceDone ? v.elements[1] : v);
    }
    return out;
  }

  std::vector<Value> all_to_all() {
    const auto& a = i_.attrs<CollectiveAttrs>();
    std::vector<Value> out;
    for (int64_t m = 0; m < n_; ++m) {
      std::vector<Buffer> received;
      for (int64_t s = 0; s < n_; ++s) {
        received.push_back(a.dimensions.empty()
                               ? c_[s].operands[m].array
                               : part(c_[s].operands[0].array, dimension(), m, n_));
      }
      if (!a.dimensions.empty()) {
        out.emplace_back(concatenate(received, dimension()));
      } else {
        out.push_back(Value::tuple({received.begin(), received.end()}));
      }
    }
    return out;
  }

  std::vector<Value> permute() {
    const auto& a = i_.attrs<PermuteAttrs>();
    std::vector<std::pair<int64_t, int64_t>> pairs =
        a.permutation != nullptr
            ? expand(*a.permutation, *a.mesh)
            : std::vector<std::pair<int64_t, int64_t>>(a.pairs.begin(), a.pairs.end());
    std::vector<int64_t> source(c_.size(), -1);
    const auto index = [&](int64_t device) {
      return std::find(members_.begin(), members_.end(), device) - members_.begin();
    };
    for (auto [from, to] : pairs) {
      int64_t t = index(to);
      if (t < n_) source[t] = index(from);
    }
    std::vector<Value> out;
    for (int64_t m = 0; m < n_; ++m) {
      std::vector<Value> parts;
      for (const Value& own : c_[m].operands) {
        size_t k = static_cast<size_t>(&own - c_[m].operands.data());
        parts.push_back(source[m] < 0 ? Value(Buffer::zeros(own.array.type(), own.array.dims()))
                                      : c_[source[m]].operands[k]);
      }
      Value v = parts.size() > 1 ? Value::tuple(parts) : parts[0];
      out.push_back(
          i_.opcode == Opcode::kCollectivePermuteStart ? Value::tuple({c_[m].operands[0], v}) : v);
    }
    return out;
  }

  std::vector<Value> leave_manual() {
    const ManualBoundary& b = program_.boundaries.at(&i_);
    std::vector<Buffer> blocks = all(0);
    std::vector<Value> out;
    for (int64_t m = 0; m < n_; ++m) out.emplace_back(whole_of_blocks(blocks, b, members_[m]));
    return out;
  }

  const Program& program_;
  const Instr& i_;
  absl::Span<const int64_t> members_;
  std::vector<Contribution> c_;
  int64_t n_;
  KernelContext context_;
};

// Coordinates of a device along an axis.
int64_t coordinate(const Mesh& mesh, AxisId a, int64_t position) {
  return position / mesh.stride(a) % mesh.size(a);
}

int64_t position_of(const Mesh& mesh, int64_t device) {
  if (!mesh.has_device_table()) return device;
  const auto& table = mesh.device_of_position();
  return std::find(table.begin(), table.end(), device) - table.begin();
}

// Number of the block along dimension d, and how many there are, counting manual axes only.
std::pair<int64_t, int64_t> block_number(const ManualBoundary& b, int d, int64_t position) {
  int64_t k = 0, n = 1;
  for (AxisId a : b.outside.dim(d)) {
    if (!b.manual.contains(a)) continue;
    k = k * b.outside.mesh().size(a) + coordinate(b.outside.mesh(), a, position);
    n *= b.outside.mesh().size(a);
  }
  return {k, n};
}

}  // namespace

std::vector<Value> exchange(const Program& program, const Instr& i,
                            absl::Span<const int64_t> members,
                            std::vector<Contribution> contributions, bool wide) {
  return Exchange(program, i, members, std::move(contributions), wide).run();
}

Buffer block_of_device(const Buffer& whole, const ManualBoundary& b, int64_t device) {
  Buffer block = whole;
  int64_t position = position_of(b.outside.mesh(), device);
  for (int d = 0; d < whole.rank(); ++d) {
    auto [k, n] = block_number(b, d, position);
    if (n > 1) block = part(block, d, k, n);
  }
  return block;
}

Buffer whole_of_blocks(absl::Span<const Buffer> blocks, const ManualBoundary& b, int64_t device) {
  const Mesh& mesh = b.outside.mesh();
  int64_t own = position_of(mesh, device);
  // The devices that differ from this one along manual axes of split dimensions only, dimension by
  // dimension.
  std::vector<Buffer> row;
  std::function<Buffer(int, int64_t)> gather = [&](int d, int64_t position) -> Buffer {
    if (d == b.outside.rank()) {
      int64_t dev = mesh.has_device_table() ? mesh.device_of_position()[position] : position;
      return blocks[dev];
    }
    int64_t n = block_number(b, d, position).second;
    if (n == 1) return gather(d + 1, position);
    std::vector<Buffer> parts;
    for (int64_t k = 0; k < n; ++k) {
      int64_t p = position, rest = k;
      for (int x = b.outside.dim(d).size(); x-- > 0;) {
        AxisId a = b.outside.dim(d)[x];
        if (!b.manual.contains(a)) continue;
        p += (rest % mesh.size(a) - coordinate(mesh, a, p)) * mesh.stride(a);
        rest /= mesh.size(a);
      }
      parts.push_back(gather(d + 1, p));
    }
    return concatenate(parts, d);
  };
  return gather(0, own);
}

}  // namespace gspmd
