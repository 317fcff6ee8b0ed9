#include <algorithm>

#include "gspmd/partition/handler.h"
#include "gspmd/partition/localize.h"

namespace gspmd {
namespace {

// Sizes of slices that take a whole dimension shrink with it.
Attrs local_slice(const LocalOp& op) {
  SliceAttrs a = op.instr().attrs<SliceAttrs>();
  DimVector limits(a.limits.begin(), a.limits.end());
  for (int d = 0; d < op.instr().shape.rank(); ++d) {
    if (!op.axes(0, d).empty()) limits[d] = op.operands[0]->shape.dim(d);
  }
  a.limits = op.e.context().dims(limits);
  return op.e.context().attrs(a);
}

Attrs local_gather(const LocalOp& op) {
  GatherAttrs a = op.instr().attrs<GatherAttrs>();
  DimVector sizes(a.slice_sizes.begin(), a.slice_sizes.end());
  for (int d = 0; d < op.it.shape(0).rank(); ++d) {
    if (sizes[d] == op.it.shape(0).dim(d)) sizes[d] = op.operands[0]->shape.dim(d);
  }
  a.slice_sizes = op.e.context().dims(sizes);
  return op.e.context().attrs(a);
}

// Windows are as large as the local kernel, whose taps may be split with the image. Groups are
// split with the features (or the batch) that they group.
Attrs local_convolution(const LocalOp& op) {
  ConvAttrs a = op.instr().attrs<ConvAttrs>();
  absl::Span<WindowDim> window = op.e.context().arena().array<WindowDim>(a.window.size());
  std::copy(a.window.begin(), a.window.end(), window.begin());
  for (size_t k = 0; k < window.size(); ++k) {
    window[k].size = op.operands[1]->shape.dim(static_cast<int>(a.dims.kernel_spatial[k]));
  }
  a.window = window;
  if (a.feature_groups > 1) {
    int64_t in_group = op.operands[1]->shape.dim(static_cast<int>(a.dims.kernel_input));
    a.feature_groups = op.operands[0]->shape.dim(static_cast<int>(a.dims.input_feature)) / in_group;
  } else if (a.batch_groups > 1) {
    const int64_t n = op.operands[0]->shape.dim(static_cast<int>(a.dims.input_batch));
    const int64_t per_group =
        op.it.shape(0).dim(static_cast<int>(a.dims.input_batch)) / a.batch_groups;
    if (n < per_group * a.batch_groups) a.batch_groups = std::max<int64_t>(1, n / per_group);
  }
  return op.e.context().attrs(a);
}

Attrs local_attrs(const LocalOp& op) {
  const Instr& i = op.instr();
  switch (i.opcode) {
    case Opcode::kSlice:
      return local_slice(op);
    case Opcode::kGather:
      return local_gather(op);
    case Opcode::kConvolution:
      return local_convolution(op);
    case Opcode::kDynamicSlice:
      return op.e.context().attrs(DynamicSliceAttrs{op.e.context().dims(op.local_result_dims())});
    default:
      return i.attributes;
  }
}

}  // namespace

const AxisList& LocalOp::axes(int tensor, int d) const {
  Sharding s = it.is_result(tensor) ? results[tensor - it.rule.num_operands()] : layouts[tensor];
  return s.dim(d);
}

DimVector LocalOp::local_result_dims(int r) const {
  return results[r].local_dims(it.shape(it.rule.num_operands() + r).dims());
}

Shape LocalOp::local_result_shape() const { return e.local_shape(it.instr.shape, results); }

Instr* LocalOp::masked(int operand, int d, Instr* value, Instr* fill) const {
  if (!is_uneven(operand, d)) return value;
  int64_t size = it.shape(operand).dim(d);
  ElementType type = Emitter::index_type(size + value->shape.dim(d));
  Instr* start = e.offset(*it.mesh, axes(operand, d), value->shape.dim(d), type);
  return mask_outside(e, value, d, start, INT64_MIN, size, fill);
}

// Padding along a reduced dimension becomes the combiner's identity in every operand that has it.
void mask_reduced(LocalOp& op) {
  for (int f = 0; f < op.rule().num_factors(); ++f) {
    const Factor& factor = op.rule().factor(static_cast<FactorId>(f));
    if (factor.kind != FactorKind::kReduce || op.factors[f].empty()) continue;
    for (int k = 0; k < op.rule().num_operands(); ++k) {
      int d = op.rule().dim_of(k, static_cast<FactorId>(f));
      if (d < 0 || !op.is_uneven(k, d)) continue;
      Emitter::Because because(op.e, Reason::kMask);
      op.operands[k] = op.masked(k, d, op.operands[k],
                                 op.e.identity(factor.combiner, op.operands[k]->shape.type()));
    }
  }
}

Instr* localize_by_rule(LocalOp& op) {
  mask_reduced(op);
  return emit_by_rule(op);
}

Instr* emit_by_rule(LocalOp& op) {
  Instr* made = op.e.add(op.instr().opcode, op.local_result_shape(), op.operands, local_attrs(op));
  made->called = op.e.module().computation_array(op.instr().called);
  return made;
}

Instr* once(LocalOp& op, Instr* value, Combiner combiner, AxisSet reduced) {
  AxisList axes;
  reduced.for_each([&](AxisId a) { axes.push_back(a); });
  Emitter::Because because(op.e, Reason::kPartialReduction);
  Instr* i = op.e.coordinate(*op.it.mesh, axes, ElementType::kS32);
  Instr* is_first = op.e.compare(Direction::kEq, i, op.e.integer(ElementType::kS32, 0));
  absl::Span<const int64_t> dims = value->shape.dims();
  return op.e.select(op.e.broadcast(is_first, dims), value,
                     op.e.broadcast(op.e.identity(combiner, value->shape.type()), dims));
}

}  // namespace gspmd
