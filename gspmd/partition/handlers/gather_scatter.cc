// gather and scatter where indexed dimensions of the operand are split: indices are made local, and
// what falls into other shards is masked (gather) or dropped (scatter does that by itself).
#include <algorithm>
#include <vector>

#include "gspmd/partition/handler.h"

namespace gspmd {
namespace {

// The index vectors taken apart: one array of the batch shape for each indexed operand dimension.
std::vector<Instr*> columns(Emitter& e, Instr* indices, int64_t vector_dim, size_t n) {
  if (vector_dim == indices->shape.rank()) return {indices};
  std::vector<Instr*> out;
  for (size_t k = 0; k < n; ++k) {
    Instr* column = e.slice(indices, static_cast<int>(vector_dim), static_cast<int64_t>(k),
                            static_cast<int64_t>(k) + 1);
    DimVector dims(column->shape.dims().begin(), column->shape.dims().end());
    dims.erase(dims.begin() + vector_dim);
    out.push_back(e.reshape(column, dims));
  }
  return out;
}

Instr* joined(Emitter& e, std::vector<Instr*> columns, int64_t vector_dim, int rank) {
  if (vector_dim == rank) return columns[0];
  DimVector dims(columns[0]->shape.dims().begin(), columns[0]->shape.dims().end());
  dims.insert(dims.begin() + vector_dim, 1);
  for (Instr*& c : columns) c = e.reshape(c, dims);
  if (columns.size() == 1) return columns[0];
  dims[vector_dim] = static_cast<int64_t>(columns.size());
  return e.add(Opcode::kConcatenate, e.context().array(columns[0]->shape.type(), dims), columns,
               e.context().attrs(DimsAttrs{e.context().dims({vector_dim})}));
}

// Types whose range may not hold offsets, or that are unsigned, are widened.
ElementType rebased_type(ElementType own, int64_t size) {
  if (own == ElementType::kS64 || own == ElementType::kU64 || own == ElementType::kU32)
    return ElementType::kS64;
  return Emitter::index_type(2 * size);
}

std::optional<bool> splits_gather(const Iteration& it, FactorId f, const AxisList&) {
  const Factor& factor = it.rule.factor(f);
  if (factor.kind != FactorKind::kIndexed) return std::nullopt;
  return factor.combiner != Combiner::kNone;
}

// Indices clamped globally, less this shard's offset; *valid: those that fall into it.
Instr* rebase(LocalOp& op, Instr* column, int d, int64_t slice_size, Instr** valid) {
  int64_t full = op.it.shape(0).dim(d), block = op.operands[0]->shape.dim(d);
  ElementType type = rebased_type(column->shape.type(), full);
  absl::Span<const int64_t> dims = column->shape.dims();
  const auto at = [&](int64_t v, ElementType t) {
    return op.e.broadcast(op.e.integer(t, v), dims);
  };
  if (column->shape.type() == ElementType::kU64)
    column = op.e.binary(Opcode::kMinimum, column, at(full - slice_size, ElementType::kU64));
  column = op.e.convert(column, type);
  column = op.e.clamp(at(0, type), column, at(full - slice_size, type));
  Instr* offset = op.e.offset(*op.it.mesh, op.axes(0, d), block, type);
  column = op.e.binary(Opcode::kSubtract, column, op.e.broadcast(offset, dims));
  Instr* inside = op.e.binary(Opcode::kAnd, op.e.compare(Direction::kGe, column, at(0, type)),
                              op.e.compare(Direction::kLt, column, at(block, type)));
  *valid = *valid == nullptr ? inside : op.e.binary(Opcode::kAnd, *valid, inside);
  return column;
}

Instr* localize_gather(LocalOp& op) {
  const auto& a = op.instr().attrs<GatherAttrs>();
  Instr* valid = nullptr;
  const Dims& map = a.start_index_map;
  // A slice that is all of a dimension starts at 0 whatever the index; one element of one, though,
  // is on the first shard only.
  const auto is_indexed = [&](int64_t d) {
    return !op.axes(0, static_cast<int>(d)).empty() &&
           (a.collapsed_slice_dims.contains(d) ||
            a.slice_sizes[d] != op.it.shape(0).dim(static_cast<int>(d)));
  };
  if (!std::any_of(map.begin(), map.end(), is_indexed)) return localize_by_rule(op);
  {
    Emitter::Because because(op.e, Reason::kIndexRebase);
    int rank = op.operands[1]->shape.rank();
    std::vector<Instr*> parts = columns(op.e, op.operands[1], a.index_vector_dim, map.size());
    ElementType widest = ElementType::kS32;
    for (size_t k = 0; k < map.size(); ++k) {
      int d = static_cast<int>(map[k]);
      if (is_indexed(d)) parts[k] = rebase(op, parts[k], d, a.slice_sizes[d], &valid);
      if (bits_of(parts[k]->shape.type()) > 32 || parts[k]->shape.type() == ElementType::kU32)
        widest = ElementType::kS64;
    }
    for (Instr*& p : parts) p = op.e.convert(p, widest);
    op.operands[1] = joined(op.e, parts, a.index_vector_dim, rank);
  }
  Instr* r = localize_by_rule(op);
  Emitter::Because because(op.e, Reason::kMask);
  DimVector batch_dims;
  for (int64_t d = 0; d < r->shape.rank(); ++d) {
    if (!a.offset_dims.contains(d)) batch_dims.push_back(d);
  }
  Instr* mask = op.e.broadcast(valid, r->shape.dims(), batch_dims);
  return op.e.select(mask, r, op.e.broadcast(op.e.zero(r->shape.type()), r->shape.dims()));
}

std::optional<bool> splits_scatter(const Iteration& it, FactorId f, const AxisList&) {
  const Factor& factor = it.rule.factor(f);
  if (factor.kind == FactorKind::kReduce) return factor.combiner != Combiner::kNone;
  if (factor.kind != FactorKind::kIndexed) return std::nullopt;
  const auto& a = it.instr.attrs<ScatterAttrs>();
  int d = it.rule.dim_of(0, f);
  return d >= 0 &&
         a.inserted_window_dims.contains(d);  // windows of one element never straddle shards
}

Instr* localize_scatter(LocalOp& op) {
  ScatterAttrs a = op.instr().attrs<ScatterAttrs>();
  int n = op.instr().num_operands() / 2;
  Combiner combiner = Combiner::kNone;
  AxisSet reduced = op.it.reduced(op.factors, &combiner);
  if (!reduced.empty()) {
    for (int k = 0; k < n; ++k) op.operands[k] = once(op, op.operands[k], combiner, reduced);
  }
  bool rebased = false;
  std::vector<Instr*> parts;
  const Dims& map = a.scatter_dims_to_operand_dims;
  for (size_t k = 0; k < map.size(); ++k) {
    int d = static_cast<int>(map[k]);
    if (op.axes(0, d).empty() || !a.inserted_window_dims.contains(d)) continue;
    Emitter::Because because(op.e, Reason::kIndexRebase);
    if (!rebased) {
      parts = columns(op.e, op.operands[n], a.index_vector_dim, map.size());
      ElementType type = rebased_type(parts[0]->shape.type(), op.it.shape(0).dim(d));
      for (Instr*& p : parts) p = op.e.convert(p, type);
      rebased = true;
    }
    ElementType type = parts[k]->shape.type();
    Instr* offset = op.e.offset(*op.it.mesh, op.axes(0, d), op.operands[0]->shape.dim(d), type);
    parts[k] =
        op.e.binary(Opcode::kSubtract, parts[k], op.e.broadcast(offset, parts[k]->shape.dims()));
  }
  if (rebased)
    op.operands[n] = joined(op.e, parts, a.index_vector_dim, op.operands[n]->shape.rank());
  Instr* r = localize_by_rule(op);
  if (rebased ||
      !reduced.empty()) {  // promises about global indices do not hold for rebased or masked ones
    a.indices_are_sorted = a.unique_indices = false;
    r->attributes = op.e.context().attrs(a);
  }
  return r;
}

}  // namespace

extern const Handler kGatherHandler = {.can_split = splits_gather, .localize = localize_gather};
extern const Handler kScatterHandler = {.can_split = splits_scatter, .localize = localize_scatter};

}  // namespace gspmd
