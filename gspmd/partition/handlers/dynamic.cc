// dynamic-slice and dynamic-update-slice where a run-time start meets a split dimension. Starts are
// clamped on global sizes first, as on one device; then each shard finds where its block and the
// window overlap.
#include <algorithm>
#include <vector>

#include "gspmd/partition/handler.h"

namespace gspmd {
namespace {

// The window [start, start + size) against this shard's block [offset, offset + block) of one
// dimension.
struct Overlap {
  int dim = 0;
  int64_t size = 0;   // of the window
  int64_t block = 0;  // of the shard
  int64_t piece = 0;  // min(size, block)
  ElementType type = ElementType::kS32;
  Instr* relative = nullptr;  // start - offset
  Instr* clamped = nullptr;   // the piece of the block that is nearest to the window: relative in
                              // [0, block - piece]
};

// The start of dimension d, clamped to [0, full - size] and in a type that holds offsets.
Instr* global_start(LocalOp& op, Instr* start, int64_t full, int64_t size, ElementType type) {
  ElementType own = start->shape.type();
  // Unsigned or 64-bit starts may not fit in `type` before they are clamped; narrow ones may not
  // hold the bound.
  bool clamp_first = bits_of(own) >= bits_of(type);
  if (!clamp_first) start = op.e.convert(start, type);
  ElementType now = start->shape.type();
  start = op.e.clamp(op.e.integer(now, 0), start, op.e.integer(now, full - size));
  return op.e.convert(start, type);
}

Overlap overlap_with(LocalOp& op, Instr* start, int d, int64_t size) {
  Emitter::Because because(op.e, Reason::kIndexRebase);
  int64_t full = op.it.shape(0).dim(d);
  Overlap o;
  o.dim = d;
  o.size = size;
  o.block = op.operands[0]->shape.dim(d);
  o.piece = std::min(size, o.block);
  o.type = Emitter::index_type(2 * full);
  start = global_start(op, start, full, size, o.type);
  o.relative = op.e.binary(Opcode::kSubtract, start,
                           op.e.offset(*op.it.mesh, op.axes(0, d), o.block, o.type));
  o.clamped =
      op.e.clamp(op.e.integer(o.type, 0), o.relative, op.e.integer(o.type, o.block - o.piece));
  return o;
}

// Index operands of one type, as dynamic-slice wants them.
std::vector<Instr*> same_type(Emitter& e, std::vector<Instr*> starts) {
  bool mixed = std::any_of(starts.begin(), starts.end(),
                           [&](Instr* s) { return s->shape.type() != starts[0]->shape.type(); });
  if (!mixed) return starts;
  for (Instr*& s : starts) s = e.convert(s, ElementType::kS64);
  return starts;
}

Instr* slice_at(Emitter& e, Instr* x, std::vector<Instr*> starts, absl::Span<const int64_t> sizes) {
  std::vector<Instr*> operands{x};
  for (Instr* s : same_type(e, std::move(starts))) operands.push_back(s);
  return e.add(Opcode::kDynamicSlice, e.context().with_dims(x->shape, sizes), operands,
               e.context().attrs(DynamicSliceAttrs{e.context().dims(sizes)}));
}

// Which elements j of a piece along the dimension satisfy 0 <= from + j < limit, over `dims`.
Instr* within(Emitter& e, absl::Span<const int64_t> dims, int dim, Instr* from, int64_t limit) {
  ElementType type = from->shape.type();
  Instr* at = e.binary(Opcode::kAdd, e.iota(type, dims, dim), e.broadcast(from, dims));
  Instr* low = e.compare(Direction::kGe, at, e.broadcast(e.integer(type, 0), dims));
  return e.binary(Opcode::kAnd, low,
                  e.compare(Direction::kLt, at, e.broadcast(e.integer(type, limit), dims)));
}

// x[from : from + size] along dim where it exists (the rest is zero): `from` in [-size, x.dim].
Instr* shifted(Emitter& e, Instr* x, int dim, Instr* from, int64_t size) {
  ElementType type = from->shape.type();
  x = e.pad(x, dim, size, size, 0, e.zero(x->shape.type()));
  from = e.binary(Opcode::kAdd, from, e.integer(type, size));
  return e.dynamic_slice(x, dim, from, size);
}

std::optional<bool> splits_dynamic_slice(const Iteration& it, FactorId f, const AxisList&) {
  const Factor& factor = it.rule.factor(f);
  if (factor.kind != FactorKind::kIndexed) return std::nullopt;
  return factor.combiner != Combiner::kNone;
}

// Split along a dimension that is indexed: every shard gives what it holds of the window and zero
// elsewhere; the sum of all is the window. Costs the window, not the dimension.
Instr* localize_dynamic_slice(LocalOp& op) {
  int rank = op.it.shape(0).rank();
  DimVector sizes = op.local_result_dims();
  std::vector<Instr*> starts(op.operands.begin() + 1, op.operands.end());
  std::vector<Overlap> overlaps;
  for (int d = 0; d < rank; ++d) {
    int64_t size = op.instr().shape.dim(d);
    bool whole = size == op.it.shape(0).dim(d);
    if (whole) starts[d] = op.e.integer(starts[d]->shape.type(), 0);
    if (whole || op.axes(0, d).empty()) continue;
    overlaps.push_back(overlap_with(op, starts[d], d, size));
    starts[d] = overlaps.back().clamped;
    sizes[d] = overlaps.back().piece;
  }
  Instr* x = slice_at(op.e, op.operands[0], starts, sizes);
  Emitter::Because because(op.e, Reason::kMask);
  for (const Overlap& o : overlaps) {
    Instr* ahead = op.e.binary(Opcode::kSubtract, o.relative,
                               o.clamped);  // where the window starts in the piece
    if (o.size > 1) {
      Instr* from = op.e.clamp(op.e.integer(o.type, -o.size), ahead, op.e.integer(o.type, o.piece));
      x = shifted(op.e, x, o.dim, from, o.size);
      continue;
    }
    Instr* hit = op.e.compare(Direction::kEq, ahead, op.e.integer(o.type, 0));
    x = op.e.select(op.e.broadcast(hit, x->shape.dims()), x,
                    op.e.broadcast(op.e.zero(x->shape.type()), x->shape.dims()));
  }
  return x;
}

std::optional<bool> splits_update(const Iteration& it, FactorId f, const AxisList&) {
  return it.rule.factor(f).kind == FactorKind::kParallel;
}

// Each shard writes the part of the update that falls into its block: where nothing does, it writes
// back what was there.
Instr* localize_dynamic_update_slice(LocalOp& op) {
  int rank = op.it.shape(0).rank();
  Instr* x = op.operands[0];
  Instr* update = op.operands[1];
  std::vector<Instr*> starts(op.operands.begin() + 2, op.operands.end());
  std::vector<Overlap> overlaps;
  DimVector sizes(update->shape.dims().begin(), update->shape.dims().end());
  for (int d = 0; d < rank; ++d) {
    int64_t size = op.it.shape(1).dim(d);
    bool whole = size == op.it.shape(0).dim(d);
    if (whole) starts[d] = op.e.integer(starts[d]->shape.type(), 0);
    if (whole || op.axes(0, d).empty()) continue;
    overlaps.push_back(overlap_with(op, starts[d], d, size));
    starts[d] = overlaps.back().clamped;
    sizes[d] = overlaps.back().piece;
  }
  starts = same_type(op.e, starts);
  if (!overlaps.empty()) {
    Emitter::Because because(op.e, Reason::kMask);
    Instr* mask = nullptr;
    for (const Overlap& o : overlaps) {
      Instr* from = op.e.binary(Opcode::kSubtract, o.clamped, o.relative);  // in the update
      Instr* near = op.e.clamp(op.e.integer(o.type, -o.piece), from, op.e.integer(o.type, o.size));
      if (o.size > 1) update = shifted(op.e, update, o.dim, near, o.piece);
      Instr* hit = within(op.e, sizes, o.dim, from, o.size);
      mask = mask == nullptr ? hit : op.e.binary(Opcode::kAnd, mask, hit);
    }
    update = op.e.select(mask, update, slice_at(op.e, x, starts, sizes));
  }
  std::vector<Instr*> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return op.e.add(Opcode::kDynamicUpdateSlice, x->shape, operands);
}

}  // namespace

extern const Handler kDynamicSliceHandler = {.can_split = splits_dynamic_slice,
                                             .localize = localize_dynamic_slice};
extern const Handler kDynamicUpdateSliceHandler = {.can_split = splits_update,
                                                   .localize = localize_dynamic_update_slice};

}  // namespace gspmd
