#include "gspmd/partition/candidates.h"

#include <algorithm>

namespace gspmd {
namespace {

class Generator {
 public:
  Generator(const Iteration& it, const Situation& now, bool handlers)
      : it_(it), now_(now), handlers_(handlers) {
    int n = it.rule.num_tensors();
    projected_.resize(n);
    for (int t = 0; t < n; ++t) {
      Sharding s = sharding(t);
      if (!s || !it.shape(t).is_array() || &s.mesh() != it.mesh) continue;
      project(it.rule, t, s, it.shape(t).dims(), &projected_[t]);
      by_size_.push_back(t);
    }
    std::sort(by_size_.begin(), by_size_.end(), [&](int a, int b) {
      int64_t x = it.shape(a).bytes(), y = it.shape(b).bytes();
      return x != y ? x > y : a < b;
    });
  }

  std::vector<Candidate> run() {
    int n = it_.rule.num_tensors();
    found_.reserve(static_cast<size_t>(n) + 1);
    offer_all(AxisSet(), 0);
    for (int t = 0; t < it_.rule.num_operands(); ++t) {
      AxisSet sums = passing(t);
      if (!sums.empty()) offer_all(sums, t);
    }
    return std::move(found_);
  }

 private:
  Sharding sharding(int t) const {
    return it_.is_result(t) ? now_.results[t - it_.rule.num_operands()] : now_.operands[t];
  }

  void offer_all(AxisSet sums, int sums_in) {
    for (int t = it_.rule.num_tensors(); t-- > 0;) {  // results first
      if (!projected_[t].empty() && is_first_of_its_kind(t))
        offer({starting_from(t, sums), sums, sums_in});
    }
    offer({FactorAxes(it_.rule.num_factors()), sums, sums_in});
  }

  // The axes of operand t's partial sums, if they may pass through the operator.
  AxisSet passing(int t) const {
    Sharding s = now_.operands[t];
    if (!s || &s.mesh() != it_.mesh || s->combiner != Combiner::kSum || !sums_pass(it_.instr, t))
      return {};
    return s->pending;
  }

  // Tensors that say the same need not be tried twice.
  bool is_first_of_its_kind(int t) const {
    for (int u = it_.rule.num_tensors(); --u > t;) {
      if (projected_[u] == projected_[t]) return false;
    }
    return true;
  }

  FactorAxes starting_from(int t, AxisSet sums) const {
    FactorAxes axes(it_.rule.num_factors());
    AxisSet used = it_.manual | sums;
    take(projected_[t], &axes, &used);
    for (int u : by_size_) take(projected_[u], &axes, &used);
    return axes;
  }

  // Adds what `from` has on each factor where it continues what is there and the axes are free.
  void take(const FactorAxes& from, FactorAxes* axes, AxisSet* used) const {
    for (size_t f = 0; f < from.size(); ++f) {
      AxisList& have = (*axes)[f];
      if (from[f].size() <= have.size() || !from[f].starts_with(have)) continue;
      for (int k = have.size(); k < from[f].size(); ++k) {
        if (used->contains(from[f][k])) break;
        have.push_back(from[f][k]);
        used->insert(from[f][k]);
      }
    }
  }

  // Drops from a candidate what can not be done, and keeps it if it is new.
  void offer(Candidate c) {
    FactorAxes& axes = c.factors;
    Combiner combiner = c.sums.empty() ? Combiner::kNone : Combiner::kSum;
    for (int f = 0; f < it_.rule.num_factors(); ++f) {
      FactorId id = static_cast<FactorId>(f);
      while (!axes[f].empty() && !can_split(it_, id, axes[f], handlers_)) axes[f].pop_back();
      const Factor& factor = it_.rule.factor(id);
      if (axes[f].empty() || factor.combiner == Combiner::kNone) continue;
      if (combiner != Combiner::kNone && combiner != factor.combiner) axes[f] = AxisList();
      combiner = factor.combiner;
    }
    make_expressible(&axes);
    for (const Candidate& known : found_) {
      if (known.factors == axes && known.sums == c.sums && known.sums_in == c.sums_in) return;
    }
    found_.push_back(std::move(c));
  }

  // Minor factors of merged dimensions lose their axes where some tensor can not say them.
  void make_expressible(FactorAxes* axes) const {
    bool changed = true;
    while (changed) {
      changed = false;
      for (int t = 0; t < it_.rule.num_tensors(); ++t) {
        Shape s = it_.shape(t);
        for (int d = 0; d < it_.rule.rank(t); ++d) changed |= trim(t, d, s.dim(d), axes);
      }
    }
  }

  bool trim(int t, int d, int64_t size, FactorAxes* axes) const {
    absl::Span<const FactorId> factors = it_.rule.dim(t, d);
    if (factors.size() < 2) return false;
    bool complete = true;
    dim_axes(*it_.mesh, it_.rule, factors, size, *axes, &complete);
    if (complete) return false;
    for (size_t k = factors.size(); k-- > 0;) {
      if ((*axes)[factors[k]].empty()) continue;
      (*axes)[factors[k]].pop_back();
      return true;
    }
    return false;
  }

  const Iteration& it_;
  const Situation& now_;
  bool handlers_;
  std::vector<FactorAxes> projected_;
  absl::InlinedVector<int, 6> by_size_;  // tensors, the largest first
  std::vector<Candidate> found_;
};

// Calls f(shape, from, to) for each value that a candidate moves.
template <typename F>
void for_each_reshard(const Iteration& it, const Situation& now, const Candidate& c, F f) {
  for (int t = 0; t < it.rule.num_tensors(); ++t) {
    Shape s = it.shape(t);
    Sharding other = it.is_result(t) ? now.results[t - it.rule.num_operands()] : now.operands[t];
    if (!other || c.layouts[t] == other || !s.is_array()) continue;
    if (it.is_result(t)) {
      f(s, c.layouts[t], other);
    } else if (!is_made_anywhere(*it.instr.operand(t))) {
      f(s, other, c.layouts[t]);
    }
  }
}

// Whether the sums that a candidate takes later are still to be taken of tensor t.
bool is_partial(const Iteration& it, const Candidate& c, int t) {
  if (c.sums.empty()) return false;
  if (it.is_result(t) || t == c.sums_in) return true;
  return def(it.instr).traits.sums == PartialSums::kPassInAll && sums_pass(it.instr, t);
}

Sharding with_sums(Sharding s, AxisSet axes, ShardingPool& pool) {
  ShardingData data = *s;
  data.pending |= axes;
  data.combiner = Combiner::kSum;
  return pool.intern(data);
}

}  // namespace

std::vector<Candidate> candidates(const Iteration& it, const Situation& now, bool handlers) {
  return Generator(it, now, handlers).run();
}

void lay_out(const Iteration& it, const Situation& now, const Machine& machine, Candidate* c) {
  bool complete = true;
  for (int t = 0; t < it.rule.num_tensors(); ++t) {
    Sharding s =
        it.layout(t, c->factors, &complete,
                  it.is_result(t) ? now.results[t - it.rule.num_operands()] : now.operands[t]);
    c->layouts.push_back(is_partial(it, *c, t) ? with_sums(s, c->sums, it.pool) : s);
  }
  GSPMD_CHECK(complete, "a candidate that its tensors can not express: " + describe(it.instr));
  c->price = compute_price(it, c->factors, c->layouts);
  c->units = c->price.units(machine);
}

void add_reshards(const Iteration& it, const Situation& now, ReshardPlanner& planner,
                  const Machine& machine, Candidate* c) {
  for_each_reshard(it, now, *c, [&](Shape s, Sharding from, Sharding to) {
    c->price += price_of(planner.cost(from, to, s.dims(), bits_of(s.type())));
  });
  c->units = c->price.units(machine);
}

int64_t least_reshard_units(const Iteration& it, const Situation& now, const Machine& machine,
                            const Candidate& c) {
  Price least;
  for_each_reshard(it, now, c, [&](Shape s, Sharding from, Sharding to) {
    least += price_of(least_cost(from, to, s.dims(), bits_of(s.type())));
  });
  return least.units(machine);
}

}  // namespace gspmd
