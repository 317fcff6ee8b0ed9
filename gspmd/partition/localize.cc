#include "gspmd/partition/localize.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/custom_call.h"
#include "gspmd/partition/handler.h"
#include "gspmd/partition/lower_reshard.h"
#include "gspmd/partition/manual.h"

namespace gspmd {

Shape local_shape(Context& context, Shape shape, absl::Span<const Sharding> leaves) {
  if (shape.is_array()) {
    const Sharding s = leaves[0];
    if (!s || s->splitting().empty()) return shape;
    return context.with_dims(shape, s.local_dims(shape.dims()));
  }
  if (!shape.is_tuple()) return shape;
  std::vector<Shape> parts;
  size_t at = 0;
  for (Shape e : shape.elements()) {
    size_t n = static_cast<size_t>(e.num_leaves());
    parts.push_back(local_shape(context, e, leaves.subspan(at, n)));
    at += n;
  }
  return context.tuple(parts);
}

namespace {

class ComputationLocalizer {
 public:
  using Callees = absl::flat_hash_map<const Computation*, Computation*>;
  ComputationLocalizer(PartitionState& state, const Computation& from, Emitter& e,
                       std::vector<Instr*>& local, const Callees& callees)
      : s_(state), from_(from), e_(e), local_(local), callees_(callees) {}

  void run() {
    for (Instr* i : from_.instrs()) {
      uint32_t first = e_.module().num_ids();
      Instr* made = visit(*i);
      local_[i->id] = made;
      // What stands for an instruction bears its name; shared scalars made before keep theirs.
      if (made->id >= first && made->name.empty()) made->name = i->name;
    }
    e_.computation()->set_root(local_[from_.root()->id]);
  }

 private:
  Instr* visit(const Instr& i) {
    Emitter::Source source(e_, i, Reason::kRewrite);
    if (is_reshard(i)) return reshard(i);
    if (is_manual_boundary(i)) return local_[i.operand(0)->id];
    const OpDef& d = def(i);
    if (d.traits.structural || d.traits.collective || i.opcode == Opcode::kParameter)
      return clone(i);
    return operate(i);
  }

  Instr* clone(const Instr& i) {
    absl::InlinedVector<Instr*, 4> operands = local_operands(i);
    Instr* made =
        e_.add(i.opcode, e_.local_shape(i.shape, s_.shardings.of(i)), operands, i.attributes);
    made->called = e_.module().computation_array(i.called);
    for (Computation*& c : made->called) c = callees_.at(c);
    made->extras = i.extras;
    return made;
  }

  absl::InlinedVector<Instr*, 4> local_operands(const Instr& i) const {
    absl::InlinedVector<Instr*, 4> operands;
    for (const Instr* o : i.operands) operands.push_back(local_[o->id]);
    return operands;
  }

  Instr* reshard(const Instr& i) {
    const Instr& o = *i.operand(0);
    Instr* x = local_[o.id];
    if (!i.shape.is_array()) return x;
    Sharding from = s_.shardings.leaf(o), to = s_.shardings.leaf(i);
    if (from == to) return x;
    const ReshardPlan& plan = s_.planner.plan(from, to, i.shape.dims(), bits_of(i.shape.type()));
    return lower_reshard(e_, x, from, to, i.shape.dims(), plan);
  }

  Instr* operate(const Instr& i) {
    absl::Span<const Sharding> results = s_.shardings.of(i);
    absl::InlinedVector<Sharding, 4> layouts;
    for (const Instr* o : i.operands)
      layouts.push_back(o->shape.is_array() ? s_.shardings.leaf(*o) : Sharding());
    const Mesh* mesh = results.empty() || !results[0] ? s_.mesh : &results[0].mesh();
    Iteration it{i, s_.rules.get(i), mesh, e_.context().shardings(), manual_axes(i, s_.shardings)};
    const Handler* handler = s_.options.handlers ? handler_of(i) : nullptr;
    bool by_handler = handler != nullptr && handler->localize != nullptr;
    bool plain = !by_handler && it.rule.is_parallel();  // then nobody asks for the factors
    FactorAxes factors = plain ? FactorAxes() : factor_axes(it, layouts, results);
    LocalOp op{e_, it, factors, local_operands(i), std::move(layouts), results};
    size_t first = e_.computation()->instrs().size();
    Instr* made = by_handler ? handler->localize(op)
                  : plain    ? emit_by_rule(op)
                             : localize_by_rule(op);
    if (made->opcode == i.opcode) made->extras = i.extras;
    if (made->opcode == Opcode::kCustomCall && has_own_rule(*made))
      set_frontend_attribute(made, kSdyRule, std::nullopt);  // it speaks of global sizes
    if (!i.called.empty()) map_callees(first);
    return made;
  }

  // Handlers emit operators that call the source program's computations; from `first` on they call
  // the copies.
  void map_callees(size_t first) {
    absl::Span<Instr* const> emitted =
        absl::MakeConstSpan(e_.computation()->instrs()).subspan(first);
    for (Instr* x : emitted) {
      for (Computation*& c : x->called) {
        auto it = callees_.find(c);
        if (it != callees_.end()) c = it->second;
      }
    }
  }

  PartitionState& s_;
  const Computation& from_;
  Emitter& e_;
  std::vector<Instr*>& local_;
  const Callees& callees_;
};

// A computation that is not partitioned (a reducer, a comparator), copied as it is.
void clone_computation(const Computation& from, Module* out, Computation* to,
                       const absl::flat_hash_map<const Computation*, Computation*>& callees) {
  absl::flat_hash_map<const Instr*, Instr*> copies;
  for (const Instr* i : from.instrs()) {
    std::vector<Instr*> operands;
    for (const Instr* o : i->operands) operands.push_back(copies.at(o));
    Instr* c = out->add(to, i->opcode, i->shape, operands, i->attributes, i->name);
    c->called = out->computation_array(i->called);
    for (Computation*& callee : c->called) callee = callees.at(callee);
    c->metadata = i->metadata;
    c->extras = i->extras;
    copies[i] = c;
  }
  to->set_root(copies.at(from.root()));
}

// Callees stand before their callers.
void put_first(const std::vector<Computation*>& first, Module* m) {
  std::vector<Computation*> order = first;
  for (const auto& c : m->computations()) {
    if (std::find(first.begin(), first.end(), c.get()) == first.end()) order.push_back(c.get());
  }
  m->set_computations(order);
}

void set_header(const PartitionState& s, Module* out) {
  const ModuleAttrs& from = s.module.attrs;
  out->attrs = from;
  out->attrs.propagate_to_parameters.clear();
  out->attrs.propagate_to_output.clear();
  out->attrs.frontend_attributes.clear();
  out->attrs.num_partitions = s.mesh->num_devices();
  out->attrs.entry_parameter_layouts.clear();
  Context& context = out->context();
  const Computation& entry = *s.module.entry();
  for (size_t k = 0; k < from.entry_parameter_layouts.size() && k < entry.params().size(); ++k) {
    out->attrs.entry_parameter_layouts.push_back(
        local_shape(context, from.entry_parameter_layouts[k], s.shardings.of(*entry.params()[k])));
  }
  if (from.entry_result_layout) {
    out->attrs.entry_result_layout =
        local_shape(context, from.entry_result_layout, s.shardings.of(*entry.root()));
  }
  out->stack = s.module.stack;
  out->source = s.module.source;
}

}  // namespace

std::unique_ptr<Module> localize(PartitionState& state) {
  auto out = std::make_unique<Module>(state.module.shared_context(), state.module.name());
  ReducerPool reducers(out.get());
  ComputationLocalizer::Callees callees;
  std::vector<Instr*> local(state.module.num_ids());
  std::vector<Computation*> partitioned = partitioned_computations(state.module);
  size_t next = 0;
  for (const auto& c : state.module.computations()) {
    bool split = next < partitioned.size() && partitioned[next] == c.get();
    Computation* to = out->add_computation(c->name());
    to->execution_thread = c->execution_thread;
    if (split) {
      ++next;
      Emitter e(out.get(), to, &reducers);
      ComputationLocalizer(state, *c, e, local, callees).run();
    } else {
      clone_computation(*c, out.get(), to, callees);
    }
    callees[c.get()] = to;
    if (c.get() == state.module.entry()) out->set_entry(to);
  }
  put_first(reducers.all(), out.get());
  set_header(state, out.get());
  return out;
}

}  // namespace gspmd
