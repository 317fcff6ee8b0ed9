// Concatenation along a split dimension: each shard fetches from every operand what falls into its
// block of the result.
#include <vector>

#include "gspmd/partition/handler.h"

namespace gspmd {
namespace {

// More pieces are cheaper gathered.
constexpr int kMostOperands = 16;

std::optional<bool> splits_concatenate(const Iteration& it, FactorId f, const AxisList&) {
  if (it.rule.factor(f).kind != FactorKind::kWindow) return std::nullopt;
  return it.instr.num_operands() <= kMostOperands;
}

//   [0..5] ++ [6..9] over 2 shards: shard 0 has 0..4, shard 1 has 5..9: 5 from operand 0, 6..9 from
//   operand 1
Instr* localize_concatenate(LocalOp& op) {
  int dim = static_cast<int>(op.instr().attrs<DimsAttrs>().dimensions[0]);
  int result = op.rule().num_operands();
  const AxisList& axes = op.axes(result, dim);
  if (axes.empty()) return localize_by_rule(op);
  int64_t block = op.local_result_dims()[dim], n = op.it.mesh->product(axes), start = 0;
  SplitDim split{dim, op.it.mesh, axes};
  ElementType type = Emitter::index_type(2 * n * block);
  Instr* at = nullptr;  // global positions of the block
  Instr* joined = nullptr;
  for (int k = 0; k < result; ++k) {
    int64_t size = op.it.shape(k).dim(dim);
    if (size == 0) continue;
    Emitter::Because because(op.e, Reason::kHalo);
    HaloNeed need{size, op.operands[k]->shape.dim(dim), n, block, -start, block};
    Instr* piece = exchange_halo(op.e, op.operands[k], split, need, nullptr);
    if (joined == nullptr) {
      joined = piece;
    } else {
      if (at == nullptr) {
        Instr* first = op.e.broadcast(affine(op.e, split, block, 0, type), {block});
        at = op.e.binary(Opcode::kAdd, op.e.iota(type, {block}, 0), first);
      }
      Instr* from_here =
          op.e.compare(Direction::kGe, at, op.e.broadcast(op.e.integer(type, start), {block}));
      Instr* predicate = piece->shape.rank() == 1
                             ? from_here
                             : op.e.broadcast(from_here, piece->shape.dims(), {dim});
      joined = op.e.select(predicate, piece, joined);
    }
    start += size;
  }
  return joined;
}

}  // namespace

extern const Handler kConcatenateHandler = {.can_split = splits_concatenate,
                                            .localize = localize_concatenate};

}  // namespace gspmd
