#include "gspmd/ops/equal.h"

#include <fmt/format.h>

#include <cstring>

#include "gspmd/ops/field_value.h"

namespace gspmd {
namespace {

// Collects the first difference; later ones are ignored.
class Difference {
 public:
  bool found() const { return !text_.empty(); }
  std::string take() { return std::move(text_); }
  template <typename A, typename B>
  void compare(std::string_view what, const A& a, const B& b) {
    if (!found() && !(a == b)) text_ = fmt::format("{} differs", what);
  }
  void texts(std::string_view what, std::string_view a, std::string_view b) {
    if (!found() && a != b) text_ = fmt::format("{}: '{}' and '{}'", what, a, b);
  }
  void numbers(std::string_view what, int64_t a, int64_t b) {
    if (!found() && a != b) text_ = fmt::format("{}: {} and {}", what, a, b);
  }
  void shapes(std::string_view what, Shape a, Shape b) {
    if (found() || a == b) return;
    texts(what, a ? to_string(a, true) : "", b ? to_string(b, true) : "");
  }
  void add(std::string_view where, const std::string& difference) {
    if (!found() && !difference.empty()) text_ = fmt::format("{}: {}", where, difference);
  }

 private:
  std::string text_;
};

std::string metadata_difference(const Metadata* a, const Metadata* b) {
  static const Metadata kNone;
  const Metadata &x = a != nullptr ? *a : kNone, &y = b != nullptr ? *b : kNone;
  Difference d;
  d.texts("op_type", x.op_type, y.op_type);
  d.texts("op_name", x.op_name, y.op_name);
  d.texts("source_file", x.source_file, y.source_file);
  d.numbers("source_line", x.source_line, y.source_line);
  d.numbers("source_end_line", x.source_end_line, y.source_end_line);
  d.numbers("source_column", x.source_column, y.source_column);
  d.numbers("source_end_column", x.source_end_column, y.source_end_column);
  d.numbers("stack_frame_id", x.stack_frame_id, y.stack_frame_id);
  d.texts("metadata", x.rest, y.rest);
  return d.take();
}

std::string extras_difference(const Extras* a, const Extras* b) {
  static const Extras kNone;
  const Extras &x = a != nullptr ? *a : kNone, &y = b != nullptr ? *b : kNone;
  Difference d;
  d.texts("frontend_attributes", x.frontend_attributes, y.frontend_attributes);
  d.texts("backend_config", x.backend_config, y.backend_config);
  d.texts("statistics", x.statistics, y.statistics);
  d.texts("origin", x.origin, y.origin);
  d.texts("parameter_replication", x.parameter_replication, y.parameter_replication);
  d.texts("result_accuracy", x.result_accuracy, y.result_accuracy);
  d.texts("unknown attributes", x.unknown, y.unknown);
  d.numbers("control predecessors", static_cast<int64_t>(x.control_predecessors.size()),
            static_cast<int64_t>(y.control_predecessors.size()));
  for (size_t k = 0; k < x.control_predecessors.size() && !d.found(); ++k) {
    d.texts("control predecessor", x.control_predecessors[k]->name,
            y.control_predecessors[k]->name);
  }
  return d.take();
}

std::string attribute_difference(const Instr& a, const Instr& b) {
  Difference d;
  d.compare("the kind of attributes", a.attributes.kind(), b.attributes.kind());
  if (d.found()) return d.take();
  for (const Field& f : def(a).fields) {
    bool same = same_value(f, f.member(const_cast<void*>(a.attributes.data())),
                           f.member(const_cast<void*>(b.attributes.data())));
    d.compare(f.name, same, true);
  }
  if (const auto* p = a.attributes.get_if<ParameterAttrs>()) {
    d.numbers("parameter", p->number, b.attrs<ParameterAttrs>().number);
  }
  if (const auto* c = a.attributes.get_if<ConstantAttrs>()) {
    d.add("constant", first_difference(*c->literal, *b.attrs<ConstantAttrs>().literal));
  }
  return d.take();
}

std::string instr_difference(const Instr& a, const Instr& b) {
  Difference d;
  d.texts("name", a.name, b.name);
  d.texts("opcode", name_of(a.opcode), name_of(b.opcode));
  d.shapes("shape", a.shape, b.shape);
  d.numbers("operands", a.num_operands(), b.num_operands());
  d.numbers("called computations", static_cast<int64_t>(a.called.size()),
            static_cast<int64_t>(b.called.size()));
  if (d.found()) return d.take();
  for (int k = 0; k < a.num_operands(); ++k) {
    d.texts(fmt::format("operand {}", k), a.operand(k)->name, b.operand(k)->name);
  }
  for (size_t k = 0; k < a.called.size(); ++k) {
    d.texts("called computation", a.called[k]->name(), b.called[k]->name());
  }
  d.add("attributes", attribute_difference(a, b));
  auto spelled = [](const Instr& i) {
    return i.annotation ? print_hlo_sharding(*i.annotation) : "";
  };
  d.texts("sharding", spelled(a), spelled(b));
  d.add("metadata", metadata_difference(a.metadata, b.metadata));
  d.add("attributes", extras_difference(a.extras, b.extras));
  return d.take();
}

std::string computation_difference(const Computation& a, const Computation& b) {
  Difference d;
  d.texts("name", a.name(), b.name());
  d.texts("execution_thread", a.execution_thread, b.execution_thread);
  size_t n = std::min(a.instrs().size(), b.instrs().size());
  for (size_t k = 0; k < n && !d.found(); ++k) {
    d.add(describe(*a.instrs()[k]), instr_difference(*a.instrs()[k], *b.instrs()[k]));
  }
  d.numbers("instructions", static_cast<int64_t>(a.instrs().size()),
            static_cast<int64_t>(b.instrs().size()));
  if (!d.found()) d.texts("root", a.root()->name, b.root()->name);
  return d.take();
}

void compare_stack(Difference* d, const StackTables& a, const StackTables& b) {
  d->compare("FileNames", a.files, b.files);
  d->compare("FunctionNames", a.functions, b.functions);
  d->compare("FileLocations", a.locations, b.locations);
  d->compare("StackFrames", a.frames, b.frames);
}

void compare_header(Difference* d, const ModuleAttrs& a, const ModuleAttrs& b) {
  d->compare("is_scheduled", a.is_scheduled, b.is_scheduled);
  d->compare("input_output_alias", a.aliases, b.aliases);
  d->compare("buffer_donor", a.donors, b.donors);
  d->numbers("parameters of entry_computation_layout",
             static_cast<int64_t>(a.entry_parameter_layouts.size()),
             static_cast<int64_t>(b.entry_parameter_layouts.size()));
  if (d->found()) return;
  for (size_t k = 0; k < a.entry_parameter_layouts.size(); ++k) {
    d->shapes("entry_computation_layout", a.entry_parameter_layouts[k],
              b.entry_parameter_layouts[k]);
  }
  d->shapes("entry_computation_layout", a.entry_result_layout, b.entry_result_layout);
  d->compare("propagation to parameters", a.propagate_to_parameters, b.propagate_to_parameters);
  d->compare("propagation to output", a.propagate_to_output, b.propagate_to_output);
  d->numbers("replica_count", a.replica_count, b.replica_count);
  d->numbers("num_partitions", a.num_partitions, b.num_partitions);
  d->texts("frontend_attributes", a.frontend_attributes, b.frontend_attributes);
  d->texts("attributes", a.rest, b.rest);
}

}  // namespace

std::string first_difference(const Literal& a, const Literal& b) {
  Difference d;
  d.shapes("shape", a.shape, b.shape);
  d.compare("elided", a.elided, b.elided);
  d.numbers("elements", static_cast<int64_t>(a.elements.size()),
            static_cast<int64_t>(b.elements.size()));
  if (d.found()) return d.take();
  for (size_t k = 0; k < a.elements.size(); ++k) {
    d.add(fmt::format("element {}", k), first_difference(a.elements[k], b.elements[k]));
  }
  if (d.found() || a.elided || !a.shape.is_array()) return d.take();
  if (a.splat == b.splat && a.data == b.data) return "";
  size_t size = static_cast<size_t>(storage_bytes(a.shape.type()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    if (std::memcmp(a.element(i), b.element(i), size) != 0) return fmt::format("element {}", i);
  }
  return "";
}

std::string first_difference(const Module& a, const Module& b) {
  Difference d;
  d.texts("module name", a.name(), b.name());
  compare_header(&d, a.attrs, b.attrs);
  compare_stack(&d, a.stack, b.stack);
  d.numbers("computations", static_cast<int64_t>(a.computations().size()),
            static_cast<int64_t>(b.computations().size()));
  for (size_t k = 0; k < a.computations().size() && !d.found(); ++k) {
    const Computation &x = *a.computations()[k], &y = *b.computations()[k];
    d.add(x.name(), computation_difference(x, y));
  }
  if (!d.found()) d.texts("entry", a.entry()->name(), b.entry()->name());
  return d.take();
}

}  // namespace gspmd
