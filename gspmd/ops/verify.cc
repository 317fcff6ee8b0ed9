// Checks of instructions and modules: whoever reads a program calls them before any pass runs.

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

void check_operand_count(const OpDef& d, int n) {
  if (n >= d.min_operands && (d.max_operands < 0 || n <= d.max_operands)) return;
  std::string wanted = d.max_operands == d.min_operands ? fmt::format("{}", d.min_operands)
                       : d.max_operands < 0
                           ? fmt::format("at least {}", d.min_operands)
                           : fmt::format("{} to {}", d.min_operands, d.max_operands);
  throw Error(fmt::format("{} has {} operands, {} are needed", d.name, n, wanted));
}

// Those that call a list may call any number.
void check_called_count(const OpDef& d, size_t n) {
  if (n == d.called.size() || !d.called_list.empty()) return;
  throw Error(fmt::format("{} calls {} computations, {} are needed", d.name, n, d.called.size()),
              fmt::format("{}", fmt::join(d.called, " and ")));
}

// Old programs mix float types; the stated one stands.
bool fits(Shape inferred, Shape stated) {
  if (same(inferred, stated)) return true;
  if (inferred.is_tuple() != stated.is_tuple()) return false;
  if (inferred.is_tuple()) {
    if (inferred.elements().size() != stated.elements().size()) return false;
    for (size_t k = 0; k < stated.elements().size(); ++k) {
      if (!fits(inferred.element(static_cast<int>(k)), stated.element(static_cast<int>(k))))
        return false;
    }
    return true;
  }
  return inferred.dims() == stated.dims() && is_float(inferred.type()) && is_float(stated.type());
}

void check_shape(const Module& m, const Instr& i, const OpDef& d) {
  if (d.infer == nullptr) return;
  std::vector<Shape> shapes;
  for (const Instr* o : i.operands) shapes.push_back(o->shape);
  Shape inferred = d.infer({m.context(), shapes, i.attributes, i.called, i.shape});
  if (inferred && !fits(inferred, i.shape)) {
    throw error_at(m, i,
                   fmt::format("the shape is stated as {}, the operands give {}",
                               to_string(i.shape), to_string(inferred)),
                   "correct the shape or leave it out");
  }
}

void check_names(const Module& m) {
  absl::flat_hash_set<std::string_view> computations, names;
  for (const auto& c : m.computations()) {
    if (!computations.insert(c->name()).second)
      throw Error(fmt::format("two computations are called {}", c->name()));
    names.clear();
    for (const Instr* i : c->instrs()) {
      if (!i->name.empty() && !names.insert(i->name).second)
        throw error_at(m, *i, fmt::format("the name {} is taken", i->name));
    }
  }
}

void check_parameters(const Module& m, const Computation& c) {
  for (size_t k = 0; k < c.params().size(); ++k) {
    if (c.params()[k] == nullptr) {
      throw Error(fmt::format("{}: there is no parameter {} of {}", c.name(), k, c.params().size()),
                  "parameters are numbered from 0 without gaps");
    }
  }
  size_t n = 0;
  for (const Instr* i : c.instrs()) n += i->opcode == Opcode::kParameter;
  if (n != c.params().size())
    throw Error(fmt::format("{}: two parameters have the same number", c.name()));
  if (c.root() == nullptr) throw Error(fmt::format("{}: the computation is empty", c.name()));
  (void)m;
}

// Operands and called computations stand before their users: that also rules out cycles.
void check_order(const Module& m) {
  std::vector<bool> defined(m.num_ids());
  absl::flat_hash_set<const Computation*> before;
  for (const auto& c : m.computations()) {
    for (const Instr* i : c->instrs()) {
      for (const Instr* o : i->operands) {
        if (!defined[o->id] || o->parent != c.get()) {
          throw error_at(m, *i, fmt::format("operand {} is not defined before", o->name),
                         "operands stand before their users in the same computation");
        }
      }
      for (const Computation* callee : i->called) {
        if (!before.contains(callee))
          throw error_at(
              m, *i,
              fmt::format("{} is called before it is defined, or calls itself", callee->name()));
      }
      defined[i->id] = true;
    }
    before.insert(c.get());
  }
}

// What the header says about the entry computation.
void check_header(const Module& m) {
  const Computation& entry = *m.entry();
  const ModuleAttrs& a = m.attrs;
  if (a.entry_result_layout) {
    if (a.entry_parameter_layouts.size() != entry.params().size()) {
      throw Error(fmt::format("{}: entry_computation_layout has {} parameters, {} has {}", m.name(),
                              a.entry_parameter_layouts.size(), entry.name(),
                              entry.params().size()));
    }
    for (size_t k = 0; k < entry.params().size(); ++k) {
      Shape stated = a.entry_parameter_layouts[k], own = entry.params()[k]->shape;
      if (same(stated, own)) continue;
      throw error_at(m, *entry.params()[k],
                     fmt::format("entry_computation_layout says {}", to_string(stated)));
    }
    if (!same(a.entry_result_layout, entry.root()->shape)) {
      throw error_at(m, *entry.root(),
                     fmt::format("entry_computation_layout says the result is {}",
                                 to_string(a.entry_result_layout)));
    }
  }
  if (a.num_partitions < 1 || a.replica_count < 1) {
    throw Error(fmt::format("{}: num_partitions {}, replica_count {}", m.name(), a.num_partitions,
                            a.replica_count),
                "both are at least 1");
  }
}

// The part of a shape at an index path, or null.
Shape part_of(Shape s, absl::Span<const int64_t> index) {
  for (int64_t k : index) {
    if (!s.is_tuple() || k < 0 || k >= static_cast<int64_t>(s.elements().size())) return Shape();
    s = s.element(static_cast<int>(k));
  }
  return s;
}

Shape parameter_part(const Module& m, int64_t parameter, absl::Span<const int64_t> index) {
  const auto& params = m.entry()->params();
  bool exists = parameter >= 0 && parameter < static_cast<int64_t>(params.size());
  return exists ? part_of(params[static_cast<size_t>(parameter)]->shape, index) : Shape();
}

// Aliases and donors name parts that exist; what shares memory has one shape.
void check_aliases(const Module& m) {
  for (const Alias& a : m.attrs.aliases) {
    Shape out = part_of(m.entry()->root()->shape, a.output_index);
    Shape in = parameter_part(m, a.parameter, a.parameter_index);
    if (out && in && same(out, in)) continue;
    throw Error(
        fmt::format("{}: input_output_alias of result {{{}}}, {}, and parameter {} {{{}}}, {}",
                    m.name(), fmt::join(a.output_index, ","),
                    out ? to_string(out) : "which does not exist", a.parameter,
                    fmt::join(a.parameter_index, ","), in ? to_string(in) : "which does not exist"),
        "both must be there and have the same shape");
  }
  for (const Donor& d : m.attrs.donors) {
    if (parameter_part(m, d.parameter, d.index)) continue;
    throw Error(fmt::format("{}: buffer_donor names parameter {} {{{}}}, which does not exist",
                            m.name(), d.parameter, fmt::join(d.index, ",")));
  }
}

}  // namespace

Shape infer_shape(Opcode op, const InferArgs& args) {
  const OpDef& d = def(op);
  check_operand_count(d, static_cast<int>(args.operands.size()));
  check_called_count(d, args.called.size());
  Shape shape = d.infer != nullptr ? d.infer(args) : args.stated;
  if (shape) {
    check_countable(shape, d.name);
    return shape;
  }
  throw Error(fmt::format("{}: the operands do not say what the result's shape is", d.name),
              "state it");
}

void verify(const Module& m, const Instr& i) {
  const OpDef& d = def(i);
  try {
    check_operand_count(d, i.num_operands());
    check_called_count(d, i.called.size());
    check_countable(i.shape, d.name);
    check_shape(m, i, d);
    if (d.verify != nullptr) d.verify(i);
  } catch (Error& e) {
    if (e.place().line > 0 || e.message().rfind(describe(i), 0) == 0) throw;
    throw error_at(m, i, e.message(), e.hint(), e.code());
  }
}

void verify(const Module& m) {
  if (m.entry() == nullptr)
    throw Error(fmt::format("{}: the module has no entry computation", m.name()));
  check_names(m);
  for (const auto& c : m.computations()) check_parameters(m, *c);
  check_order(m);
  for (const auto& c : m.computations()) {
    for (const Instr* i : c->instrs()) verify(m, *i);
  }
  check_header(m);
  check_aliases(m);
}

}  // namespace gspmd
