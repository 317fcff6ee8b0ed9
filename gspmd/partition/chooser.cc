#include "gspmd/partition/chooser.h"

#include <algorithm>
#include <cstring>

namespace gspmd {
namespace {

Sharding layout(const Iteration& it, const Situation& now, int t) {
  return it.is_result(t) ? now.results[t - it.rule.num_operands()] : now.operands[t];
}

// Element-wise, everything laid out alike.
bool agrees_trivially(const Iteration& it, const Situation& now) {
  if (!it.rule.is_pointwise() || now.results.size() != 1) return false;
  for (Sharding s : now.operands) {
    if (s != now.results[0]) return false;
  }
  return !now.operands.empty() && now.results[0]->pending.empty();
}

// Operators work over the mesh that most of their values are on; the main one where they differ.
const Mesh* mesh_of(const Instr& i, const PartitionState& s) {
  absl::Span<const Sharding> results = s.shardings.of(i);
  if (results.empty() || !results[0]) return s.mesh;
  const Mesh* m = &results[0].mesh();
  for (const Instr* o : i.operands) {
    if (o->shape.is_array() && &s.shardings.leaf(*o).mesh() != m) return s.mesh;
  }
  return m;
}

}  // namespace

Iteration Chooser::iteration(const Instr& i) {
  return Iteration{i, s_.rules.get(i), mesh_of(i, s_), s_.module.context().shardings(),
                   manual_axes(i, s_.shardings)};
}

bool Chooser::agrees(const Iteration& it, const Situation& now) {
  if (agrees_trivially(it, now)) return true;
  if (!collect_factors(it, now)) return false;
  AxisSet used = it.manual;
  for (int f = 0; f < it.rule.num_factors(); ++f) {
    const AxisList& axes = agreed_[f];
    if (axes.empty()) continue;
    FactorId id = static_cast<FactorId>(f);
    if (used.intersects(axes.set()) || it.rule.factor(id).combiner != Combiner::kNone ||
        !can_split(it, id, axes, s_.options.handlers))
      return false;
    used |= axes.set();
  }
  for (int t = 0; t < it.rule.num_tensors(); ++t) {
    if (!says_agreed_factors(it, t, layout(it, now, t))) return false;
  }
  return true;
}

// The axes of each factor as the tensors say; false where they say different things, or what no
// rule says.
bool Chooser::collect_factors(const Iteration& it, const Situation& now) {
  std::fill_n(agreed_.begin(), it.rule.num_factors(), AxisList());
  for (int t = 0; t < it.rule.num_tensors(); ++t) {
    Sharding s = layout(it, now, t);
    if (!s || !it.shape(t).is_array() || &s.mesh() != it.mesh || s->manual != it.manual ||
        !s->replicated.empty() || !s->pending.empty())
      return false;
    for (int d = 0; d < s.rank(); ++d) {
      if (!s.dim(d).empty() && !collect_dim(it, t, d, s.dim(d))) return false;
    }
  }
  return true;
}

bool Chooser::collect_dim(const Iteration& it, int t, int d, const AxisList& axes) {
  absl::Span<const FactorId> factors = it.rule.dim(t, d);
  if (factors.empty()) return false;
  if (factors.size() == 1) return agree_on(factors[0], axes);
  for (FactorId f : factors) projected_[f] = AxisList();
  int n =
      project_dim(*it.mesh, it.rule, factors, it.shape(t).dim(d), axes, absl::MakeSpan(projected_));
  if (n != axes.size()) return false;
  for (FactorId f : factors) {
    if (!projected_[f].empty() && !agree_on(f, projected_[f])) return false;
  }
  return true;
}

bool Chooser::agree_on(FactorId f, const AxisList& axes) {
  if (agreed_[f].empty()) agreed_[f] = axes;
  return agreed_[f] == axes;
}

bool Chooser::says_agreed_factors(const Iteration& it, int t, Sharding s) const {
  Shape shape = it.shape(t);
  bool complete = true;
  for (int d = 0; d < it.rule.rank(t); ++d) {
    absl::Span<const FactorId> factors = it.rule.dim(t, d);
    bool same = factors.size() == 1 ? agreed_[factors[0]] == s.dim(d)
                                    : dim_axes(*it.mesh, it.rule, factors, shape.dim(d), agreed_,
                                               &complete) == s.dim(d);
    if (!same || !complete) return false;
  }
  return true;
}

std::vector<Candidate> Chooser::priced(const Iteration& it, const Situation& now) {
  std::vector<Candidate> all = laid_out(it, now);
  for (Candidate& c : all) add_reshards(it, now, s_.planner, s_.options.machine, &c);
  return all;
}

std::vector<Candidate> Chooser::laid_out(const Iteration& it, const Situation& now) {
  std::vector<Candidate> all = candidates(it, now, s_.options.handlers);
  for (Candidate& c : all) lay_out(it, now, s_.options.machine, &c);
  return all;
}

// Prices candidates, those that may be cheap first, until the others can not be cheaper. The first
// among equals.
size_t Chooser::price_cheapest(const Iteration& it, const Situation& now,
                               std::vector<Candidate>* all) {
  absl::InlinedVector<std::pair<int64_t, size_t>, 8> order;
  for (size_t k = 0; k < all->size(); ++k) {
    order.push_back(
        {(*all)[k].units + least_reshard_units(it, now, s_.options.machine, (*all)[k]), k});
  }
  std::sort(order.begin(), order.end());
  size_t best = all->size();
  for (auto [least, k] : order) {
    if (best < all->size() && least > (*all)[best].units) break;
    add_reshards(it, now, s_.planner, s_.options.machine, &(*all)[k]);
    int64_t units = (*all)[k].units;
    if (best == all->size() || units < (*all)[best].units ||
        (units == (*all)[best].units && k < best))
      best = k;
  }
  return best;
}

int64_t Chooser::move(Shape shape, Sharding from, Sharding to) {
  if (from == to || !from || !to) return 0;
  return price_of(s_.planner.cost(from, to, shape.dims(), bits_of(shape.type())))
      .units(s_.options.machine);
}

// What handlers may look at beyond the rule: whether an operand is made anywhere, or which scalar
// constant it is.
uint64_t Chooser::fact(const Instr& operand) {
  if (is_made_anywhere(operand)) return 1;
  if (operand.opcode != Opcode::kConstant) return 0;
  const Literal* literal = operand.attrs<ConstantAttrs>().literal;
  uint64_t bits = 0;
  if (literal->data.size() > sizeof bits) return reinterpret_cast<uintptr_t>(literal);
  std::memcpy(&bits, literal->data.data(), literal->data.size());
  return bits + 2;
}

// Equal keys have equal candidates and prices: the rule stands for operator, attributes and shapes.
void Chooser::set_key(const Iteration& it, const Situation& now) {
  key_.rule = &it.rule;
  key_.layouts.clear();
  key_.facts.clear();
  for (Sharding s : now.operands) key_.layouts.push_back(s.address());
  for (Sharding s : now.results) key_.layouts.push_back(s.address());
  for (const Instr* o : it.instr.operands) key_.facts.push_back(fact(*o));
}

const Choice& Chooser::choose(const Iteration& it, const Situation& now) {
  set_key(it, now);
  auto [at, is_new] = known_.try_emplace(key_);
  if (is_new) at->second = make(it, now);
  return at->second;
}

Choice Chooser::make(const Iteration& it, const Situation& now) {
  Choice c;
  c.agrees = agrees(it, now);
  FactorAxes factors;
  if (c.agrees) {
    c.layouts.assign(now.operands.begin(), now.operands.end());
    c.layouts.insert(c.layouts.end(), now.results.begin(), now.results.end());
    factors = factor_axes(it, now.operands, now.results);
    c.total = c.compute = compute_price(it, factors, c.layouts).units(s_.options.machine);
  } else {
    c.candidates = laid_out(it, now);
    for (const Candidate& x : c.candidates) c.compute_units.push_back(x.units);
    c.cheapest = price_cheapest(it, now, &c.candidates);
    const Candidate& best = c.candidates[c.cheapest];
    c.layouts = best.layouts;
    c.total = best.units;
    c.compute = c.compute_units[c.cheapest];
    factors = best.factors;
  }
  c.idle = it.mesh->product(it.mesh->all_axes() - it.manual - axes_of(factors));
  for (size_t r = 0; r < now.results.size() && !c.agrees; ++r) {
    int t = it.rule.num_operands() + static_cast<int>(r);
    if (it.shape(t).is_array()) c.result_moves += move(it.shape(t), c.layouts[t], now.results[r]);
  }
  return c;
}

}  // namespace gspmd
