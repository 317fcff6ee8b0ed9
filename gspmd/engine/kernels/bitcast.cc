// bitcast, bitcast-convert.

#include <cstring>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/matrices.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {
namespace {

// The bits of a stored element, without a narrow type's extension.
uint64_t bits_at(const Buffer& b, int64_t i) {
  const int width = storage_bytes(b.type()), bits = bits_of(b.type());
  uint64_t x = 0;
  std::memcpy(&x, b.raw() + i * width, static_cast<size_t>(width));
  return bits < 64 ? x & ((uint64_t{1} << bits) - 1) : x;
}

void set_bits(ElementType type, uint64_t x, std::byte* to) {
  const int bits = bits_of(type);
  const bool negative = class_of(type) == TypeClass::kSigned && bits < 8 && (x >> (bits - 1)) != 0;
  if (negative) x |= ~uint64_t{0} << bits;
  std::memcpy(to, &x, static_cast<size_t>(storage_bytes(type)));
}

// Element j of k narrow ones holds bits [j * width, (j + 1) * width) of the wide one.
Buffer recast(const Buffer& x, ElementType type, absl::Span<const int64_t> dims) {
  const int from = bits_of(x.type()), to = bits_of(type);
  if (from == to && from >= 8) return x.reinterpreted(type, dims);
  Buffer result(type, dims);
  std::byte* out = result.mutable_raw();
  const int width = storage_bytes(type);
  if (from >= to) {
    const int64_t parts = from / to;
    for (int64_t i = 0; i < result.size(); ++i) {
      uint64_t bits = bits_at(x, i / parts) >> (i % parts * to);
      if (to < 64) bits &= (uint64_t{1} << to) - 1;
      set_bits(type, bits, out + i * width);
    }
    return result;
  }
  const int64_t parts = to / from;
  for (int64_t i = 0; i < result.size(); ++i) {
    uint64_t bits = 0;
    for (int64_t j = 0; j < parts; ++j) bits |= bits_at(x, i * parts + j) << (j * from);
    set_bits(type, bits, out + i * width);
  }
  return result;
}

// Dimensions from major to minor, as a shape lies in memory.
DimVector physical_order(Shape s) {
  DimVector order;
  const Layout* layout = s.layout();
  for (int d = 0; d < s.rank(); ++d) {
    order.push_back(layout == nullptr ? d : layout->minor_to_major[s.rank() - 1 - d]);
  }
  return order;
}

DimVector inverse(const DimVector& order) {
  DimVector out(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) out[order[i]] = static_cast<int64_t>(i);
  return out;
}

}  // namespace

// A wide run's f64 stands for the bits of the operand's own type.
GSPMD_KERNEL(bitcast_convert_kernel) {
  const Buffer x = converted(operands[0], instr.operand(0)->shape.type());
  Buffer result = recast(x, instr.shape.type(), instr.shape.dims());
  return {converted(result, result_type(instr, context))};
}

GSPMD_KERNEL(bitcast_kernel) {
  const Shape from = instr.operand(0)->shape, to = instr.shape;
  const Buffer memory = permuted(converted(operands[0], from.type()), physical_order(from));
  const DimVector order = physical_order(to);
  DimVector sizes;
  for (int64_t d : order) sizes.push_back(to.dim(static_cast<int>(d)));
  Buffer result = permuted(recast(memory, to.type(), sizes), inverse(order));
  return {converted(result, result_type(instr, context))};
}

}  // namespace gspmd
