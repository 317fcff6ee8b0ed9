#include "gspmd/propagate/propagate.h"

#include <algorithm>
#include <tuple>

#include "gspmd/ops/custom_call.h"
#include "gspmd/propagate/projection.h"
#include "gspmd/propagate/values.h"

namespace gspmd {
namespace {

// How early an operator's rule is followed, and in which direction (the paper's priorities): what
// can only pass a layout on goes before what has to choose.
enum Level : int { kElementwise, kContraction, kGrowing, kNumLevels };

Level forward_level(const Instr& i) {
  if (def(i).traits.elementwise) return kElementwise;
  switch (i.opcode) {
    case Opcode::kBroadcast:
      return kGrowing;  // a small operand says little about a large result
    case Opcode::kDot:
    case Opcode::kConvolution:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kGather:
    case Opcode::kScatter:
      return kContraction;
    default:
      return kElementwise;
  }
}

Level backward_level(const Instr& i) {
  if (i.opcode == Opcode::kBroadcast) return kContraction;
  return forward_level(i);
}

struct Proposal {
  uint32_t value;
  int dim;
  AxisList axes;  // the whole new list
  int64_t gain;   // bytes made finer
  int64_t source_bytes;
  uint32_t order;  // of the operator, then the tensor: the last resort
  const Instr* via;
  const Instr* from;
};

class Completion {
 public:
  Completion(const Module& m, MeshRefinement& r, RuleCache& rules, const PropagateOptions& o)
      : m_(m), r_(r), rules_(rules), mesh_(*r.mesh()), t_(m, r, o) {}

  Propagation run() {
    index_users();
    std::vector<int> priorities{0};
    for (const auto& [p, dim] : t_.later) priorities.push_back(p);
    std::sort(priorities.begin(), priorities.end());
    priorities.erase(std::unique(priorities.begin(), priorities.end()), priorities.end());
    for (int p : priorities) {
      place_later(p);
      for (int level = 0; level < kNumLevels; ++level) complete(level);
    }
    return finish();
  }

 private:
  // Operators by the values they touch, as one flat list.
  void index_users() {
    std::vector<std::pair<uint32_t, const Instr*>> uses;
    for (const auto& c : m_.computations()) {
      for (const Instr* i : c->instrs()) {
        if (!has_rule(*i)) continue;
        operators_.push_back(i);
        for (const Instr* o : i->operands) {
          if (o->shape.is_array()) uses.emplace_back(t_.value(*o), i);
        }
        for (int k = 0; k < i->shape.num_leaves(); ++k) uses.emplace_back(t_.value(*i, k), i);
      }
    }
    start_.assign(t_.values.size() + 1, 0);
    for (const auto& u : uses) ++start_[u.first + 1];
    for (size_t k = 1; k < start_.size(); ++k) start_[k] += start_[k - 1];
    users_.resize(uses.size());
    std::vector<uint32_t> next(start_.begin(), start_.end() - 1);
    for (const auto& u : uses) users_[next[u.first]++] = u.second;
  }

  static bool has_rule(const Instr& i) {
    const OpDef& d = def(i);
    if (d.traits.structural || d.rule == nullptr) return false;
    if (i.opcode != Opcode::kCustomCall) return true;
    return has_custom_rule(i) && i.attrs<CustomCallAttrs>().target != "xla.sdy.PropagationBarrier";
  }

  void place_later(int priority) {
    for (size_t k = 0; k < t_.later.size(); ++k) {
      if (t_.later[k].first == priority) t_.dims[t_.later[k].second] = t_.later_axes[k];
    }
  }

  // To a fixed point with all levels up to this one: rounds over the operators whose values
  // changed.
  void complete(int level) {
    std::vector<const Instr*> work = operators_;
    queued_.assign(m_.num_ids(), false);
    while (!work.empty()) {
      proposals_.clear();
      for (const Instr* i : work) {
        queued_[i->id] = false;
        propose(*i, level);
      }
      std::sort(proposals_.begin(), proposals_.end(), [](const Proposal& a, const Proposal& b) {
        return std::tie(b.gain, b.source_bytes, a.value, a.order, a.dim) <
               std::tie(a.gain, a.source_bytes, b.value, b.order, b.dim);
      });
      work.clear();
      for (const Proposal& p : proposals_) {
        if (!apply(p)) continue;
        for (uint32_t u = start_[p.value]; u < start_[p.value + 1]; ++u) {
          const Instr* i = users_[u];
          if (!queued_[i->id]) work.push_back(i);
          queued_[i->id] = true;
        }
      }
    }
  }

  // What the rule of one operator says: the axes of each factor, merged over its tensors, and what
  // they add to each tensor.
  void propose(const Instr& i, int level) {
    bool forward = forward_level(i) <= level, backward = backward_level(i) <= level;
    if (!forward && !backward) return;
    const Rule& rule = rules_.get(i);
    collect_tensors(i);
    find_sources(rule, forward, backward);
    if (order_.empty()) return;
    if (merge(rule, order_)) return add_all_proposals(i, rule, forward, backward);
    // They disagree: each speaks for itself, and the gains decide.
    for (const int& source : order_) {
      merge(rule, {&source, 1});
      add_all_proposals(i, rule, forward, backward);
    }
  }

  void add_all_proposals(const Instr& i, const Rule& rule, bool forward, bool backward) {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      bool result = static_cast<int>(t) >= rule.num_operands();
      if (result ? forward : backward) add_proposals(i, rule, static_cast<int>(t));
    }
  }

  void collect_tensors(const Instr& i) {
    tensors_.clear();
    for (const Instr* o : i.operands)
      tensors_.push_back(o->shape.is_array() ? t_.value(*o) : UINT32_MAX);
    for (int k = 0; k < i.shape.num_leaves(); ++k) tensors_.push_back(t_.value(i, k));
  }

  // The tensors that have axes to hand on, the largest first.
  void find_sources(const Rule& rule, bool forward, bool backward) {
    order_.clear();
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t] == UINT32_MAX) continue;
      const PropagatedValue& v = t_.values[tensors_[t]];
      bool result = static_cast<int>(t) >= rule.num_operands();
      if (v.mesh != nullptr || !v.shape.is_array() || (result && !backward) ||
          (!result && !forward && !backward))
        continue;
      bool any = false;
      for (const AxisList& d : t_.dims_of(v)) any |= !d.empty();
      if (any) order_.push_back(static_cast<int>(t));
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return bytes(a) > bytes(b); });
  }

  // Factor by factor the longest list of these tensors, and whether they agree: each other list is
  // a prefix, and no axis is on two factors.
  bool merge(const Rule& rule, absl::Span<const int> sources) {
    merged_.assign(static_cast<size_t>(rule.num_factors()), AxisList());
    source_.assign(static_cast<size_t>(rule.num_factors()), 0);
    AxisSet used;
    bool agree = true;
    for (int t : sources) {
      projected_.assign(static_cast<size_t>(rule.num_factors()), AxisList());
      const PropagatedValue& v = t_.values[tensors_[t]];
      absl::Span<AxisList> dims = t_.dims_of(v);
      for (int d = 0; d < rule.rank(t); ++d) {
        if (!dims[d].empty())
          project_dim(mesh_, rule, rule.dim(t, d), v.shape.dim(d), dims[d], &projected_);
      }
      for (size_t f = 0; f < merged_.size(); ++f) agree = extend(rule, f, t, &used) && agree;
    }
    return agree;
  }

  int64_t bytes(int t) const { return t_.values[tensors_[t]].shape.bytes(); }

  bool extend(const Rule& rule, size_t f, int t, AxisSet* used) {
    AxisList& have = merged_[f];
    const AxisList& more = projected_[f];
    const Factor& factor = rule.factor(static_cast<FactorId>(f));
    if (!factor.propagates) return true;
    if (more.size() <= have.size()) return have.starts_with(more);
    if (!more.starts_with(have)) return false;
    for (int k = have.size(); k < more.size(); ++k) {
      if (used->contains(more[k])) return false;
      have.push_back(more[k]);
      used->insert(more[k]);
      source_[f] = t;
    }
    return true;
  }

  void add_proposals(const Instr& i, const Rule& rule, int t) {
    if (tensors_[t] == UINT32_MAX) return;
    const PropagatedValue& v = t_.values[tensors_[t]];
    if (v.mesh != nullptr || !v.shape.is_array() || v.closed == ~uint64_t{0}) return;
    absl::Span<AxisList> dims = t_.dims_of(v);
    for (int d = 0; d < rule.rank(t); ++d) {
      if (v.closed >> d & 1) continue;
      absl::Span<const FactorId> factors = rule.dim(t, d);
      if (factors.empty()) continue;
      bool complete = true;
      AxisList want = dim_axes(mesh_, rule, factors, v.shape.dim(d), merged_, &complete);
      if (want.size() <= dims[d].size() || !want.starts_with(dims[d])) continue;
      int from = source_[factors.back()];
      for (FactorId f : factors) {
        if (!merged_[f].empty()) from = source_[f];
      }
      if (from == t) continue;
      int64_t before = mesh_.product(dims[d]), after = mesh_.product(want);
      int64_t gain = v.shape.bytes() - v.shape.bytes() * before / after;
      const Instr* source = from < rule.num_operands() ? i.operand(from) : &i;
      proposals_.push_back({tensors_[t], d, want, gain, bytes(from),
                            i.id * 64 + static_cast<uint32_t>(t), &i, source});
    }
  }

  // Places what is still possible of a proposal.
  bool apply(const Proposal& p) {
    PropagatedValue& v = t_.values[p.value];
    AxisList& have = t_.dims[v.first_dim + static_cast<uint32_t>(p.dim)];
    if (p.axes.size() <= have.size()) return false;
    if (!p.axes.starts_with(have)) return lose(p, v);
    int64_t shards = mesh_.product(have), size = v.shape.dim(p.dim);
    bool placed = false;
    for (int k = have.size(); k < p.axes.size(); ++k) {
      AxisId a = p.axes[k];
      shards *= mesh_.size(a);
      if (v.used.contains(a)) return placed || lose(p, v);
      if (shards > size || (v.even && size % shards != 0)) return placed;
      have.push_back(a);
      v.used.insert(a);
      placed = true;
      placements_.push_back({p.value, static_cast<uint8_t>(p.dim), a, {p.via, p.from}});
    }
    return placed;
  }

  bool lose(const Proposal& p, const PropagatedValue& v) {
    if (conflicts_.size() < kMaxConflicts)
      conflicts_.push_back({v.instr, v.leaf, p.dim, p.axes, p.via});
    return false;
  }

  Propagation finish() {
    Propagation out;
    ShardingPool& pool = m_.context().shardings();
    std::vector<Sharding> sharding(t_.values.size());
    for (size_t k = 0; k < sharding.size(); ++k) {
      const PropagatedValue& v = t_.values[k];
      ShardingData data;
      data.mesh = v.mesh != nullptr ? v.mesh : &mesh_;
      data.replicated = v.replicated;
      data.manual = v.manual;
      data.pending = v.pending;
      data.combiner = v.combiner;
      absl::Span<AxisList> dims = t_.dims_of(v);
      data.dims.assign(dims.begin(), dims.end());
      sharding[k] = pool.intern(data);
    }
    std::vector<Sharding> leaves;
    for (const auto& c : m_.computations()) {
      for (const Instr* i : c->instrs()) {
        leaves.clear();
        for (int k = 0; k < i->shape.num_leaves(); ++k) leaves.push_back(sharding[t_.value(*i, k)]);
        out.shardings.set(*i, leaves);
      }
    }
    out.conflicts = std::move(conflicts_);
    out.placements = std::move(placements_);
    out.first_value = std::move(t_.first_leaf);
    out.value_of_leaf = std::move(t_.value_of);
    return out;
  }

  static constexpr size_t kMaxConflicts = 10'000;
  const Module& m_;
  MeshRefinement& r_;
  RuleCache& rules_;
  const Mesh& mesh_;
  ValueTable t_;
  std::vector<const Instr*> operators_, users_;
  std::vector<uint32_t> start_;
  std::vector<bool> queued_;
  std::vector<Proposal> proposals_;
  std::vector<PropagationConflict> conflicts_;
  std::vector<Propagation::Placement> placements_;
  // Of the operator at hand:
  std::vector<uint32_t> tensors_;  // value numbers; UINT32_MAX: no array
  std::vector<int> order_, source_;
  FactorAxes merged_, projected_;
};

}  // namespace

AxisOrigin Propagation::origin(const Instr& i, int leaf, int dim, AxisId a) const {
  uint32_t value = value_of_leaf[first_value[i.id] + static_cast<uint32_t>(leaf)];
  for (const Placement& p : placements) {
    if (p.value == value && p.dim == dim && p.axis == a) return p.origin;
  }
  return {};
}

Propagation propagate(const Module& module, MeshRefinement& refinement, RuleCache& rules,
                      const PropagateOptions& options) {
  return Completion(module, refinement, rules, options).run();
}

}  // namespace gspmd
