// Cumulative sums and the like along a split dimension: a reduce-window over all that comes before
// (or after). Each shard scans its own block; the totals of the blocks, one element each, are
// gathered, and those of the earlier shards are combined into what the block starts from.
#include "gspmd/partition/handlers/cumulative.h"

namespace gspmd {
namespace {

enum class Reach : uint8_t { kNeither, kBefore, kAfter };

Reach reach_of(const WindowDim& w, int64_t size) {
  bool plain = w.size == size && w.stride == 1 && w.base_dilation == 1 && w.window_dilation == 1;
  if (!plain || size < 2) return Reach::kNeither;
  if (w.pad_low == size - 1 && w.pad_high == 0) return Reach::kBefore;
  return w.pad_low == 0 && w.pad_high == size - 1 ? Reach::kAfter : Reach::kNeither;
}

class Scan {
 public:
  Scan(LocalOp& op, int dim, Reach reach, Combiner combiner)
      : op_(op),
        e_(op.e),
        dim_(dim),
        before_(reach == Reach::kBefore),
        combiner_(combiner),
        identity_(e_.identity(combiner, op.operands[0]->shape.type())) {}

  Instr* run() {
    Instr* x = op_.operands[0];
    if (op_.is_uneven(0, dim_)) x = op_.masked(0, dim_, x, identity_);
    Instr* own = scan(x);
    Emitter::Because because(e_, Reason::kPartialReduction);
    Instr* start = e_.broadcast(totals_of_others(own), own->shape.dims(), other_dims());
    Instr* all = e_.binary(opcode_of(combiner_), own, start);
    Instr* init = e_.broadcast(op_.operands[1], own->shape.dims());
    return e_.binary(opcode_of(combiner_), all, init);
  }

 private:
  // The windows within the block.
  Instr* scan(Instr* x) {
    Window window = op_.instr().attrs<WindowAttrs>().window;
    absl::Span<WindowDim> local = e_.context().arena().array<WindowDim>(window.size());
    std::copy(window.begin(), window.end(), local.begin());
    WindowDim& w = local[static_cast<size_t>(dim_)];
    w.size = x->shape.dim(dim_);
    (before_ ? w.pad_low : w.pad_high) = w.size - 1;
    Instr* r =
        e_.add(Opcode::kReduceWindow, op_.local_result_shape(), {x, identity_}, WindowAttrs{local});
    r->called = e_.module().computation_array(op_.instr().called);
    return r;
  }

  // What the shards before this one (or after it) come to, without dimension dim_.
  Instr* totals_of_others(Instr* own) {
    int64_t last = before_ ? own->shape.dim(dim_) - 1 : 0;
    SplitDim split = op_.split(0, dim_);
    Instr* totals =
        e_.all_gather(e_.slice(own, dim_, last, last + 1), dim_, *split.mesh, split.axes);
    int64_t n = totals->shape.dim(dim_);
    Instr* number = e_.iota(ElementType::kS32, {n}, 0);
    Instr* here = e_.broadcast(e_.coordinate(*split.mesh, split.axes, ElementType::kS32), {n});
    Instr* counts = e_.compare(before_ ? Direction::kLt : Direction::kGt, number, here);
    counts = e_.broadcast(counts, totals->shape.dims(), {dim_});
    totals = e_.select(counts, totals, e_.broadcast(identity_, totals->shape.dims()));
    DimVector kept;
    for (int64_t d : other_dims()) kept.push_back(totals->shape.dim(static_cast<int>(d)));
    Context& c = e_.context();
    Instr* r = e_.add(Opcode::kReduce, c.array(totals->shape.type(), kept), {totals, identity_},
                      DimsAttrs{c.dims({dim_})});
    Computation* combine = e_.reducers().get(combiner_, totals->shape.type());
    r->called = e_.module().computation_array({&combine, 1});
    return r;
  }

  DimVector other_dims() const {
    DimVector out;
    for (int64_t d = 0; d < op_.instr().shape.rank(); ++d) {
      if (d != dim_) out.push_back(d);
    }
    return out;
  }

  LocalOp& op_;
  Emitter& e_;
  int dim_;
  bool before_;
  Combiner combiner_;
  Instr* identity_;
};

}  // namespace

Instr* localize_cumulative(LocalOp& op, absl::Span<const WindowedDim> dims) {
  Combiner combiner = combiner_of(*op.instr().called[0]);
  if (dims.size() != 1 || op.instr().num_operands() != 2 || combiner == Combiner::kNone)
    return nullptr;
  int d = dims[0].operand_dim;
  const WindowDim& w = op.instr().attrs<WindowAttrs>().window[static_cast<size_t>(d)];
  Reach reach = reach_of(w, op.it.shape(0).dim(d));
  return reach == Reach::kNeither ? nullptr : Scan(op, d, reach, combiner).run();
}

}  // namespace gspmd
