#include "gspmd/pass/explicit_batch.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

bool is_zero(const Instr& i) {
  if (i.opcode == Opcode::kBroadcast || i.opcode == Opcode::kReshape) return is_zero(*i.operand(0));
  if (i.opcode != Opcode::kConstant) return false;
  const Literal& l = *i.attrs<ConstantAttrs>().literal;
  bool one = l.splat || (l.shape.is_array() && l.num_elements() == 1);
  return one && !l.elided && integer_at(l, 0) == 0;
}

// The dimension along which the value is 0, 1, 2, ..., and the same along all others; -1: none.
int counts_along(const Instr& i, int depth = 8) {
  if (depth == 0 || !i.shape.is_array() || !is_integer(i.shape.type())) return -1;
  switch (i.opcode) {
    case Opcode::kIota:
      return static_cast<int>(i.attrs<IotaAttrs>().dimension);
    case Opcode::kConvert:
    case Opcode::kCopy:
      return counts_along(*i.operand(0), depth - 1);
    case Opcode::kBroadcast: {
      int d = counts_along(*i.operand(0), depth - 1);
      return d < 0 ? -1 : static_cast<int>(i.attrs<DimsAttrs>().dimensions[d]);
    }
    case Opcode::kReshape: {  // that only adds or drops dimensions of size 1
      Shape from = i.operand(0)->shape;
      int d = counts_along(*i.operand(0), depth - 1), found = -1, at = 0;
      if (d < 0) return -1;
      for (int k = 0; k < from.rank(); ++k) {
        if (from.dim(k) == 1 && k != d) continue;
        while (at < i.shape.rank() && i.shape.dim(at) == 1 && from.dim(k) != 1) ++at;
        if (at == i.shape.rank() || i.shape.dim(at) != from.dim(k)) return -1;
        if (k == d) found = at;
        ++at;
      }
      return found;
    }
    case Opcode::kSelect: {  // x < 0 ? ... : x, as negative indices are wrapped
      const Instr &p = *i.operand(0), &x = *i.operand(2);
      bool wraps = p.opcode == Opcode::kCompare &&
                   p.attrs<CompareAttrs>().direction == Direction::kLt && is_zero(*p.operand(1));
      int d = counts_along(x, depth - 1);
      return wraps && d >= 0 && counts_along(*p.operand(0), depth - 1) == d ? d : -1;
    }
    default:
      return -1;
  }
}

// The index vectors of a gather or scatter, by component: pieces of a concatenation.
struct Piece {
  Instr* value;
  int64_t first;  // component
};

class ExplicitBatch {
 public:
  ExplicitBatch(Module& m, Computation& c) : m_(m), c_(c) {}

  void run() {
    std::vector<Instr*> before = c_.instrs();
    order_.reserve(before.size());
    bool any = false;
    for (Instr* i : before) {
      if (i->opcode == Opcode::kGather) any |= gather(i);
      if (i->opcode == Opcode::kScatter) any |= scatter(i);
      if (i->opcode == Opcode::kGetDimensionSize) any |= dimension_size(i);
      order_.push_back(i);
    }
    if (any) c_.set_instrs(std::move(order_));
  }

 private:
  // The component of the index vectors that only counts one of their dimensions, with that one.
  struct Batch {
    size_t piece;
    int64_t component;
    int dim;
  };

  std::vector<Piece> pieces_of(const Instr& indices, int64_t vector_dim) const {
    std::vector<Piece> out;
    if (indices.opcode != Opcode::kConcatenate ||
        indices.attrs<DimsAttrs>().dimensions[0] != vector_dim)
      return out;
    int64_t first = 0;
    for (Instr* o : indices.operands) {
      out.push_back({o, first});
      first += o->shape.dim(static_cast<int>(vector_dim));
    }
    return out;
  }

  // `operand_dim_of(component)`: the operand's dimension that the component indexes one element at
  // a time, -1 if it does not.
  template <typename F>
  std::optional<Batch> find(const std::vector<Piece>& pieces, int64_t vector_dim, Shape operand,
                            F&& operand_dim_of) const {
    if (pieces.size() < 2) return std::nullopt;
    for (size_t k = 0; k < pieces.size(); ++k) {
      const Instr& v = *pieces[k].value;
      if (v.shape.dim(static_cast<int>(vector_dim)) != 1) continue;
      int d = counts_along(v);
      int64_t to = operand_dim_of(pieces[k].first);
      bool fits = d >= 0 && d != vector_dim && to >= 0 &&
                  operand.dim(static_cast<int>(to)) == v.shape.dim(d);
      if (fits) return Batch{k, pieces[k].first, d};
    }
    return std::nullopt;
  }

  bool gather(Instr* i) {
    GatherAttrs a = i->attrs<GatherAttrs>();
    std::vector<Piece> pieces = pieces_of(*i->operand(1), a.index_vector_dim);
    Shape x = i->operand(0)->shape;
    if (!a.operand_batching_dims.empty()) return false;
    std::optional<Batch> b = find(pieces, a.index_vector_dim, x, [&](int64_t component) {
      int64_t d = a.start_index_map[static_cast<size_t>(component)];
      return a.collapsed_slice_dims.contains(d) ? d : int64_t{-1};
    });
    if (!b) return false;
    int64_t d = a.start_index_map[static_cast<size_t>(b->component)];
    a.collapsed_slice_dims = without(a.collapsed_slice_dims, d);
    a.start_index_map = without(a.start_index_map, d);
    a.operand_batching_dims = m_.context().dims({d});
    a.start_indices_batching_dims = m_.context().dims({b->dim});
    i->operands[1] = rest(*i, pieces, b->piece, *i->operand(1), a.index_vector_dim);
    i->attributes = m_.context().attrs(a);
    return true;
  }

  bool scatter(Instr* i) {
    ScatterAttrs a = i->attrs<ScatterAttrs>();
    size_t n = static_cast<size_t>(i->num_operands()) / 2;
    std::vector<Piece> pieces = pieces_of(*i->operand(static_cast<int>(n)), a.index_vector_dim);
    if (!a.input_batching_dims.empty()) return false;
    Shape x = i->operand(0)->shape;
    std::optional<Batch> b = find(pieces, a.index_vector_dim, x, [&](int64_t component) {
      int64_t d = a.scatter_dims_to_operand_dims[static_cast<size_t>(component)];
      return a.inserted_window_dims.contains(d) ? d : int64_t{-1};
    });
    if (!b) return false;
    int64_t d = a.scatter_dims_to_operand_dims[static_cast<size_t>(b->component)];
    a.inserted_window_dims = without(a.inserted_window_dims, d);
    a.scatter_dims_to_operand_dims = without(a.scatter_dims_to_operand_dims, d);
    a.input_batching_dims = m_.context().dims({d});
    a.scatter_indices_batching_dims = m_.context().dims({b->dim});
    i->operands[n] =
        rest(*i, pieces, b->piece, *i->operand(static_cast<int>(n)), a.index_vector_dim);
    i->attributes = m_.context().attrs(a);
    return true;
  }

  Dims without(Dims dims, int64_t value) {
    DimVector out;
    for (int64_t d : dims) {
      if (d != value) out.push_back(d);
    }
    return m_.context().dims(out);
  }

  // The index vectors without one piece.
  Instr* rest(const Instr& user, const std::vector<Piece>& pieces, size_t dropped,
              const Instr& indices, int64_t vector_dim) {
    std::vector<Instr*> left;
    for (size_t k = 0; k < pieces.size(); ++k) {
      if (k != dropped) left.push_back(pieces[k].value);
    }
    if (left.size() == 1) return left[0];
    DimVector dims(indices.shape.dims().begin(), indices.shape.dims().end());
    --dims[static_cast<size_t>(vector_dim)];
    Instr* c = m_.add(&c_, Opcode::kConcatenate, m_.context().array(indices.shape.type(), dims),
                      left, indices.attributes);
    c->metadata = user.metadata;
    c->place = user.place;
    order_.push_back(c);
    return c;
  }

  bool dimension_size(Instr* i) {
    Shape x = i->operand(0)->shape;
    int d = static_cast<int>(i->attrs<DimsAttrs>().dimensions[0]);
    if (x.is_dynamic(d)) return false;
    Literal size = integer_literal(m_.context(), i->shape.type(), x.dim(d));
    i->opcode = Opcode::kConstant;
    i->operands = {};
    i->attributes = m_.context().attrs(ConstantAttrs{m_.context().arena().make<Literal>(size)});
    return true;
  }

  Module& m_;
  Computation& c_;
  std::vector<Instr*> order_;
};

}  // namespace

void make_batches_explicit(Module* module) {
  for (const auto& c : module->computations()) ExplicitBatch(*module, *c).run();
}

}  // namespace gspmd
