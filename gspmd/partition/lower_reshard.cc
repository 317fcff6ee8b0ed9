#include "gspmd/partition/lower_reshard.h"

#include <numeric>
#include <vector>

#include "gspmd/base/check.h"
#include "gspmd/partition/halo_exchange.h"

namespace gspmd {
namespace {

// dim's block is split as [n, b/n]; the n parts are exchanged; the n received go in front of
// to_dim: [n, c] -> n*c.
//
//   all-to-all 1->0 {x} of [4, 6], x=2:  [4, 2, 3] -> exchange -> [2, 4, 3] -> [8, 3]
Instr* exchange_all_to_all(Emitter& e, Instr* x, int gathered, int split, const Mesh& mesh,
                           const AxisList& axes) {
  int64_t n = mesh.product(axes);
  DimVector apart(x->shape.dims().begin(), x->shape.dims().end());
  apart[split] /= n;
  apart.insert(apart.begin() + split, n);
  x = e.all_to_all(e.reshape(x, apart), split, mesh, axes);
  // Positions after the insertion; the parts move right before the gathered dimension.
  int from = split, target = gathered >= split ? gathered + 1 : gathered;
  DimVector order;
  for (int d = 0; d < static_cast<int>(apart.size()); ++d) {
    if (d == target) order.push_back(from);
    if (d != from) order.push_back(d);
  }
  x = e.transpose(x, order);
  DimVector merged;
  for (int d = 0; d < static_cast<int>(order.size()); ++d) {
    if (order[d] == from) continue;
    bool after_parts = d > 0 && order[d - 1] == from;
    merged.push_back(after_parts ? n * x->shape.dim(d) : x->shape.dim(d));
  }
  return e.reshape(x, merged);
}

class Lowering {
 public:
  Lowering(Emitter& e, Sharding from, Sharding to, absl::Span<const int64_t> dims)
      : e_(e),
        mesh_(&from.mesh()),
        combiner_(from->combiner),
        combiner_after_(to->combiner),
        dims_(dims),
        layouts_(interface_layouts(from, dims)) {}

  Instr* step(const ReshardStep& s, Instr* x, const Mesh* mesh_after) {
    std::vector<DimLayout> before = layouts_;
    apply(s, *mesh_, &layouts_);
    switch (s.kind) {
      case StepKind::kSlice:
        return slice(s, x);
      case StepKind::kPadOrTrim:
        return pad_or_trim(s, x);
      case StepKind::kRealign:
        return realign(s, x, before[s.dim]);
      case StepKind::kAllGather:
        return e_.all_gather(x, s.dim, *mesh_, s.axes);
      case StepKind::kAllToAll:
        return exchange_all_to_all(e_, x, s.dim, s.to_dim, *mesh_, s.axes);
      case StepKind::kPermute:
        return e_.collective_permute(x, *mesh_, s.permutation);
      case StepKind::kAllReduce:
        return e_.all_reduce(x, *mesh_, s.axes, combiner_);
      case StepKind::kReduceScatter:
        return e_.reduce_scatter(x, s.dim, *mesh_, s.axes, combiner_);
      case StepKind::kMakePending:
        return make_pending(s, x);
      case StepKind::kCrossMesh:
        return cross_mesh(s, x, before, mesh_after);
    }
    GSPMD_CHECK(false, "no such step");
  }

 private:
  Instr* slice(const ReshardStep& s, Instr* x) {
    int64_t block = layouts_[s.dim].block;
    ElementType type = Emitter::index_type(x->shape.dim(s.dim));
    Emitter::Because because(e_, Reason::kOffset);
    return e_.dynamic_slice(x, s.dim, e_.offset(*mesh_, s.axes, block, type), block);
  }

  Instr* pad_or_trim(const ReshardStep& s, Instr* x) {
    return e_.pad(x, s.dim, 0, s.block - x->shape.dim(s.dim), 0, e_.zero(x->shape.type()));
  }

  Instr* realign(const ReshardStep& s, Instr* x, const DimLayout& before) {
    Emitter::Because because(e_, Reason::kHalo);
    SplitDim split{s.dim, mesh_, before.axes};
    return exchange_halo(e_, x, split, realign_need(before, *mesh_, dims_[s.dim], s.block),
                         nullptr);
  }

  // Whole on the first shard of the axes; the others add nothing.
  Instr* make_pending(const ReshardStep& s, Instr* x) {
    Emitter::Because because(e_, Reason::kMask);
    Instr* number = e_.coordinate(*mesh_, s.axes, ElementType::kS32);
    Instr* first = e_.compare(Direction::kEq, number, e_.zero(ElementType::kS32));
    Instr* nothing = e_.identity(combiner_after_, x->shape.type());
    return e_.select(e_.broadcast(first, x->shape.dims()), x,
                     e_.broadcast(nothing, x->shape.dims()));
  }

  Instr* cross_mesh(const ReshardStep& s, Instr* x, const std::vector<DimLayout>& before,
                    const Mesh* after) {
    const Mesh* from = mesh_;
    mesh_ = after;
    if (s.stays) return x;
    std::vector<AxisList> lists;
    for (const DimLayout& l : before) lists.push_back(l.axes);
    return e_.collective_permute(x, cross_mesh_pairs(*from, lists, *after, s.lists_after));
  }

  Emitter& e_;
  const Mesh* mesh_;
  Combiner combiner_, combiner_after_;
  absl::Span<const int64_t> dims_;
  std::vector<DimLayout> layouts_;
};

}  // namespace

Instr* lower_reshard(Emitter& e, Instr* local, Sharding from, Sharding to,
                     absl::Span<const int64_t> dims, const ReshardPlan& plan) {
  Lowering lowering(e, from, to, dims);
  for (const ReshardStep& s : plan.steps) local = lowering.step(s, local, &to.mesh());
  return local;
}

}  // namespace gspmd
