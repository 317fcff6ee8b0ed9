#include "gspmd/partition/layout_trial.h"

#include <algorithm>
#include <optional>

#include "gspmd/partition/manual.h"

namespace gspmd {
namespace {

constexpr size_t kManyUsers = 32;
constexpr size_t kTooManyUsers = 256;

bool divides_well(int64_t size, int64_t shards) {
  return size >= shards && ceil_div(size, shards) * shards * 16 <= size * 17;
}

// Whether a result laid out so is partial just as an operand is.
bool passes_sums(const Neighbourhood::Layouts& layouts, size_t operands) {
  for (size_t k = 0; k < operands; ++k) {
    if (layouts[k] && layouts[k]->pending == layouts.back()->pending) return true;
  }
  return false;
}

}  // namespace

// Whether laying a value out so costs its operator nothing but its own work: partial only if that
// is what it makes.
bool Neighbourhood::may_be(const Instr& value, Sharding layout) {
  if (layout->pending.empty() || layout == this->layout(value)) return true;
  return is_operator(value) && before(value).layouts.back()->pending == layout->pending;
}

bool Neighbourhood::is_operator(const Instr& i) const {
  const OpTraits& t = def(i).traits;
  return i.opcode != Opcode::kParameter && !t.structural && !t.collective && !is_reshard(i) &&
         !is_manual_boundary(i);
}

bool Neighbourhood::is_free(const Instr& i) const {
  if (!i.shape.is_array() || i.shape.is_scalar() || &i == c_.root() || is_changed(i)) return false;
  Sharding s = table(i);
  if (!s || &s.mesh() != s_.mesh) return false;
  absl::Span<Instr* const> all = users(i);
  if (is_reshard(i)) {
    // Two reshards pass through it without stopping where it has one user: see optimize_reshards.
    if (all.size() != 1) return false;
  } else if (!is_operator(i) || i.annotation != nullptr || all.size() > kTooManyUsers) {
    return false;
  }
  return std::all_of(all.begin(), all.end(), [&](const Instr* u) {
    return is_operator(*u) || is_reshard(*u) || u->opcode == Opcode::kTuple;
  });
}

int64_t Neighbourhood::move(const Instr& value, Sharding from, Sharding to) {
  return is_made_anywhere(value) ? 0 : chooser_.move(value.shape, from, to);
}

Sharding Neighbourhood::wanted_by(const Instr& user, int operand, Sharding now) const {
  if (is_reshard(user)) return layout(user);
  if (user.opcode == Opcode::kTuple) {
    return s_.shardings.leaf(user, leaf_offset(user.shape, operand));
  }
  return now;
}

Sharding Neighbourhood::layout(const Instr& i) const {
  Sharding s = changed_.get(i);
  return s ? s : table(i);
}

Neighbourhood::Now Neighbourhood::situation(const Instr& op) const {
  Now now;
  for (const Instr* o : op.operands)
    now.operands.push_back(o->shape.is_array() ? layout(*o) : Sharding());
  if (op.shape.is_array()) {
    now.results.push_back(layout(op));
  } else {
    absl::Span<const Sharding> s = s_.shardings.of(op);
    now.results.assign(s.begin(), s.end());
  }
  return now;
}

const Choice& Neighbourhood::after(const Instr& op, Sharding result) {
  Now now = situation(op);
  if (result) now.results[0] = result;
  return chooser_.choose(chooser_.iteration(op), {now.operands, now.results});
}

const Choice& Neighbourhood::before(const Instr& op) {
  const Choice* known = known_.get(op);
  if (known == nullptr) {
    Layouts operands;
    for (const Instr* o : op.operands)
      operands.push_back(o->shape.is_array() ? table(*o) : Sharding());
    known = &chooser_.choose(chooser_.iteration(op), {operands, s_.shardings.of(op)});
    known_.set(op, known);
  }
  return *known;
}

std::optional<Neighbourhood::Layouts> Neighbourhood::wish(const Instr& op) {
  Now now = situation(op);
  Iteration it = chooser_.iteration(op);
  const Choice& stands = chooser_.choose(it, {now.operands, now.results});
  const auto is_free_tensor = [&](int t) {
    return it.is_result(t) ? op.shape.is_array() && is_free(op) : is_free(*op.operand(t));
  };
  const auto fits = [&](const Layouts& layouts, int t) {
    if (!it.is_result(t)) return may_be(*op.operand(t), layouts[t]);
    return layouts[t]->pending.empty() || passes_sums(layouts, op.operands.size());
  };
  std::vector<Candidate> made;
  if (stands.agrees) made = chooser_.laid_out(it, {now.operands, now.results});
  std::optional<Layouts> best;
  int64_t least = stands.total;
  for (const Candidate& c : stands.agrees ? made : stands.candidates) {
    size_t k = static_cast<size_t>(&c - stands.candidates.data());
    int64_t units = stands.agrees ? c.units : stands.compute_units[k];
    for (int t = 0; t < it.rule.num_tensors() && units < least; ++t) {
      if (!it.shape(t).is_array()) continue;
      if (is_free_tensor(t) && fits(c.layouts, t)) {
        // Left partial, it need not be added up where it is made.
        if (!it.is_result(t) && !c.layouts[t]->pending.empty())
          units -= before(*op.operand(t)).result_moves;
        continue;
      }
      units += it.is_result(t)
                   ? chooser_.move(it.shape(t), c.layouts[t], now.results[t - op.num_operands()])
                   : move(*op.operand(t), now.operands[t], c.layouts[t]);
    }
    if (units >= least) continue;
    least = units;
    best = c.layouts;
  }
  return best;
}

std::vector<FactorAxes> Neighbourhood::other_factors(const Iteration& it,
                                                     const FactorAxes& now) const {
  std::vector<FactorAxes> out;
  std::vector<AxisList> groups;
  AxisList all;
  (it.mesh->all_axes() - it.manual).for_each([&](AxisId a) {
    groups.push_back({a});
    all.push_back(a);
  });
  if (groups.size() > 1) groups.push_back(all);
  for (const AxisList& axes : groups) {
    FactorAxes without = now;
    for (AxisList& f : without) {
      for (AxisId a : axes) f.erase(a);
    }
    for (int f = 0; f < it.rule.num_factors(); ++f) {
      const Factor& factor = it.rule.factor(static_cast<FactorId>(f));
      if (factor.kind != FactorKind::kParallel || factor.needs_handler) continue;
      FactorAxes moved = without;
      moved[f].append(axes);
      if (moved == now || !divides_well(factor.size, it.mesh->product(moved[f]))) continue;
      out.push_back(std::move(moved));
    }
  }
  return out;
}

void Neighbourhood::add_scattered(const Instr& op, Sharding made, std::vector<Sharding>* out) {
  AxisList axes;
  made->pending.for_each([&](AxisId a) { axes.push_back(a); });
  for (int d = 0; d < made.rank(); ++d) {
    ShardingData data = *made;
    data.pending = AxisSet();
    data.combiner = Combiner::kNone;
    data.dims[d].append(axes);
    if (op.shape.dim(d) % made.mesh().product(data.dims[d]) != 0) continue;
    out->push_back(s_.module.context().shardings().intern(data));
  }
}

bool Neighbourhood::can_pass_sums(const Instr& value) const {
  absl::Span<Instr* const> all = users(value);
  return std::any_of(all.begin(), all.end(), [&](const Instr* u) {
    return is_reshard(*u) || def(*u).traits.sums != PartialSums::kEnd;
  });
}

std::vector<Sharding> Neighbourhood::other_layouts(const Instr& op) {
  std::vector<Sharding> found;
  if (!is_free(op)) return found;
  const Choice& now = before(op);
  Iteration it = chooser_.iteration(op);
  Sharding made = now.layouts.back();
  if (!made->pending.empty()) {
    if (can_pass_sums(op)) found.push_back(made);
    add_scattered(op, made, &found);
  }
  FactorAxes factors = factor_axes(
      it, absl::MakeConstSpan(now.layouts).first(static_cast<size_t>(op.num_operands())),
      {&made, 1});
  for (const FactorAxes& other : other_factors(it, factors)) {
    bool complete = true;
    Sharding s = it.layout(it.rule.num_operands(), other, &complete);
    if (complete && s->pending.empty()) found.push_back(s);
  }
  // What the operator alone would then cost.
  std::vector<std::pair<int64_t, Sharding>> ranked;
  for (Sharding s : found) {
    if (s == table(op)) continue;
    int64_t then = after(op, s).total;
    if (then < now.total) ranked.push_back({then, s});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  found.clear();
  for (const auto& [units, s] : ranked) {
    if (std::count(found.begin(), found.end(), s) == 0) found.push_back(s);
  }
  return found;
}

void Neighbourhood::commit(absl::Span<const Changed> changes) {
  for (const Changed& c : changes) {
    s_.shardings.set(*c.value, c.layout);
    known_.set(*c.value, nullptr);
    for (const Instr* u : users(*c.value)) known_.set(*u, nullptr);
  }
}

LayoutTrial::~LayoutTrial() {
  for (const Neighbourhood::Changed& c : changes_) n_.forget(*c.value);
}

void LayoutTrial::touch(const Instr& value) {
  if (!value.shape.is_array()) return;
  auto [at, is_new] = touched_at_.try_emplace(&value, touched_.size());
  if (is_new) {
    touched_.push_back({&value, 0});
  } else {
    touched_[at->second].dirty = true;
  }
}

void LayoutTrial::affect(Instr* op, Neighbourhood::Place place) {
  if (!n_.is_operator(*op)) {
    if (is_reshard(*op)) touch(*op->operand(0));
    return;
  }
  auto [at, is_new] = affected_at_.try_emplace(op, affected_.size());
  if (is_new) {
    affected_.push_back({op, &n_.before(*op), nullptr, place});
  } else {
    affected_[at->second].dirty = true;
  }
}

void LayoutTrial::set(Instr* value, Sharding layout, Neighbourhood::Place place) {
  int change = static_cast<int>(changes_.size()), user = 0;
  changes_.push_back({value, layout, n_.table(*value), place});
  n_.change(value, layout);
  touch(*value);
  affect(value, {.change = change});
  for (Instr* u : n_.users(*value)) affect(u, {.change = change, .user = user++});
}

bool LayoutTrial::replay(Instr* seed, absl::Span<const Neighbourhood::Changed> changes) {
  for (const Neighbourhood::Changed& c : changes) {
    Instr* op = seed;
    if (c.place.change >= 0) {
      op = changes_[static_cast<size_t>(c.place.change)].value;
      absl::Span<Instr* const> users = n_.users(*op);
      if (c.place.user >= static_cast<int>(users.size())) return false;
      if (c.place.user >= 0) op = users[static_cast<size_t>(c.place.user)];
    }
    if (c.place.operand >= op->num_operands()) return false;
    Instr* value = c.place.operand < 0 ? op : op->operand(c.place.operand);
    if (!n_.is_free(*value) || n_.table(*value) != c.from) return false;
    set(value, c.layout, c.place);
  }
  return true;
}

void LayoutTrial::refresh() {
  for (Affected& a : affected_) {
    if (!a.dirty) continue;
    const Choice* now = &n_.after(*a.op);
    if (a.after != nullptr && now != a.after) a.stuck = false;
    a.after = now;
    a.dirty = false;
    for (const Instr* o : a.op->operands) touch(*o);
  }
}

bool LayoutTrial::extend(Instr* op) {
  std::optional<Neighbourhood::Layouts> wish = n_.wish(*op);
  if (!wish) return false;
  size_t before = changes_.size();
  auto at = affected_at_.find(op);
  Neighbourhood::Place place;
  if (at != affected_at_.end()) place = affected_[at->second].place;
  for (int k = 0; k < op->num_operands(); ++k) {
    Instr* o = op->operand(k);
    if (n_.is_free(*o) && (*wish)[k] != n_.layout(*o) && n_.may_be(*o, (*wish)[k]))
      set(o, (*wish)[k], {place.change, place.user, k});
  }
  Sharding made = wish->back();
  bool fits = made->pending.empty() || passes_sums(*wish, op->operands.size());
  if (n_.is_free(*op) && made != n_.layout(*op) && fits) set(op, made, place);
  return changes_.size() > before;
}

// A reshard between two operators goes with the value that it reads.
bool LayoutTrial::follow_reshard(const Instr& value) {
  int change = static_cast<int>(changes_.size()) - 1, user = -1;
  for (Instr* u : n_.users(value)) {
    ++user;
    if (!is_reshard(*u) || !n_.is_free(*u)) continue;
    set(u, n_.layout(value), {.change = change, .user = user});
    return true;
  }
  return false;
}

bool LayoutTrial::let_worst_follow() {
  if (follow_reshard(*changes_.back().value)) return true;
  refresh();
  while (true) {
    Affected* worst = nullptr;
    int64_t most = 0;
    for (Affected& a : affected_) {
      int64_t more = a.after->total - a.before->total;
      if (a.stuck || more <= most) continue;
      most = more;
      worst = &a;
    }
    if (worst == nullptr) return false;
    worst->stuck = true;  // until something changes it again
    if (extend(worst->op)) return true;
  }
}

// Units of bringing a value to all the layouts that its users want, each once. Of very many users
// only those count that the trial affects.
int64_t LayoutTrial::cost(const Instr& v, bool after) {
  Sharding from = after ? n_.layout(v) : n_.table(v);
  Targets targets;
  absl::Span<Instr* const> users = n_.users(v);
  if (users.size() <= kTooManyUsers) {
    for (size_t n = 0; n < users.size(); ++n) {
      if (n == 0 || users[n - 1] != users[n]) add_targets(v, *users[n], after, &targets);
    }
  } else {
    for (const Affected& a : affected_) add_targets(v, *a.op, after, &targets);
  }
  int64_t units = 0;
  for (Sharding to : targets) units += n_.move(v, from, to);
  return units;
}

// How `u` wants `v` wherever it reads it.
void LayoutTrial::add_targets(const Instr& v, const Instr& u, bool after, Targets* targets) {
  Sharding from = after ? n_.layout(v) : n_.table(v);
  const Choice* choice = nullptr;
  if (n_.is_operator(u)) {
    auto at = affected_at_.find(&u);
    // Of many users, each of the affected pays for itself.
    if (n_.users(v).size() > kManyUsers && at == affected_at_.end()) return;
    choice = after && at != affected_at_.end() ? affected_[at->second].after : &n_.before(u);
  }
  for (int k = 0; k < u.num_operands(); ++k) {
    if (u.operand(k) != &v) continue;
    Sharding to = choice != nullptr         ? choice->layouts[k]
                  : is_reshard(u) && !after ? n_.table(u)
                                            : n_.wanted_by(u, k, from);
    if (to != from && std::find(targets->begin(), targets->end(), to) == targets->end())
      targets->push_back(to);
  }
}

int64_t LayoutTrial::gain() {
  refresh();
  int64_t more = 0;
  for (const Affected& a : affected_) {
    more += a.after->compute + a.after->result_moves - a.before->compute - a.before->result_moves;
  }
  for (Touched& t : touched_) {
    if (t.dirty) t.more = cost(*t.value, true) - cost(*t.value, false);
    t.dirty = false;
    more += t.more;
  }
  return -more;
}

}  // namespace gspmd
