#include "gspmd/partition/reconcile.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "gspmd/partition/chooser.h"
#include "gspmd/partition/manual.h"

namespace gspmd {
namespace {

class Reconciler {
 public:
  Reconciler(PartitionState& state, Computation& computation, Replacements* replaced)
      : s_(state), computation_(computation), chooser_(state), replaced_(*replaced) {}

  void run() {
    std::vector<Instr*> before = computation_.instrs();
    order_.reserve(before.size() * 5 / 4);
    for (Instr* i : before) {
      for (Instr*& o : i->operands) o = replaced_.current(o);
      visit(i);
    }
    Instr* root = replaced_.current(computation_.root());
    computation_.set_root(root);
    computation_.set_instrs(std::move(order_));
  }

 private:
  void visit(Instr* i) {
    if (i->opcode == Opcode::kParameter || is_reshard(*i)) return keep(i);
    if (is_manual_boundary(*i)) return cross_boundary(i);
    if (i->opcode == Opcode::kTuple) return tuple(i);
    if (i->opcode == Opcode::kGetTupleElement) return element(i);
    if (def(*i).traits.structural) return structural(i);
    operate(i);
  }

  void keep(Instr* i) { order_.push_back(i); }

  // The operands of a tuple are laid out as its elements are.
  void tuple(Instr* i) {
    absl::Span<const Sharding> leaves = s_.shardings.of(*i);
    size_t at = 0;
    for (Instr*& o : i->operands) {
      size_t n = s_.shardings.of(*o).size();
      o = reshard(o, leaves.subspan(at, n), i, Reason::kReshardOperand);
      at += n;
    }
    keep(i);
  }

  void element(Instr* i) {
    const Instr& tuple = *i->operand(0);
    int at = leaf_offset(tuple.shape, static_cast<int>(i->attrs<IndexAttrs>().index));
    absl::InlinedVector<Sharding, 4> made(s_.shardings.of(*i).size());
    for (size_t k = 0; k < made.size(); ++k)
      made[k] = s_.shardings.leaf(tuple, at + static_cast<int>(k));
    finish(i, made);
  }

  // Loops, branches and calls: operands as the called computations take them; results as they come.
  void structural(Instr* i) {
    int first = i->opcode == Opcode::kConditional ? 1 : 0;
    for (int k = 0; k < i->num_operands(); ++k) {
      Instr*& o = i->operands[k];
      o = reshard(o, wanted_by_callee(*i, k, first), i, Reason::kControlFlow);
    }
    keep(i);
  }

  // Loops carry one layout; calls and branches take their parameter's; all else takes what it gets,
  // whole.
  std::vector<Sharding> wanted_by_callee(const Instr& i, int k, int first) {
    const Instr& o = *i.operand(k);
    absl::Span<const Sharding> now = s_.shardings.of(o);
    if (i.opcode == Opcode::kWhile) return copy(s_.shardings.of(i));
    if (i.opcode == Opcode::kConditional && k >= first)
      return copy(s_.shardings.of(*i.called[k - first]->params()[0]));
    if (i.opcode == Opcode::kCall || i.opcode == Opcode::kAsyncStart)
      return copy(s_.shardings.of(*i.called[0]->params()[k]));
    if (i.opcode == Opcode::kOptimizationBarrier) return copy(s_.shardings.of(i));
    if (i.opcode == Opcode::kConditional || i.opcode == Opcode::kCustomCall)
      return whole(o, manual_axes(i, s_.shardings));
    return copy(now);
  }

  static std::vector<Sharding> copy(absl::Span<const Sharding> s) { return {s.begin(), s.end()}; }

  std::vector<Sharding> whole(const Instr& o, AxisSet manual) {
    std::vector<Sharding> out;
    for (Sharding s : s_.shardings.of(o)) {
      ShardingData data;
      data.mesh = &s.mesh();
      data.manual = manual;
      data.dims.resize(s.rank());
      out.push_back(pool().intern(data));
    }
    return out;
  }

  void cross_boundary(Instr* i) {
    Instr*& o = i->operands[0];
    Boundary b = boundary_layouts(*i, s_.shardings.leaf(*o), s_.shardings.leaf(*i), pool());
    o = reshard(o, {b.operand}, i, Reason::kManualBoundary);
    finish(i, {b.result});
  }

  // An operator with a rule: choose its iteration space.
  void operate(Instr* i) {
    Iteration it = chooser_.iteration(*i);
    operand_layouts_.clear();
    for (const Instr* o : i->operands) {
      operand_layouts_.push_back(o->shape.is_array() ? s_.shardings.leaf(*o) : Sharding());
    }
    Situation now{operand_layouts_, s_.shardings.of(*i)};
    const Choice& choice = chooser_.choose(it, now);
    if (choice.agrees) return keep(i);
    Candidate chosen = decide(it, now, choice);
    for (int k = 0; k < i->num_operands(); ++k) {
      if (!operand_layouts_[k]) continue;
      i->operands[k] = reshard(i->operands[k], {chosen.layouts[k]}, i, Reason::kReshardOperand);
    }
    report_fallback(it, chosen);
    finish(i, absl::MakeConstSpan(chosen.layouts).subspan(i->num_operands()));
  }

  Candidate decide(const Iteration& it, const Situation& now, const Choice& choice) {
    if (s_.decider == nullptr) return choice.candidates[choice.cheapest];
    std::vector<Candidate> all = chooser_.priced(it, now);
    return all[s_.decider->choose(it.instr, all)];
  }

  // An operand that is gathered because the operator can not be split along its factor.
  void report_fallback(const Iteration& it, const Candidate& c) {
    for (size_t k = 0; k < operand_layouts_.size(); ++k) {
      Sharding had = operand_layouts_[k];
      if (!had || had == c.layouts[k] || it.shape(static_cast<int>(k)).bytes() < kWorthReporting)
        continue;
      if (!c.layouts[k].is_replicated() || had.is_replicated() || had->splitting().empty())
        continue;
      if (s_.warnings == nullptr) continue;
      Error e =
          error_at(s_.module, it.instr,
                   "operand " + std::to_string(k) + " (" +
                       to_string(it.shape(static_cast<int>(k))) + ", split as " + to_string(had) +
                       ") is gathered whole: the operator can not be split this way");
      s_.warnings->push_back(e.render());
    }
  }

  // Records what `i` produces, and reshards it to what completion wanted.
  void finish(Instr* i, absl::Span<const Sharding> made) {
    keep(i);
    absl::Span<const Sharding> wanted = s_.shardings.of(*i);  // kept when another is set
    if (std::equal(wanted.begin(), wanted.end(), made.begin(), made.end())) return;
    s_.shardings.set(*i, made);
    bool partial =
        std::any_of(made.begin(), made.end(), [](Sharding s) { return !s->pending.empty(); });
    replaced_.set(
        *i, reshard(i, wanted, i, partial ? Reason::kPartialReduction : Reason::kReshardResult));
  }

  // `value` laid out as `wanted`, by one copy for each array; tuples are taken apart and put
  // together.
  Instr* reshard(Instr* value, absl::Span<const Sharding> wanted, Instr* cause, Reason reason) {
    absl::Span<const Sharding> now = s_.shardings.of(*value);
    GSPMD_CHECK(now.size() == wanted.size(),
                "a reshard of another structure: " + describe(*value) + " for " + describe(*cause));
    if (std::equal(now.begin(), now.end(), wanted.begin())) return value;
    if (!value->shape.is_tuple()) return copy_to(value, wanted[0], cause, reason);
    std::vector<Instr*> parts;
    int at = 0;
    for (size_t k = 0; k < value->shape.elements().size(); ++k) {
      Shape part = value->shape.element(static_cast<int>(k));
      int n = part.num_leaves();
      Instr* element =
          make(Opcode::kGetTupleElement, part, {value},
               s_.module.context().attrs(IndexAttrs{static_cast<int64_t>(k)}), cause, reason);
      s_.shardings.set(*element, s_.shardings.of(*value).subspan(at, n));
      parts.push_back(reshard(element, wanted.subspan(at, n), cause, reason));
      at += n;
    }
    Instr* tuple = make(Opcode::kTuple, value->shape, parts, {}, cause, reason);
    s_.shardings.set(*tuple, wanted);
    return tuple;
  }

  Instr* copy_to(Instr* value, Sharding wanted, Instr* cause, Reason reason) {
    Instr*& memo = copies_[{value, wanted}];
    if (memo != nullptr) {
      memo->provenance = s_.module.context().merge(memo->provenance, cause_of(*cause, reason));
      return memo;
    }
    bool again = is_made_anywhere(*value) && wanted->pending.empty() &&
                 (s_.options.handlers || value->opcode != Opcode::kIota) &&
                 wanted->manual == s_.shardings.leaf(*value)->manual;
    Instr* c =
        again ? make(value->opcode, value->shape, value->operands, value->attributes, cause, reason)
              : make(Opcode::kCopy, value->shape, {value}, {}, cause, reason);
    s_.shardings.set(*c, wanted);
    return copies_[{value, wanted}] = c;
  }

  Provenance cause_of(const Instr& source, Reason reason) {
    Cause cause{source.name, source.metadata, reason, {}};
    return s_.module.context().provenance({&cause, 1});
  }

  Instr* make(Opcode op, Shape shape, absl::Span<Instr* const> operands, Attrs attrs, Instr* cause,
              Reason reason) {
    Instr* i = s_.module.add(&computation_, op, shape, operands, attrs);
    i->metadata = cause->metadata;
    i->provenance = cause_of(*cause, reason);
    order_.push_back(i);
    return i;
  }

  ShardingPool& pool() { return s_.module.context().shardings(); }

  static constexpr int64_t kWorthReporting = 1 << 20;
  PartitionState& s_;
  Computation& computation_;
  Chooser chooser_;
  std::vector<Instr*> order_;
  std::vector<Sharding> operand_layouts_;
  Replacements& replaced_;
  absl::flat_hash_map<std::pair<const Instr*, Sharding>, Instr*> copies_;
};

}  // namespace

void reconcile(PartitionState& state) {
  Replacements replaced;
  for (Computation* c : partitioned_computations(state.module))
    Reconciler(state, *c, &replaced).run();
}

FactorAxes factor_axes(const Iteration& it, absl::Span<const Sharding> operands,
                       absl::Span<const Sharding> results) {
  FactorAxes axes(it.rule.num_factors());
  FactorAxes one;
  for (int t = 0; t < it.rule.num_tensors(); ++t) {
    Sharding s = it.is_result(t) ? results[t - it.rule.num_operands()] : operands[t];
    if (!s || !it.shape(t).is_array()) continue;
    project(it.rule, t, s, it.shape(t).dims(), &one);
    for (size_t f = 0; f < one.size(); ++f) {
      if (one[f].size() > axes[f].size()) axes[f] = one[f];
    }
  }
  return axes;
}

bool is_reshard(const Instr& i) {
  if (i.opcode == Opcode::kCopy) return true;
  if (i.opcode != Opcode::kCustomCall) return false;
  std::string_view target = i.attrs<CustomCallAttrs>().target;
  return target == "Sharding" || target == "xla.sdy.FuncResultSharding";
}

AxisSet manual_axes(const Instr& i, const ShardingTable& shardings) {
  absl::Span<const Sharding> leaves = shardings.of(i);
  AxisSet manual;
  for (Sharding s : leaves) {
    if (s) manual |= s->manual;
  }
  return manual;
}

}  // namespace gspmd
