// select-and-scatter over split windows (the gradient of max-pooling): every shard redoes the
// windows that reach into its block of the result, with the elements and sources that they need,
// and keeps its own block.
#include <algorithm>
#include <vector>

#include "gspmd/partition/window.h"

namespace gspmd {
namespace {

// One split dimension. Result block i is [i*block, (i+1)*block); the windows that touch it are
// positions [first, first + count) with first = i*alpha + beta; they cover elements [first*stride -
// low, ...).
struct ScatteredDim {
  int dim = 0;
  SplitDim split;
  HaloNeed sources, elements;
  int64_t own = 0;  // where the block starts in the covered elements
  int64_t block = 0;
  WindowDim local;
};

// Needs the block to be a whole number of strides, so that every shard's windows lie alike.
std::optional<ScatteredDim> plan(const Iteration& it, FactorId f, const AxisList& axes) {
  const WindowDim& w = *it.rule.factor(f).window;
  ScatteredDim s;
  s.dim = it.rule.dim_of(0, f);
  int64_t n = it.mesh->product(axes), size = it.shape(0).dim(s.dim),
          positions = it.shape(1).dim(s.dim);
  s.block = ceil_div(size, n);
  if (s.block % w.stride != 0 || w.size < w.stride || w.base_dilation != 1 ||
      w.window_dilation != 1)
    return std::nullopt;
  s.split = SplitDim{s.dim, it.mesh, axes};
  int64_t alpha = s.block / w.stride;
  int64_t beta = floor_div(w.pad_low - (w.size - 1) + w.stride - 1,
                           w.stride);  // first position that reaches element 0
  int64_t last =
      floor_div(s.block - 1 + w.pad_low, w.stride);  // last one that reaches element block-1
  int64_t count = last - beta + 1;
  s.sources = HaloNeed{positions, ceil_div(positions, n), n, alpha, beta, count};
  int64_t start = beta * w.stride - w.pad_low;
  s.elements = HaloNeed{size, s.block, n, s.block, start, (count - 1) * w.stride + w.size};
  s.own = -start;
  s.local = w;
  s.local.pad_low = s.local.pad_high = 0;
  return s;
}

// What is selected never lies in made-up elements: they must lose against every other.
std::optional<Combiner> selection(const Instr& i) {
  const Instr& root = *i.called[0]->root();
  if (root.opcode != Opcode::kCompare || root.operand(0)->opcode != Opcode::kParameter ||
      root.operand(1)->opcode != Opcode::kParameter || root.operand(0) == root.operand(1)) {
    return std::nullopt;
  }
  bool in_order = root.operand(0)->attrs<ParameterAttrs>().number == 0;
  Direction d = root.attrs<CompareAttrs>().direction;
  bool greater = d == Direction::kGe || d == Direction::kGt,
       less = d == Direction::kLe || d == Direction::kLt;
  if (!greater && !less) return std::nullopt;
  return greater == in_order ? Combiner::kMax : Combiner::kMin;
}

std::optional<bool> splits(const Iteration& it, FactorId f, const AxisList& axes) {
  if (it.rule.factor(f).kind != FactorKind::kWindow) return std::nullopt;
  if (combiner_of(*it.instr.called[1]) != Combiner::kSum || !selection(it.instr)) return false;
  return plan(it, f, axes).has_value();
}

Instr* localize(LocalOp& op) {
  std::vector<ScatteredDim> dims;
  for (int f = 0; f < op.rule().num_factors(); ++f) {
    FactorId id = static_cast<FactorId>(f);
    if (op.rule().factor(id).kind == FactorKind::kWindow && !op.factors[f].empty())
      dims.push_back(*plan(op.it, id, op.factors[f]));
  }
  if (dims.empty()) return localize_by_rule(op);
  ElementType type = op.operands[0]->shape.type();
  Emitter::Because because(op.e, Reason::kHalo);
  DimVector sizes = op.local_result_dims();
  Window window = op.instr().attrs<WindowAttrs>().window;
  absl::Span<WindowDim> local = op.e.context().arena().array<WindowDim>(window.size());
  std::copy(window.begin(), window.end(), local.begin());
  for (const ScatteredDim& s : dims) {
    op.operands[0] = exchange_halo(op.e, op.operands[0], s.split, s.elements,
                                   op.e.identity(*selection(op.instr()), type));
    op.operands[1] = exchange_halo(op.e, op.operands[1], s.split, s.sources, op.e.zero(type));
    sizes[s.dim] = s.elements.length;
    local[s.dim] = s.local;
  }
  Instr* init = op.operands[2];
  op.operands[2] = op.e.zero(type);
  Instr* r = op.e.add(Opcode::kSelectAndScatter, op.e.context().with_dims(op.instr().shape, sizes),
                      op.operands, op.e.context().attrs(WindowAttrs{local}));
  r->called = op.e.module().computation_array(op.instr().called);
  for (const ScatteredDim& s : dims) r = op.e.slice(r, s.dim, s.own, s.own + s.block);
  bool neutral =
      op.instr().operand(2)->opcode == Opcode::kConstant &&
      is_identity(*op.instr().operand(2)->attrs<ConstantAttrs>().literal, Combiner::kSum);
  return neutral ? r : op.e.binary(Opcode::kAdd, r, op.e.broadcast(init, r->shape.dims()));
}

}  // namespace

extern const Handler kSelectAndScatterHandler = {.can_split = splits, .localize = localize};

}  // namespace gspmd
