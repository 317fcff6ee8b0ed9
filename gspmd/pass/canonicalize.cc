#include "gspmd/pass/canonicalize.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <vector>

#include "gspmd/ops/custom_call.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/partition/manual.h"

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
    for (Instr* i : before) {
      for (Instr*& o : i->operands) o = replaced_.current(o);
      if (i->opcode == Opcode::kCall) {
        replaced_.set(*i, copy_body(*i, c));
      } else {
        order_.push_back(i);
      }
    }
    c.set_root(replaced_.current(c.root()));
    c.set_instrs(std::move(order_));
  }

  // Returns what stands for the call's result. Copies keep their names where they are free.
  Instr* copy_body(const Instr& call, Computation& to) {
    const Computation& from = *call.called[0];
    for (size_t k = 0; k < from.params().size(); ++k)
      copies_.set(*from.params()[k], call.operands[k]);
    for (const Instr* i : from.instrs()) {
      if (i->opcode == Opcode::kParameter) continue;
      if (--left_ < 0)
        throw error_at(m_, call, "inlining calls makes the program too large",
                       "calls nest too deeply to be expanded");
      operands_.clear();
      for (const Instr* o : i->operands) operands_.push_back(copies_.get(*o));
      Instr* c = m_.add(&to, i->opcode, i->shape, operands_, i->attributes, free_name(i->name));
      c->called = m_.computation_array(i->called);
      c->annotation = i->annotation;
      c->metadata = i->metadata;
      c->extras = i->extras;
      c->provenance = i->provenance;
      c->place = i->place;
      copies_.set(*i, c);
      order_.push_back(c);
    }
    return annotated(call, copies_.get(*from.root()), to);
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
    names_.reserve(instrs.size() * 2);
    for (const Instr* i : instrs) names_.insert(i->name.data());
  }

  std::string_view free_name(std::string_view name) {
    if (name.empty() || names_.insert(name.data()).second) return name;
    int& n = next_[name.data()];
    while (true) {
      std::string_view candidate = m_.context().name(fmt::format("{}.c{}", name, ++n));
      if (names_.insert(candidate.data()).second) return candidate;
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
  Replacements replaced_;
  InstrTable<Instr*> copies_;  // of the bodies of calls
  std::vector<Instr*> operands_;
  // Names by their address: the context keeps each once.
  absl::flat_hash_set<const char*> names_;
  absl::flat_hash_map<const char*, int> next_;
};

class RootSeparator {
 public:
  explicit RootSeparator(Module& m) : m_(m), entry_(*m.entry()) {}

  void run() {
    Instr* root = entry_.root();
    bool passes_on = def(*root).traits.structural && root->opcode != Opcode::kTuple;
    if (!passes_on || root->opcode == Opcode::kParameter) return;
    std::vector<Instr*> order = entry_.instrs();
    order_ = &order;
    Instr* copy = copied(root);
    copy->annotation = std::exchange(root->annotation, nullptr);
    entry_.set_root(copy);
    entry_.set_instrs(std::move(order));
  }

 private:
  Instr* copied(Instr* i) {
    if (i->shape.is_array()) return add(Opcode::kCopy, i->shape, {i}, {}, *i);
    if (!i->shape.is_tuple()) return i;
    std::vector<Instr*> parts;
    for (size_t k = 0; k < i->shape.elements().size(); ++k) {
      Shape s = i->shape.element(static_cast<int>(k));
      IndexAttrs index{static_cast<int64_t>(k)};
      parts.push_back(copied(add(Opcode::kGetTupleElement, s, {i}, m_.context().attrs(index), *i)));
    }
    return add(Opcode::kTuple, i->shape, parts, {}, *i);
  }

  Instr* add(Opcode op, Shape shape, std::vector<Instr*> operands, Attrs attrs, const Instr& from) {
    std::string name = fmt::format("{}.out.{}", from.name, order_->size());
    Instr* i = m_.add(&entry_, op, shape, operands, attrs, m_.context().name(name));
    i->metadata = from.metadata;
    i->place = from.place;
    order_->push_back(i);
    return i;
  }

  Module& m_;
  Computation& entry_;
  std::vector<Instr*>* order_ = nullptr;
};

bool must_stay(const Instr& i) {
  if (i.opcode == Opcode::kParameter || def(i).traits.side_effect) return true;
  return i.opcode == Opcode::kCustomCall && i.attrs<CustomCallAttrs>().has_side_effect;
}

}  // namespace

void drop_annotations_of_reducers(Module* module) {
  std::vector<Computation*> partitioned = partitioned_computations(*module);
  absl::flat_hash_set<const Computation*> split(partitioned.begin(), partitioned.end());
  for (const auto& c : module->computations()) {
    if (split.contains(c.get())) continue;
    Replacements to;
    std::vector<Instr*> kept;
    for (Instr* i : c->instrs()) {
      for (Instr*& o : i->operands) o = to.current(o);
      bool drop = i->opcode == Opcode::kCustomCall && i->num_operands() == 1 &&
                  is_annotation_target(i->attrs<CustomCallAttrs>().target);
      if (drop) {
        to.set(*i, i->operand(0));
      } else {
        kept.push_back(i);
      }
    }
    if (kept.size() == c->instrs().size()) continue;
    c->set_root(to.current(c->root()));
    c->set_instrs(std::move(kept));
  }
}

void inline_calls(Module* module, int64_t max_instrs) { Inliner(*module, max_instrs).run(); }

void separate_root(Module* module) { RootSeparator(*module).run(); }

void remove_dead(Module* module) {
  std::vector<bool> live(module->num_ids());
  // A loop or call stays where anything in it must.
  absl::flat_hash_set<const Computation*> effectful;
  for (const auto& c : module->computations()) {
    size_t num_kept = 0;
    live[c->root()->id] = true;
    for (size_t k = c->instrs().size(); k-- > 0;) {
      Instr* i = c->instrs()[k];
      bool stays = must_stay(*i);
      for (const Computation* callee : i->called) stays |= effectful.contains(callee);
      if (stays && i->opcode != Opcode::kParameter) effectful.insert(c.get());
      if (!stays && !live[i->id]) continue;
      live[i->id] = true;
      for (const Instr* o : i->operands) live[o->id] = true;
      ++num_kept;
    }
    if (num_kept == c->instrs().size()) continue;
    std::vector<Instr*> kept;
    kept.reserve(num_kept);
    for (Instr* i : c->instrs()) {
      if (live[i->id]) kept.push_back(i);
    }
    c->set_instrs(std::move(kept));
  }
}

}  // namespace gspmd
