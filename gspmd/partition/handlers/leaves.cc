// Values that each device makes for itself: iota, constants.
#include <vector>

#include "gspmd/partition/handler.h"

namespace gspmd {
namespace {

// iota over [0, b) plus the offset of this device's block. In 64 bits where the global size needs
// it.
Instr* localize_iota(LocalOp& op) {
  int64_t d = op.instr().attrs<IotaAttrs>().dimension;
  DimVector dims = op.local_result_dims();
  ElementType type = op.instr().shape.type();
  Instr* local = op.e.add(Opcode::kIota, op.local_result_shape(), {}, IotaAttrs{d});
  int dim = static_cast<int>(d);
  int r = op.rule().num_operands();
  if (op.axes(r, dim).empty()) return local;
  Emitter::Because because(op.e, Reason::kOffset);
  ElementType index = Emitter::index_type(op.instr().shape.dim(dim));
  // Types that can not hold every index exactly wrap or round once, after the addition, as on one
  // device.
  bool exact = is_integer(type);
  Instr* offset = op.e.offset(*op.it.mesh, op.axes(r, dim), dims[dim], index);
  if (exact) {
    return op.e.binary(Opcode::kAdd, local, op.e.broadcast(op.e.convert(offset, type), dims));
  }
  Instr* whole = op.e.iota(index, dims, d);
  whole = op.e.binary(Opcode::kAdd, whole, op.e.broadcast(offset, dims));
  if (is_complex(type)) {
    ElementType part = type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
    Instr* real = op.e.convert(whole, part);
    return op.e.add(Opcode::kComplex, op.local_result_shape(),
                    {real, op.e.broadcast(op.e.zero(part), dims)});
  }
  return op.e.convert(whole, type);
}

// A splat is made small; other constants stay whole and each device cuts its block out.
Instr* localize_constant(LocalOp& op) {
  const Literal& literal = *op.instr().attrs<ConstantAttrs>().literal;
  DimVector dims = op.local_result_dims();
  if (literal.splat) {
    Literal small = literal;
    small.shape = op.local_result_shape();
    return op.e.scalar(small);
  }
  Instr* x = op.e.scalar(literal);
  Emitter::Because because(op.e, Reason::kOffset);
  for (int d = 0; d < op.instr().shape.rank(); ++d) {
    const AxisList& axes = op.axes(0, d);
    if (axes.empty()) continue;
    int64_t padded = dims[d] * op.it.mesh->product(axes);
    x = op.e.pad(x, d, 0, padded - x->shape.dim(d), 0, op.e.zero(x->shape.type()));
    x = op.e.dynamic_slice(
        x, d, op.e.offset(*op.it.mesh, axes, dims[d], Emitter::index_type(padded)), dims[d]);
  }
  return x;
}

std::optional<bool> always(const Iteration&, FactorId, const AxisList&) { return true; }

}  // namespace

extern const Handler kIotaHandler = {.can_split = always, .localize = localize_iota};
extern const Handler kConstantHandler = {.can_split = always, .localize = localize_constant};

}  // namespace gspmd
