#include "gspmd/engine/kernels/kernels.h"

#include <fmt/format.h>

#include "gspmd/base/error.h"
#include "gspmd/engine/numeric.h"

namespace gspmd {

Shape leaf_shape(Shape shape, int leaf) {
  Shape found;
  for_each_leaf(shape, [&](Shape s, int index) {
    if (index == leaf) found = s;
  });
  GSPMD_CHECK(found, "no such result");
  return found;
}

ElementType widened(ElementType type) {
  if (is_float(type)) return ElementType::kF64;
  return is_complex(type) ? ElementType::kC128 : type;
}

ElementType result_type(const Instr& instr, const KernelContext& context, int leaf) {
  ElementType type = leaf_shape(instr.shape, leaf).type();
  return context.wide ? widened(type) : type;
}

Buffer new_result(const Instr& instr, const KernelContext& context, int leaf) {
  return Buffer(result_type(instr, context, leaf), leaf_shape(instr.shape, leaf).dims());
}

Buffer converted(const Buffer& from, ElementType to) {
  if (from.type() == to) return from;
  Buffer result(to, from.dims());
  convert_elements(from.type(), from.raw(), from.size(), to, result.mutable_raw());
  return result;
}

DimVector strides_of(absl::Span<const int64_t> dims) {
  DimVector strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

void refuse_to_run(const Instr& instr, const std::string& message, std::string hint) {
  throw Error(fmt::format("{}: {}", describe(instr), message), std::move(hint));
}

}  // namespace gspmd
