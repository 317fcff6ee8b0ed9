#include "gspmd/partition/window.h"

#include <numeric>

namespace gspmd {

WindowPlan plan_window(int64_t in, int64_t out, int64_t n, const WindowDim& w) {
  WindowPlan p;
  int64_t dilation = w.base_dilation;
  p.block = ceil_div(out, n);
  // Every shard starts at the same phase of the dilation where block*stride is a multiple of it.
  int64_t unit = dilation / std::gcd(dilation, w.stride);
  p.block = ceil_div(p.block, unit) * unit;
  int64_t reach =
      (p.block - 1) * w.stride + (w.size - 1) * w.window_dilation + 1;  // dilated positions read
  p.need.size = in;
  p.need.block = ceil_div(in, n);
  p.need.shards = n;
  p.need.alpha = p.block * w.stride / dilation;
  p.need.beta = ceil_div(-w.pad_low, dilation);
  int64_t phase = p.need.beta * dilation + w.pad_low;
  p.need.length = reach > phase ? (reach - 1 - phase) / dilation + 1 : 0;
  p.local = w;
  p.local.pad_low = phase;
  p.local.pad_high = reach - phase - (p.need.length > 0 ? (p.need.length - 1) * dilation + 1 : 0);
  return p;
}

std::vector<WindowedDim> windowed_dims(const LocalOp& op) {
  std::vector<WindowedDim> dims;
  int result = op.rule().num_operands();
  for (int f = 0; f < op.rule().num_factors(); ++f) {
    const Factor& factor = op.rule().factor(static_cast<FactorId>(f));
    if (factor.kind != FactorKind::kWindow || op.factors[f].empty()) continue;
    WindowedDim w;
    w.operand_dim = op.rule().dim_of(0, static_cast<FactorId>(f));
    w.result_dim = op.rule().dim_of(result, static_cast<FactorId>(f));
    w.split = SplitDim{w.operand_dim, op.it.mesh, op.factors[f]};
    w.plan = plan_window(op.it.shape(0).dim(w.operand_dim), op.it.shape(result).dim(w.result_dim),
                         op.it.mesh->product(op.factors[f]), *factor.window);
    dims.push_back(w);
  }
  return dims;
}

Instr* fetch_windows(LocalOp& op, int operand, absl::Span<const WindowedDim> dims, Instr* fill) {
  Emitter::Because because(op.e, Reason::kHalo);
  Instr* x = op.operands[operand];
  for (const WindowedDim& w : dims) x = exchange_halo(op.e, x, w.split, w.plan.need, fill);
  return x;
}

Instr* realign_windows(LocalOp& op, Instr* result, absl::Span<const WindowedDim> dims) {
  Emitter::Because because(op.e, Reason::kHalo);
  for (const WindowedDim& w : dims) {
    int64_t size = op.it.shape(op.rule().num_operands()).dim(w.result_dim);
    int64_t n = w.plan.need.shards, block = ceil_div(size, n);
    if (block == w.plan.block) continue;
    HaloNeed need{size, w.plan.block, n, block, 0, block};
    result = exchange_halo(op.e, result, SplitDim{w.result_dim, w.split.mesh, w.split.axes}, need,
                           nullptr);
  }
  return result;
}

}  // namespace gspmd
