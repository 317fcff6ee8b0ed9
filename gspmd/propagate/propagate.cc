#include "gspmd/propagate/propagate.h"

#include <algorithm>
#include <array>
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
  int64_t gain;  // bytes made finer
  int64_t source_bytes;
  uint32_t value;
  uint32_t op, id;   // number of the operator, and of its instruction
  int tensor, from;  // of the operator
  int dim;
  bool agreed;    // all tensors of the operator say the same
  AxisList axes;  // the whole new list
};

// An operator that has a rule.
struct Operator {
  const Instr* instr;
  const Rule* rule;
  uint32_t first_tensor;  // in Completion::tensors_
  Level forward, backward;
  bool queued = false;
};

class Completion {
 public:
  Completion(const Module& m, MeshRefinement& r, RuleCache& rules, const PropagateOptions& o)
      : m_(m), rules_(rules), mesh_(*r.mesh()), t_(m, r, o) {}

  Propagation run() {
    list_operators();
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
  void list_operators() {
    operators_.reserve(m_.num_ids());
    rules_.reserve(m_.num_ids());
    for (const auto& c : m_.computations()) {
      for (const Instr* i : c->instrs()) {
        if (!has_rule(*i)) continue;
        operators_.push_back({i, &rules_.get(*i), static_cast<uint32_t>(tensors_.size()),
                              forward_level(*i), backward_level(*i)});
        for (const Instr* o : i->operands)
          tensors_.push_back(o->shape.is_array() ? t_.value(*o) : kNoValue);
        for (int k = 0; k < i->shape.num_leaves(); ++k) tensors_.push_back(t_.value(*i, k));
      }
    }
  }

  absl::Span<const uint32_t> tensors_of(const Operator& o) const {
    return absl::MakeConstSpan(tensors_).subspan(o.first_tensor, o.rule->num_tensors());
  }

  // Operators by the values they touch, as one flat list.
  void index_users() {
    start_.assign(t_.values.size() + 1, 0);
    for (uint32_t v : tensors_) {
      if (v != kNoValue) ++start_[v + 1];
    }
    for (size_t k = 1; k < start_.size(); ++k) start_[k] += start_[k - 1];
    users_.resize(start_.back());
    std::vector<uint32_t> next(start_.begin(), start_.end() - 1);
    for (uint32_t k = 0; k < operators_.size(); ++k) {
      for (uint32_t v : tensors_of(operators_[k])) {
        if (v != kNoValue) users_[next[v]++] = k;
      }
    }
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
    for (PropagatedValue& v : t_.values) {
      for (const AxisList& d : t_.dims_of(v)) v.split |= !d.empty();
    }
  }

  // To a fixed point with all levels up to this one: rounds over the operators whose values
  // changed. The first round has those that the level wakes: the others have said all they can.
  void complete(int level) {
    std::vector<uint32_t> work;
    for (uint32_t k = 0; k < operators_.size(); ++k) {
      const Operator& o = operators_[k];
      if (level == 0 || o.forward == level || o.backward == level) work.push_back(k);
    }
    while (!work.empty()) {
      proposals_.clear();
      for (uint32_t k : work) {
        operators_[k].queued = false;
        propose(operators_[k], level);
      }
      std::sort(proposals_.begin(), proposals_.end(), [](const Proposal& a, const Proposal& b) {
        return std::tie(b.gain, b.source_bytes, a.value, a.id, a.tensor, a.dim, a.from) <
               std::tie(a.gain, a.source_bytes, b.value, b.id, b.tensor, b.dim, b.from);
      });
      work.clear();
      for (const Proposal& p : proposals_) {
        if (apply(p)) queue_users(p, &work);
      }
    }
  }

  // An operator whose tensors agree has proposed all that follows from its own proposal.
  void queue_users(const Proposal& p, std::vector<uint32_t>* work) {
    for (uint32_t u = start_[p.value]; u < start_[p.value + 1]; ++u) {
      Operator& o = operators_[users_[u]];
      if (o.queued || (p.agreed && users_[u] == p.op)) continue;
      work->push_back(users_[u]);
      o.queued = true;
    }
  }

  // What the rule of one operator says: the axes of each factor, merged over its tensors, and what
  // they add to each tensor.
  void propose(const Operator& o, int level) {
    bool forward = o.forward <= level, backward = o.backward <= level;
    if (!forward && !backward) return;
    const uint32_t* tensors = tensors_.data() + o.first_tensor;
    if (has_nothing_to_add(*o.rule, tensors)) return;
    find_sources(*o.rule, tensors, forward, backward);
    if (order_.empty()) return;
    agreed_ = merge(*o.rule, tensors, order_);
    if (agreed_) return add_all_proposals(o, tensors, forward, backward);
    // They disagree: each speaks for itself, and the gains decide.
    for (const int& source : order_) {
      merge(*o.rule, tensors, {&source, 1});
      add_all_proposals(o, tensors, forward, backward);
    }
  }

  void add_all_proposals(const Operator& o, const uint32_t* tensors, bool forward, bool backward) {
    for (int t = 0; t < o.rule->num_tensors(); ++t) {
      bool result = t >= o.rule->num_operands();
      if (tensors[t] != kNoValue && (result ? forward : backward)) add_proposals(o, tensors, t);
    }
  }

  // The commonest cases: nothing is split, or an element-wise operator has all tensors split alike.
  bool has_nothing_to_add(const Rule& rule, const uint32_t* tensors) const {
    int n = rule.num_tensors();
    bool any = false;
    for (int t = 0; t < n; ++t) any |= tensors[t] != kNoValue && t_.values[tensors[t]].split;
    if (!any || !rule.is_pointwise()) return !any;
    const AxisList* dims = t_.dims.data() + t_.values[tensors[n - 1]].first_dim;
    for (int t = 0; t + 1 < n; ++t) {
      if (tensors[t] == kNoValue || rule.rank(t) != rule.rank(n - 1)) continue;
      const AxisList* other = t_.dims.data() + t_.values[tensors[t]].first_dim;
      if (!std::equal(other, other + rule.rank(t), dims)) return false;
    }
    return true;
  }

  // The tensors that have axes to hand on, the largest first.
  void find_sources(const Rule& rule, const uint32_t* tensors, bool forward, bool backward) {
    order_.clear();
    for (int t = 0; t < rule.num_tensors(); ++t) {
      if (tensors[t] == kNoValue) continue;
      const PropagatedValue& v = t_.values[tensors[t]];
      bool result = t >= rule.num_operands();
      if (v.mesh != nullptr || !v.split || (result && !backward) ||
          (!result && !forward && !backward))
        continue;
      order_.push_back(t);
    }
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      int64_t x = t_.values[tensors[a]].bytes, y = t_.values[tensors[b]].bytes;
      return x != y ? x > y : a < b;
    });
  }

  // Factor by factor the longest list of these tensors, and whether they agree: each other list is
  // a prefix, and no axis is on two factors.
  bool merge(const Rule& rule, const uint32_t* tensors, absl::Span<const int> sources) {
    std::fill_n(merged_.begin(), rule.num_factors(), AxisList());
    AxisSet used;
    bool agree = true;
    for (int t : sources) agree = merge_tensor(rule, t, t_.values[tensors[t]], &used) && agree;
    return agree;
  }

  bool merge_tensor(const Rule& rule, int t, const PropagatedValue& v, AxisSet* used) {
    const AxisList* dims = t_.dims.data() + v.first_dim;
    bool agree = true;
    for (int d = 0; d < rule.rank(t); ++d) {
      if (dims[d].empty()) continue;
      absl::Span<const FactorId> factors = rule.dim(t, d);
      if (factors.size() == 1) {
        agree = extend(rule, factors[0], dims[d], t, used) && agree;
        continue;
      }
      for (FactorId f : factors) projected_[f] = AxisList();
      project_dim(mesh_, rule, factors, v.shape.dim(d), dims[d], absl::MakeSpan(projected_));
      for (FactorId f : factors) agree = extend(rule, f, projected_[f], t, used) && agree;
    }
    return agree;
  }

  bool extend(const Rule& rule, FactorId f, const AxisList& more, int t, AxisSet* used) {
    AxisList& have = merged_[f];
    if (!rule.factor(f).propagates) return true;
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

  void add_proposals(const Operator& o, const uint32_t* tensors, int t) {
    const Rule& rule = *o.rule;
    const PropagatedValue& v = t_.values[tensors[t]];
    if (v.mesh != nullptr || v.closed == ~uint64_t{0}) return;
    const AxisList* dims = t_.dims.data() + v.first_dim;
    for (int d = 0; d < rule.rank(t); ++d) {
      absl::Span<const FactorId> factors = rule.dim(t, d);
      if (factors.size() == 1 ? merged_[factors[0]].size() <= dims[d].size() : factors.empty())
        continue;
      if (v.closed >> d & 1) continue;
      bool complete = true;
      AxisList want = dim_axes(mesh_, rule, factors, v.shape.dim(d), merged_, &complete);
      if (want.size() <= dims[d].size() || !want.starts_with(dims[d])) continue;
      int from = source_[factors.back()];
      for (FactorId f : factors) {
        if (!merged_[f].empty()) from = source_[f];
      }
      if (from == t) continue;
      int64_t before = mesh_.product(dims[d]), after = mesh_.product(want);
      proposals_.push_back({.gain = v.bytes - v.bytes * before / after,
                            .source_bytes = t_.values[tensors[from]].bytes,
                            .value = tensors[t],
                            .op = static_cast<uint32_t>(&o - operators_.data()),
                            .id = o.instr->id,
                            .tensor = t,
                            .from = from,
                            .dim = d,
                            .agreed = agreed_,
                            .axes = want});
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
    const int end = v.even ? end_of_even(p.axes, size) : p.axes.size();
    for (int k = have.size(); k < end; ++k) {
      AxisId a = p.axes[k];
      shards *= mesh_.size(a);
      if (v.used.contains(a)) return placed || lose(p, v);
      if (shards > size) return placed;
      have.push_back(a);
      v.used.insert(a);
      v.split = placed = true;
      placements_.push_back({p.value, static_cast<uint8_t>(p.dim), a, origin_of(p)});
    }
    return placed;
  }

  // How many of the axes divide `size` and are, together, whole axes of the user: a program's
  // interface is told by their names. y:(1)2 alone is not, y:(1)2, y:(2)2 are.
  int end_of_even(const AxisList& axes, int64_t size) const {
    int64_t shards = 1, part = 1;  // `part`: of the user's axis that has begun
    int end = 0;
    for (int k = 0; k < axes.size(); ++k) {
      const Mesh::Axis& axis = mesh_.axis(axes[k]);
      shards *= axis.size;
      const bool goes_on = part == 1 || axis.name == mesh_.axis(axes[k - 1]).name;
      if (size % shards != 0 || axis.pre != part || !goes_on) break;
      part *= axis.size;
      if (part != axis.whole) continue;
      part = 1;
      end = k + 1;
    }
    return end;
  }

  bool lose(const Proposal& p, const PropagatedValue& v) {
    if (conflicts_.size() < kMaxConflicts)
      conflicts_.push_back({v.instr, v.leaf, p.dim, p.axes, operators_[p.op].instr});
    return false;
  }

  AxisOrigin origin_of(const Proposal& p) const {
    const Instr* via = operators_[p.op].instr;
    return {via, p.from < via->num_operands() ? via->operand(p.from) : via};
  }

  ShardingData sharding_of(const PropagatedValue& v) {
    ShardingData data;
    data.mesh = v.mesh != nullptr ? v.mesh : &mesh_;
    data.replicated = v.replicated;
    data.manual = v.manual;
    data.pending = v.pending;
    data.combiner = v.combiner;
    absl::Span<AxisList> dims = t_.dims_of(v);
    data.dims.assign(dims.begin(), dims.end());
    return data;
  }

  Propagation finish() {
    Propagation out;
    ShardingPool& pool = m_.context().shardings();
    std::vector<Sharding> sharding(t_.values.size());
    std::vector<Sharding> whole;  // by rank: many are that
    for (size_t k = 0; k < sharding.size(); ++k) {
      const PropagatedValue& v = t_.values[k];
      if (v.split || v.mesh != nullptr || !v.used.empty()) {
        sharding[k] = pool.intern(sharding_of(v));
        continue;
      }
      size_t rank = t_.dims_of(v).size();
      while (whole.size() <= rank)
        whole.push_back(pool.replicated(&mesh_, static_cast<int>(whole.size())));
      sharding[k] = whole[rank];
    }
    out.shardings.reserve(m_.num_ids());
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
  static constexpr uint32_t kNoValue = UINT32_MAX;
  const Module& m_;
  RuleCache& rules_;
  const Mesh& mesh_;
  ValueTable t_;
  std::vector<Operator> operators_;
  std::vector<uint32_t> tensors_;  // of all operators, flat: value numbers; kNoValue: no array
  std::vector<uint32_t> start_, users_;
  std::vector<Proposal> proposals_;
  std::vector<PropagationConflict> conflicts_;
  std::vector<Propagation::Placement> placements_;
  // Of the operator at hand:
  absl::InlinedVector<int, 16> order_;
  std::array<AxisList, kMaxFactors> merged_, projected_;
  std::array<int, kMaxFactors> source_ = {};
  bool agreed_ = true;
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
