#include "gspmd/pass/sdy_manual.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/propagate/propagate.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {
namespace {

using NamedAxes = std::vector<NamedAxis>;

bool is_target(const Instr& i, std::string_view target) {
  return i.opcode == Opcode::kCustomCall && i.attrs<CustomCallAttrs>().target == target;
}
bool is_entry(const Instr& i) { return is_target(i, "xla.sdy.GlobalToLocalShape"); }
bool is_exit(const Instr& i) { return is_target(i, "xla.sdy.LocalToGlobalShape"); }

bool contains(const NamedAxes& axes, const NamedAxis& a) {
  return std::any_of(axes.begin(), axes.end(), [&](const auto& b) { return b.name == a.name; });
}

void add_missing(NamedAxes* to, const NamedAxes& from) {
  for (const NamedAxis& a : from) {
    if (!contains(*to, a)) to->push_back(a);
  }
}

void drop(NamedAxes* from, const NamedAxes& axes) {
  std::erase_if(*from, [&](const NamedAxis& a) { return contains(axes, a); });
}

// The part of `s` that is left to the partitioner inside a region where `manual` are manual.
ShardingSpelling inside(ShardingSpelling s, const NamedAxes& manual) {
  for (NamedDim& d : s.dims) drop(&d.axes, manual);
  drop(&s.replicated_axes, manual);
  s.manual_axes = manual;
  return s;
}

ShardingSpelling outside(ShardingSpelling s, const NamedAxes& outer) {
  s.manual_axes = outer;
  return s;
}

class Lowering {
 public:
  explicit Lowering(Module& m) : m_(m), context_(m.context()), meshes_(named_meshes_of(m)) {}

  void run() {
    const auto& all = m_.computations();
    for (auto c = all.rbegin(); c != all.rend(); ++c) {  // callers before callees
      bool any = false;
      for (const Instr* i : (*c)->instrs()) {
        note_callees(**c, *i);
        any |= is_entry(*i) || is_exit(*i);
      }
      if (any) rewrite(c->get());
    }
  }

 private:
  // The axes that are manual in what `i` calls: those of its own computation, and where it is the
  // body of a manual computation, that one's.
  void note_callees(const Computation& c, const Instr& i) {
    if (i.called.empty()) return;
    NamedAxes axes = outer_[&c];
    for (const Instr* o : i.operands) {
      const Instr* from = o->opcode == Opcode::kGetTupleElement ? o->operand(0) : o;
      if (i.opcode == Opcode::kCall && is_entry(*from)) add_missing(&axes, manual_axes(*from));
    }
    for (const Computation* callee : i.called) add_missing(&outer_[callee], axes);
  }

  void rewrite(Computation* c) {
    std::vector<Instr*> before = c->instrs();
    absl::flat_hash_map<const Instr*, Instr*> replaced;
    order_.clear();
    for (Instr* i : before) {
      for (Instr*& o : i->operands) {
        if (auto it = replaced.find(o); it != replaced.end()) o = it->second;
      }
      if (is_entry(*i) || is_exit(*i)) {
        replaced[i] = border(*i, c);
      } else {
        order_.push_back(i);
      }
    }
    if (auto it = replaced.find(c->root()); it != replaced.end()) c->set_root(it->second);
    c->set_instrs(std::move(order_));
  }

  // Returns what stands for the border's result.
  Instr* border(const Instr& i, Computation* c) {
    bool entry = is_entry(i);
    NamedAxes outer = outer_[c], inner = outer;
    add_missing(&inner, manual_axes(i));
    std::vector<ShardingSpelling> shardings =
        shardings_of(i, entry ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
    std::vector<Instr*> results;
    for (int k = 0; k < i.num_operands(); ++k) {
      ShardingSpelling full = outside(shardings[k], outer), local = inside(shardings[k], inner);
      Shape shape = i.shape.is_tuple() ? i.shape.element(k) : i.shape;
      Instr* laid = make(i, c, Opcode::kCopy, i.operand(k)->shape, i.operand(k), {});
      laid->annotation = context_.spelling(entry ? full : local);
      CustomCallAttrs a;
      a.target = context_.name(entry ? "SPMDFullToShardShape" : "SPMDShardToFullShape");
      Instr* crossed = make(i, c, Opcode::kCustomCall, shape, laid, Attrs(context_.attrs(a)));
      crossed->annotation = context_.spelling(entry ? local : full);
      results.push_back(crossed);
    }
    if (!i.shape.is_tuple()) return results[0];
    Instr* tuple = m_.add(c, Opcode::kTuple, i.shape, results, {}, i.name);
    order_.push_back(tuple);
    return tuple;
  }

  Instr* make(const Instr& from, Computation* c, Opcode opcode, Shape shape, Instr* operand,
              Attrs attrs) {
    std::string name = fmt::format("{}.border.{}", from.name, order_.size());
    Instr* i = m_.add(c, opcode, shape, {&operand, 1}, attrs, context_.name(name));
    i->metadata = from.metadata;
    i->place = from.place;
    order_.push_back(i);
    return i;
  }

  NamedAxes manual_axes(const Instr& i) {
    return read(i, "xla.sdy.manual_axes", [](std::string_view text) {
      size_t position = 0;
      return parse_sdy_manual_axes(text, &position);
    });
  }

  std::vector<ShardingSpelling> shardings_of(const Instr& i, std::string_view attribute) {
    ShardingSpelling s = read(i, attribute, [](std::string_view text) {
      size_t position = 0;
      return parse_sdy_sharding(text, &position);
    });
    if (s.kind != ShardingSpelling::Kind::kTuple) s = tuple_of(std::move(s));
    for (ShardingSpelling& one : s.elements) write_mesh_in_place(&one);
    int results = i.shape.is_tuple() ? static_cast<int>(i.shape.elements().size()) : 1;
    if (static_cast<int>(s.elements.size()) != i.num_operands() || results != i.num_operands()) {
      throw error_at(m_, i,
                     fmt::format("{} has {} shardings for {} operands and {} results", attribute,
                                 s.elements.size(), i.num_operands(), results),
                     "give one sharding for each operand, and a result for each");
    }
    return std::move(s.elements);
  }

  // So that the annotation has a spelling in HLO. A mesh that is not there is left to the reader of
  // annotations to report.
  void write_mesh_in_place(ShardingSpelling* s) {
    for (const auto& [name, mesh] : meshes_) {
      if (name == s->mesh_name) s->mesh = mesh;
    }
  }

  static ShardingSpelling tuple_of(ShardingSpelling one) {
    ShardingSpelling s;
    s.kind = ShardingSpelling::Kind::kTuple;
    s.elements.push_back(std::move(one));
    return s;
  }

  template <typename Parse>
  std::invoke_result_t<Parse, std::string_view> read(const Instr& i, std::string_view attribute,
                                                     Parse parse) {
    std::optional<std::string> text = frontend_attribute(i, attribute);
    if (!text) {
      throw error_at(m_, i, fmt::format("{} is missing among the frontend attributes", attribute),
                     "lower the program with JAX's Shardy partitioner on or off throughout");
    }
    try {
      return parse(*text);
    } catch (const SpellingError& e) {
      throw error_at(m_, i, fmt::format("{}: {}", attribute, e.message), e.hint);
    }
  }

  Module& m_;
  Context& context_;
  std::vector<std::pair<std::string, NamedMesh>> meshes_;
  absl::flat_hash_map<const Computation*, NamedAxes> outer_;
  std::vector<Instr*> order_;
};

}  // namespace

void lower_sdy_manual(Module* module) { Lowering(*module).run(); }

}  // namespace gspmd
