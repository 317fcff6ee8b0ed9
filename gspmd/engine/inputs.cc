#include "gspmd/engine/inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "gspmd/base/check.h"
#include "gspmd/engine/input_wishes.h"
#include "gspmd/engine/numeric.h"
#include "gspmd/engine/wide.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

// A counter-based generator: element i of leaf k is a hash of (seed, k, i).
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// The unit of a float array's values, which are -8 to 8 units: 1/8, and for matrices 1/2 less a
// half for each factor of 4 in the longest dimension, so that a product's sums over many elements
// stay near 1 and nothing that follows (a softmax, a norm) blows rounding up.
double unit_of(Shape s) {
  if (s.rank() < 2) return 0.125;
  double unit = 0.5;
  int64_t longest = *std::max_element(s.dims().begin(), s.dims().end());
  for (; longest >= 4; longest /= 4) unit /= 2;
  return unit;
}

// Calls fill(first, n, numbers) for a piece of `parts` doubles an element at a time and stores it
// in the array's type.
template <typename F>
void store_pieces(ElementType from, int parts, Buffer* b, F fill) {
  std::byte* to = b->mutable_raw();
  int64_t bytes = storage_bytes(b->type());
  double numbers[2 * kChunk];
  for (int64_t at = 0; at < b->size(); at += kChunk) {
    int64_t n = std::min(kChunk, b->size() - at);
    fill(at, n * parts, numbers);
    convert_elements(from, reinterpret_cast<const std::byte*>(numbers), n, b->type(),
                     to + at * bytes);
  }
}

void make_floats(Shape s, uint64_t seed, const Wish& wish, double scale, Buffer* b) {
  int parts = is_complex(s.type()) ? 2 : 1;
  double unit = unit_of(s) * scale;
  store_pieces(wide_type(s.type()), parts, b, [&](int64_t at, int64_t n, double* numbers) {
    for (int64_t k = 0; k < n; ++k) {
      uint64_t r = mix(seed + static_cast<uint64_t>(at * parts + k));
      double steps =
          wish.positive ? 1 + static_cast<double>(r % 8) : static_cast<double>(r % 17) - 8;
      numbers[k] = unit * steps;
    }
  });
}

Buffer make_leaf(Shape s, uint64_t seed, const Wish& wish, double scale) {
  Buffer b(s.type(), s.dims());
  if (is_float(s.type()) || is_complex(s.type())) {
    make_floats(s, seed, wish, scale, &b);
    return b;
  }
  std::byte* to = b.mutable_raw();
  int64_t range = s.type() == ElementType::kPred ? 2 : wish.bound == Wish::kNone ? 4 : wish.bound;
  for (int64_t k = 0; k < b.size(); ++k) {
    int64_t v = static_cast<int64_t>(mix(seed + static_cast<uint64_t>(k)) %
                                     static_cast<uint64_t>(std::max<int64_t>(range, 1)));
    convert_elements(ElementType::kS64, reinterpret_cast<const std::byte*>(&v), 1, s.type(),
                     to + k * storage_bytes(s.type()));
  }
  return b;
}

// Bytes of a value that must not be seen.
void poison(Buffer* b) {
  if (is_float(b->type()) || is_complex(b->type())) {
    store_pieces(wide_type(b->type()), is_complex(b->type()) ? 2 : 1, b,
                 [](int64_t, int64_t n, double* numbers) {
                   std::fill(numbers, numbers + n, std::numeric_limits<double>::quiet_NaN());
                 });
    return;
  }
  int bits = std::min(64, bits_of(b->type()));
  bool is_signed = class_of(b->type()) == TypeClass::kSigned;
  uint64_t highest =
      b->type() == ElementType::kPred ? 1 : ~uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
  size_t bytes = static_cast<size_t>(storage_bytes(b->type()));
  std::byte* to = b->mutable_raw();
  for (int64_t k = 0; k < b->size(); ++k)
    std::memcpy(to + static_cast<size_t>(k) * bytes, &highest, bytes);
}

// The block of the shard at a position of the mesh, dimension by dimension.
struct Block {
  DimVector start, size;  // in the whole; size 0 where the shard is empty
};

Block block_at(const Sharding& s, int64_t position, absl::Span<const int64_t> dims) {
  Block b;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    int64_t k = 0;
    for (AxisId a : s.dim(d))
      k = k * s.mesh().size(a) + position / s.mesh().stride(a) % s.mesh().size(a);
    int64_t block = s.local_size(d, dims[d]);
    int64_t start = std::min(k * block, dims[d]);
    b.start.push_back(start);
    b.size.push_back(std::min((k + 1) * block, dims[d]) - start);
  }
  return b;
}

// Copies the elements of a box between a whole array and a block whose first element is the box's
// first.
void copy_box(const Block& box, absl::Span<const int64_t> whole_dims,
              absl::Span<const int64_t> block_dims, int64_t bytes, std::byte* whole,
              std::byte* block, bool to_block) {
  int rank = static_cast<int>(whole_dims.size());
  int64_t run = rank == 0 ? 1 : box.size[rank - 1];
  if (std::any_of(box.size.begin(), box.size.end(), [](int64_t n) { return n == 0; })) return;
  DimVector at(rank, 0);
  while (true) {
    int64_t w = 0, b = 0;
    for (int d = 0; d < rank; ++d) {
      w = w * whole_dims[d] + box.start[d] + at[d];
      b = b * block_dims[d] + at[d];
    }
    std::byte *p = whole + w * bytes, *q = block + b * bytes;
    std::memcpy(to_block ? q : p, to_block ? p : q, static_cast<size_t>(run * bytes));
    int d = rank - 2;
    while (d >= 0 && ++at[d] == box.size[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

int64_t device_at(const Mesh& mesh, int64_t position) {
  return mesh.has_device_table() ? mesh.device_of_position()[position] : position;
}

bool same_box(const Buffer& whole, const Buffer& block, const Block& box) {
  Buffer other(block.type(), block.dims());
  std::memcpy(other.mutable_raw(), block.raw(), static_cast<size_t>(block.bytes()));
  copy_box(box, whole.dims(), block.dims(), storage_bytes(whole.type()),
           const_cast<std::byte*>(whole.raw()), other.mutable_raw(), true);
  return std::memcmp(other.raw(), block.raw(), static_cast<size_t>(block.bytes())) == 0;
}

}  // namespace

std::vector<Buffer> make_inputs(const Module& module, uint64_t seed, double scale) {
  InputWishes wishes(module);
  std::vector<Buffer> out;
  for (const Instr* p : module.entry()->params()) {
    bool tuple = p->shape.is_tuple();
    for_each_leaf(p->shape, [&](Shape s, int k) {
      out.push_back(
          make_leaf(s, mix(seed * 1000003 + out.size()), wishes.of(*p, tuple ? k : -1), scale));
    });
  }
  return out;
}

std::vector<Buffer> blocks_of(const Buffer& whole, Sharding s) {
  const Mesh& mesh = s.mesh();
  DimVector local = s.local_dims(whole.dims());
  std::vector<Buffer> out(static_cast<size_t>(mesh.num_devices()));
  bool uneven = !s.splits_evenly(whole.dims());
  for (int64_t p = 0; p < mesh.num_devices(); ++p) {
    Buffer& b = out[static_cast<size_t>(device_at(mesh, p))];
    if (s->splitting().empty()) {
      b = whole;
      continue;
    }
    b = Buffer(whole.type(), local);
    if (uneven) poison(&b);
    Block box = block_at(s, p, whole.dims());
    copy_box(box, whole.dims(), local, storage_bytes(whole.type()),
             const_cast<std::byte*>(whole.raw()), b.mutable_raw(), true);
  }
  return out;
}

Buffer assemble(absl::Span<const Buffer> blocks, Sharding s, absl::Span<const int64_t> dims,
                int64_t* differing) {
  const Mesh& mesh = s.mesh();
  Buffer whole(blocks[0].type(), dims);
  *differing = -1;
  absl::InlinedVector<AxisId, 8> split;
  AxisSet splitting = s->splitting();
  for (int64_t p = 0; p < mesh.num_devices(); ++p) {
    bool first = true;  // the first replica of its tile
    for (int a = 0; a < mesh.num_axes(); ++a) {
      AxisId axis = static_cast<AxisId>(a);
      first &= splitting.contains(axis) || p / mesh.stride(axis) % mesh.size(axis) == 0;
    }
    const Buffer& block = blocks[static_cast<size_t>(device_at(mesh, p))];
    Block box = block_at(s, p, dims);
    if (first) {
      copy_box(box, dims, block.dims(), storage_bytes(block.type()), whole.mutable_raw(),
               const_cast<std::byte*>(block.raw()), false);
    }
  }
  for (int64_t p = 0; p < mesh.num_devices() && *differing < 0; ++p) {
    int64_t device = device_at(mesh, p);
    if (!same_box(whole, blocks[static_cast<size_t>(device)], block_at(s, p, dims)))
      *differing = device;
  }
  return whole;
}

}  // namespace gspmd
