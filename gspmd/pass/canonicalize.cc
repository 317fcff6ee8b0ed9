#include "gspmd/pass/canonicalize.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <vector>

#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

class Inliner {
 public:
  Inliner(Module& m, int64_t max_instrs) : m_(m), left_(max_instrs) {}

  // Callees first: what is copied into a caller has no calls itself.
  void run() {
    for (const auto& c : m_.computations()) inline_into(*c);
    drop_unused();
  }

 private:
  static bool is_inlined(const Instr& i) {
    return i.opcode == Opcode::kCall && !i.attrs<CallAttrs>().is_composite;
  }

  void inline_into(Computation& c) {
    std::vector<Instr*> before = c.instrs();
    bool any = false;
    for (const Instr* i : before) any |= i->opcode == Opcode::kCall;
    if (!any) return;
    prepare_names(before);
    order_.clear();
    order_.reserve(before.size());
    replaced_.clear();
    for (Instr* i : before) {
      for (Instr*& o : i->operands) o = current(o);
      if (i->opcode == Opcode::kCall) {
        replaced_[i] = copy_body(*i, c);
      } else {
        order_.push_back(i);
      }
    }
    c.set_root(current(c.root()));
    c.set_instrs(std::move(order_));
  }

  Instr* current(Instr* i) const {
    auto it = replaced_.find(i);
    return it == replaced_.end() ? i : it->second;
  }

  // Returns what stands for the call's result. Copies keep their names where they are free.
  Instr* copy_body(const Instr& call, Computation& to) {
    const Computation& from = *call.called[0];
    absl::flat_hash_map<const Instr*, Instr*> copies;
    for (size_t k = 0; k < from.params().size(); ++k) copies[from.params()[k]] = call.operands[k];
    for (const Instr* i : from.instrs()) {
      if (i->opcode == Opcode::kParameter) continue;
      if (--left_ < 0)
        throw error_at(m_, call, "inlining calls makes the program too large",
                       "calls nest too deeply to be expanded");
      std::vector<Instr*> operands;
      for (const Instr* o : i->operands) operands.push_back(copies.at(o));
      Instr* c = m_.add(&to, i->opcode, i->shape, operands, i->attributes, free_name(i->name));
      c->called = m_.computation_array(i->called);
      c->annotation = i->annotation;
      c->metadata = i->metadata;
      c->extras = i->extras;
      c->provenance = i->provenance;
      c->place = i->place;
      copies[i] = c;
      order_.push_back(c);
    }
    Instr* result = copies.at(from.root());
    return annotated(call, result, to);
  }

  // An annotation on the call itself holds for its result.
  Instr* annotated(const Instr& call, Instr* result, Computation& to) {
    if (call.annotation == nullptr || !call.shape.is_array()) return result;
    Instr* c = m_.add(&to, Opcode::kCopy, call.shape, {&result, 1}, {}, free_name(call.name));
    c->annotation = call.annotation;
    c->metadata = call.metadata;
    c->extras = call.extras;
    c->place = call.place;
    order_.push_back(c);
    return c;
  }

  void prepare_names(const std::vector<Instr*>& instrs) {
    names_.clear();
    for (const Instr* i : instrs) names_.insert(i->name);
  }

  std::string_view free_name(std::string_view name) {
    if (name.empty() || names_.insert(name).second) return name;
    int& n = next_[name];
    while (true) {
      std::string_view candidate = m_.context().name(fmt::format("{}.c{}", name, ++n));
      if (names_.insert(candidate).second) return candidate;
    }
  }

  void drop_unused() {
    absl::flat_hash_set<const Computation*> used{m_.entry()};
    std::vector<Computation*> kept;
    const auto& all = m_.computations();
    for (auto c = all.rbegin(); c != all.rend(); ++c) {
      if (!used.contains(c->get())) continue;
      for (const Instr* i : (*c)->instrs()) used.insert(i->called.begin(), i->called.end());
    }
    for (const auto& c : all) {
      if (used.contains(c.get())) kept.push_back(c.get());
    }
    m_.set_computations(kept);
  }

  Module& m_;
  int64_t left_;
  std::vector<Instr*> order_;
  absl::flat_hash_map<const Instr*, Instr*> replaced_;
  absl::flat_hash_set<std::string_view> names_;
  absl::flat_hash_map<std::string_view, int> next_;
};

bool must_stay(const Instr& i) {
  if (i.opcode == Opcode::kParameter || def(i).traits.side_effect) return true;
  return i.opcode == Opcode::kCustomCall && i.attrs<CustomCallAttrs>().has_side_effect;
}

}  // namespace

void inline_calls(Module* module, int64_t max_instrs) { Inliner(*module, max_instrs).run(); }

void remove_dead(Module* module) {
  std::vector<bool> live(module->num_ids());
  // A loop or call stays where anything in it must.
  absl::flat_hash_set<const Computation*> effectful;
  for (const auto& c : module->computations()) {
    std::vector<Instr*> kept;
    live[c->root()->id] = true;
    for (size_t k = c->instrs().size(); k-- > 0;) {
      Instr* i = c->instrs()[k];
      bool stays = must_stay(*i);
      for (const Computation* callee : i->called) stays |= effectful.contains(callee);
      if (stays && i->opcode != Opcode::kParameter) effectful.insert(c.get());
      if (!stays && !live[i->id]) continue;
      live[i->id] = true;
      for (const Instr* o : i->operands) live[o->id] = true;
      kept.push_back(i);
    }
    if (kept.size() == c->instrs().size()) continue;
    c->set_instrs({kept.rbegin(), kept.rend()});
  }
}

}  // namespace gspmd
