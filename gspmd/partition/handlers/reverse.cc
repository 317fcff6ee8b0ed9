// Reverse of a split dimension: whole shards trade places, and each is reversed.
#include "gspmd/partition/handler.h"

namespace gspmd {
namespace {

std::optional<bool> splits_reverse(const Iteration& it, FactorId f, const AxisList&) {
  if (it.rule.factor(f).kind != FactorKind::kPermute) return std::nullopt;
  return true;
}

//   10 elements in blocks of 4 over 3 shards: 0123 4567 89-- -> --98 7654 3210 -> shifted by 2 ->
//   9876 5432 10--
Instr* localize_reverse(LocalOp& op) {
  Instr* x = op.operands[0];
  const Dims& reversed = op.instr().attrs<DimsAttrs>().dimensions;
  for (int64_t d : reversed) {
    int dim = static_cast<int>(d);
    if (op.axes(0, dim).empty()) continue;
    DevicePermutation p;
    p.kind = DevicePermutation::Kind::kReverse;
    p.axes = op.axes(0, dim);
    x = op.e.collective_permute(x, *op.it.mesh, p);
  }
  x = op.e.add(Opcode::kReverse, x->shape, {x}, DimsAttrs{reversed});
  for (int64_t d : reversed) {
    int dim = static_cast<int>(d);
    if (!op.is_uneven(0, dim)) continue;
    int64_t n = op.shards(0, dim), block = x->shape.dim(dim), padded = n * block;
    Emitter::Because because(op.e, Reason::kHalo);
    HaloNeed need{padded, block, n, block, padded - op.it.shape(0).dim(dim), block};
    x = exchange_halo(op.e, x, op.split(0, dim), need, nullptr);
  }
  return x;
}

}  // namespace

extern const Handler kReverseHandler = {.can_split = splits_reverse, .localize = localize_reverse};

}  // namespace gspmd
