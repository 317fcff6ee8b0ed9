// Operators whose result index reads an interval of the operand: slice, pad, reduce-window,
// convolution.
#include <vector>

#include "gspmd/partition/handlers/cumulative.h"
#include "gspmd/partition/window.h"

namespace gspmd {
namespace {

std::optional<bool> splits_windows(const Iteration& it, FactorId f, const AxisList&) {
  const Factor& factor = it.rule.factor(f);
  if (factor.kind != FactorKind::kWindow) return std::nullopt;
  return !factor.scatters;
}

// The result's sizes with the blocks that are computed before realigning.
DimVector computed_dims(const LocalOp& op, absl::Span<const WindowedDim> dims) {
  DimVector out = op.local_result_dims();
  for (const WindowedDim& w : dims) out[w.result_dim] = w.plan.block;
  return out;
}

Instr* localize_slice(LocalOp& op) {
  std::vector<WindowedDim> dims = windowed_dims(op);
  if (dims.empty()) return localize_by_rule(op);
  const auto& a = op.instr().attrs<SliceAttrs>();
  Instr* x = fetch_windows(op, 0, dims, nullptr);
  int rank = op.instr().shape.rank();
  for (int d = 0; d < rank; ++d) {
    if (!op.axes(0, d).empty() && a.starts[d] == 0 && a.limits[d] == op.it.shape(0).dim(d) &&
        a.strides[d] == 1)
      continue;
    const WindowedDim* w = nullptr;
    for (const WindowedDim& one : dims) {
      if (one.operand_dim == d) w = &one;
    }
    x = w != nullptr ? op.e.slice(x, d, 0, x->shape.dim(d), a.strides[d])
                     : op.e.slice(x, d, a.starts[d], a.limits[d], a.strides[d]);
  }
  return x;
}

Instr* localize_pad(LocalOp& op) {
  std::vector<WindowedDim> dims = windowed_dims(op);
  if (dims.empty()) return localize_by_rule(op);
  const auto& a = op.instr().attrs<PadAttrs>();
  Instr* value = op.operands[1];
  Instr* x = fetch_windows(op, 0, dims, value);
  DimVector low(a.low.begin(), a.low.end()), high(a.high.begin(), a.high.end());
  for (const WindowedDim& w : dims) {
    low[w.operand_dim] = w.plan.local.pad_low;
    high[w.operand_dim] = w.plan.local.pad_high;
  }
  Context& c = op.e.context();
  Shape shape = c.with_dims(op.instr().shape, computed_dims(op, dims));
  Instr* padded =
      op.e.add(Opcode::kPad, shape, {x, value}, PadAttrs{c.dims(low), c.dims(high), a.interior});
  return realign_windows(op, padded, dims);
}

// The window with the local pads in split dims.
Window local_window(LocalOp& op, Window window, absl::Span<const WindowedDim> dims,
                    const Dims* spatial) {
  absl::Span<WindowDim> local = op.e.context().arena().array<WindowDim>(window.size());
  std::copy(window.begin(), window.end(), local.begin());
  for (const WindowedDim& w : dims) {
    size_t k = spatial == nullptr ? static_cast<size_t>(w.operand_dim)
                                  : static_cast<size_t>(spatial->index_of(w.operand_dim));
    local[k] = w.plan.local;
    local[k].reversal = window[k].reversal;
  }
  return local;
}

// What lies outside the operand, or in its padding, must contribute nothing: the reducer's
// identity, or else the initial value.
Instr* localize_reduce_window(LocalOp& op) {
  std::vector<WindowedDim> dims = windowed_dims(op);
  if (dims.empty()) return localize_by_rule(op);
  if (Instr* scanned = localize_cumulative(op, dims)) return scanned;
  const auto& a = op.instr().attrs<WindowAttrs>();
  Combiner combiner = combiner_of(*op.instr().called[0]);
  int n = op.rule().num_operands() / 2;
  for (int k = 0; k < n; ++k) {
    Instr* fill = combiner == Combiner::kNone
                      ? op.operands[n + k]
                      : op.e.identity(combiner, op.operands[k]->shape.type());
    op.operands[k] = fetch_windows(op, k, dims, fill);
  }
  std::vector<Shape> shapes;
  for_each_leaf(op.instr().shape, [&](Shape s, int) {
    shapes.push_back(op.e.context().with_dims(s, computed_dims(op, dims)));
  });
  Shape shape = op.instr().shape.is_tuple() ? op.e.context().tuple(shapes) : shapes[0];
  Attrs attrs = op.e.context().attrs(WindowAttrs{local_window(op, a.window, dims, nullptr)});
  Instr* r = op.e.add(Opcode::kReduceWindow, shape, op.operands, attrs);
  r->called = op.e.module().computation_array(op.instr().called);
  return op.instr().shape.is_tuple() ? r : realign_windows(op, r, dims);
}

// With several results, all blocks must be the interface's: realigning takes a tuple apart for
// nothing else. Unknown reducers whose initial value is not known to be neutral may see no made-up
// elements.
std::optional<bool> splits_reduce_window(const Iteration& it, FactorId f, const AxisList& axes) {
  const Factor& factor = it.rule.factor(f);
  if (factor.kind != FactorKind::kWindow) return std::nullopt;
  if (combiner_of(*it.instr.called[0]) != Combiner::kNone) return true;
  int d = it.rule.dim_of(0, f), n = static_cast<int>(it.mesh->product(axes));
  int64_t in = it.shape(0).dim(d), out = it.shape(it.rule.num_operands()).dim(d);
  WindowPlan p = plan_window(in, out, n, *factor.window);
  bool outside = p.need.beta < 0 || p.need.first(n - 1) + p.need.length > in ||
                 p.local.pad_low != 0 || p.local.pad_high != 0;
  return !outside && p.block * n == out;
}

// A tap dimension that is split together with the image (the gradient of a kernel): seen from the
// taps, tap k reads the image at k*window_dilation + y*stride - low for every position y: a window
// of `positions` elements.
struct TapDim {
  int image_dim = 0, kernel_dim = 0;
  size_t spatial = 0;
  WindowPlan plan;
  SplitDim image, kernel;
};

std::vector<TapDim> tap_dims(const LocalOp& op) {
  const auto& a = op.instr().attrs<ConvAttrs>();
  std::vector<TapDim> out;
  for (int f = 0; f < op.rule().num_factors(); ++f) {
    FactorId id = static_cast<FactorId>(f);
    const Factor& factor = op.rule().factor(id);
    if (!factor.needs_handler || op.factors[f].empty()) continue;
    TapDim t;
    t.image_dim = op.rule().dim_of(0, id);
    t.kernel_dim = op.rule().dim_of(1, id);
    t.spatial = static_cast<size_t>(a.dims.kernel_spatial.index_of(t.kernel_dim));
    WindowDim seen;
    seen.size = op.instr().shape.dim(static_cast<int>(a.dims.output_spatial[t.spatial]));
    seen.stride = factor.window->window_dilation;
    seen.window_dilation = factor.window->stride;
    seen.base_dilation = factor.window->base_dilation;
    seen.pad_low = factor.window->pad_low;
    t.plan = plan_window(op.it.shape(0).dim(t.image_dim), factor.window->size,
                         op.it.mesh->product(op.factors[f]), seen);
    t.image = SplitDim{t.image_dim, op.it.mesh, op.factors[f]};
    t.kernel = SplitDim{t.kernel_dim, op.it.mesh, op.factors[f]};
    out.push_back(t);
  }
  return out;
}

// Each shard's taps, and what they read of the image; taps beyond the last are zero.
void fetch_taps(LocalOp& op, absl::Span<const TapDim> taps) {
  Emitter::Because because(op.e, Reason::kHalo);
  for (const TapDim& t : taps) {
    op.operands[0] = exchange_halo(op.e, op.operands[0], t.image, t.plan.need,
                                   op.e.zero(op.operands[0]->shape.type()));
    int64_t size = op.it.shape(1).dim(t.kernel_dim), n = t.plan.need.shards;
    HaloNeed need{size, ceil_div(size, n), n, t.plan.block, 0, t.plan.block};
    op.operands[1] = exchange_halo(op.e, op.operands[1], t.kernel, need,
                                   op.e.zero(op.operands[1]->shape.type()));
  }
}

// Padding of reduced features and batches; tap dimensions are fetched with their own fill.
void mask_features(LocalOp& op) {
  for (int f = 0; f < op.rule().num_factors(); ++f) {
    const Factor& factor = op.rule().factor(static_cast<FactorId>(f));
    if (factor.kind != FactorKind::kReduce || factor.needs_handler || op.factors[f].empty())
      continue;
    for (int k = 0; k < 2; ++k) {
      int d = op.rule().dim_of(k, static_cast<FactorId>(f));
      if (d < 0 || !op.is_uneven(k, d)) continue;
      Emitter::Because because(op.e, Reason::kMask);
      op.operands[k] = op.masked(k, d, op.operands[k], op.e.zero(op.operands[k]->shape.type()));
    }
  }
}

std::optional<bool> splits_convolution(const Iteration& it, FactorId f, const AxisList& axes) {
  const Factor& factor = it.rule.factor(f);
  if (factor.kind == FactorKind::kReduce && factor.needs_handler) {
    return it.rule.dim_of(0, f) >= 0;
  }
  return splits_windows(it, f, axes);
}

Instr* localize_convolution(LocalOp& op) {
  std::vector<WindowedDim> dims = windowed_dims(op);
  std::vector<TapDim> taps = tap_dims(op);
  if (dims.empty() && taps.empty()) return localize_by_rule(op);
  mask_features(op);
  op.operands[0] = fetch_windows(op, 0, dims, op.e.zero(op.operands[0]->shape.type()));
  fetch_taps(op, taps);
  Instr* r = emit_by_rule(op);
  ConvAttrs a = r->attributes.get<ConvAttrs>();
  absl::Span<WindowDim> local = op.e.context().arena().array<WindowDim>(a.window.size());
  Window windows = local_window(op, a.window, dims, &a.dims.input_spatial);
  std::copy(windows.begin(), windows.end(), local.begin());
  for (const TapDim& t : taps) {
    local[t.spatial].size = t.plan.block;
    local[t.spatial].pad_low = t.plan.local.pad_low;
    local[t.spatial].pad_high = t.plan.local.pad_high;
  }
  a.window = local;
  r->attributes = op.e.context().attrs(a);
  r->shape = op.e.context().with_dims(r->shape, computed_dims(op, dims));
  return realign_windows(op, r, dims);
}

}  // namespace

extern const Handler kSliceHandler = {.can_split = splits_windows, .localize = localize_slice};
extern const Handler kPadHandler = {.can_split = splits_windows, .localize = localize_pad};
extern const Handler kReduceWindowHandler = {.can_split = splits_reduce_window,
                                             .localize = localize_reduce_window};
extern const Handler kConvolutionHandler = {.can_split = splits_convolution,
                                            .localize = localize_convolution};

}  // namespace gspmd
