#include "gspmd/api/partitioned.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gspmd/engine/check.h"
#include "gspmd/engine/inputs.h"
#include "gspmd/formats/stablehlo/export.h"
#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/pass/boundaries.h"
#include "gspmd/pass/sdy_manual.h"
#include "gspmd/report/explain.h"
#include "gspmd/report/memory.h"
#include "gspmd/report/stats.h"

namespace gspmd {
namespace {

std::vector<std::string> spelled(const std::vector<Sharding>& shardings) {
  std::vector<std::string> out;
  for (Sharding s : shardings)  // tokens have none
    out.push_back(print_hlo_sharding(s ? spell(s) : ShardingSpelling()));
  return out;
}

AxesOfDims axes_of(Sharding s) {
  AxesOfDims out;
  if (!s) return out;
  for (const NamedDim& d : spell_named(s, "mesh").dims) {
    out.emplace_back();
    for (const NamedAxis& a : d.axes) {
      out.back().push_back(a.size == 0 ? a.name : fmt::format("{}:({}){}", a.name, a.pre, a.size));
    }
  }
  return out;
}

std::vector<AxesOfDims> axes_of(const std::vector<Sharding>& shardings) {
  std::vector<AxesOfDims> out;
  for (Sharding s : shardings) out.push_back(axes_of(s));
  return out;
}

CustomCallLayouts::Value layout_of(Shape shape, Sharding s) {
  if (!s) return {shape, {}, "{replicated}", ""};
  return {shape, axes_of(s), print_hlo_sharding(spell(s)),
          print_sdy_sharding(spell_named(s, "mesh"))};
}

CustomCallLayouts layouts_of(const Instr& call, const ShardingTable& shardings) {
  CustomCallLayouts out;
  if (call.extras != nullptr) {
    std::string_view raw = call.extras->backend_config;
    bool string = raw.size() > 1 && raw.starts_with('"');
    out.backend_config = string ? unescape(raw.substr(1, raw.size() - 2)) : std::string(raw);
  }
  const auto add = [&](const Instr& i, std::vector<CustomCallLayouts::Value>* to) {
    absl::Span<const Sharding> leaves = shardings.of(i);
    for_each_leaf(i.shape, [&](Shape s, int k) {
      to->push_back(layout_of(s, leaves[static_cast<size_t>(k)]));
      if (leaves[static_cast<size_t>(k)]) {
        out.mesh = print_sdy_mesh(name_mesh(leaves[static_cast<size_t>(k)].mesh()));
      }
    });
  };
  for (const Instr* o : call.operands) add(*o, &out.operands);
  add(call, &out.results);
  return out;
}

std::unique_ptr<Module> read(const PartitionRequest& r, std::vector<std::string>* warnings) {
  return read_program(r.format.value_or(format_of(r.program, r.name)), r.program, r.name, warnings);
}

std::unique_ptr<Module> read_with_freedom(const PartitionRequest& r,
                                          std::vector<std::string>* warnings) {
  std::unique_ptr<Module> m = read(r, warnings);
  if (!r.free_parameters.empty()) m->attrs.propagate_to_parameters = r.free_parameters;
  if (!r.free_results.empty()) m->attrs.propagate_to_output = r.free_results;
  return m;
}

}  // namespace

std::string PartitionedProgram::text(Format format, const PrintOptions& options) const {
  return write_program(format, *compiled.module, options);
}

std::string PartitionedProgram::stablehlo_with_global_interface() const {
  return print_stablehlo(*compiled.module, {parameters, results, compiled.parameter_shardings,
                                            compiled.result_shardings});
}

std::string PartitionedProgram::stats_json() const {
  Stats s = compute_stats(*compiled.module);
  s.instructions_before = compiled.instructions_before;
  const auto& ms = compiled.ms;
  s.ms = {{"propagate", ms.propagate},
          {"partition", ms.partition},
          {"optimize", ms.optimize},
          {"total", ms.propagate + ms.partition + ms.optimize}};
  return to_json(s).dump();
}

std::string PartitionedProgram::explanations_json() const {
  return to_json(explain(*compiled.module)).dump();
}

std::vector<std::string> PartitionedProgram::parameter_shardings() const {
  return spelled(compiled.parameter_shardings);
}

std::vector<std::string> PartitionedProgram::result_shardings() const {
  return spelled(compiled.result_shardings);
}

std::vector<AxesOfDims> PartitionedProgram::parameter_axes() const {
  return axes_of(compiled.parameter_shardings);
}

std::vector<AxesOfDims> PartitionedProgram::result_axes() const {
  return axes_of(compiled.result_shardings);
}

MemoryFigures PartitionedProgram::memory() const {
  const Module& m = *compiled.module;
  MemoryFigures f;
  for (const Instr* p : m.entry()->params()) f.arguments += p->shape.bytes();
  f.results = m.entry()->root()->shape.bytes();
  for (const Alias& a : m.attrs.aliases) {
    Shape s = m.entry()->root()->shape;
    for (int64_t k : a.output_index) s = s.element(static_cast<int>(k));
    f.aliased += s.bytes();
  }
  f.peak = least_peak_bytes(m);
  return f;
}

bool PartitionedProgram::check(uint64_t seed, std::string* report) const {
  std::unique_ptr<Module> original = read(request, nullptr);
  lower_sdy_manual(original.get());  // one device runs the borders one by one
  RunOptions run;
  run.num_devices = compiled.module->attrs.num_partitions;
  CheckInput in{*original,
                *compiled.module,
                compiled.parameter_shardings,
                compiled.result_shardings,
                manual_boundaries(*original, run.num_devices),
                seed,
                make_inputs(*original, seed)};
  CheckReport r = gspmd::check(in, run);
  *report += r.to_text(true);
  return r.agrees();
}

std::vector<CustomCallLayouts> complete_custom_calls(PartitionRequest request,
                                                     std::string_view target) {
  std::vector<CustomCallLayouts> out;
  request.options.completed = [&](const Module& m, const ShardingTable& shardings) {
    for (const auto& c : m.computations()) {
      for (const Instr* i : c->instrs()) {
        bool wanted =
            i->opcode == Opcode::kCustomCall && i->attrs<CustomCallAttrs>().target == target;
        if (wanted) out.push_back(layouts_of(*i, shardings));
      }
    }
  };
  request.options.stop_after = Stage::kPropagate;
  std::vector<std::string> warnings;
  partition(read_with_freedom(request, &warnings), request.options);
  return out;
}

PartitionedProgram partition(PartitionRequest request) {
  PartitionedProgram p;
  std::vector<std::string> warnings;
  std::unique_ptr<Module> m = read_with_freedom(request, &warnings);
  for (const Instr* i : m->entry()->params()) {
    for_each_leaf(i->shape, [&](Shape leaf, int) { p.parameters.push_back(leaf); });
  }
  for_each_leaf(m->entry()->root()->shape, [&](Shape leaf, int) { p.results.push_back(leaf); });
  p.compiled = partition(std::move(m), request.options);
  p.compiled.warnings.insert(p.compiled.warnings.begin(), warnings.begin(), warnings.end());
  p.request = std::move(request);
  return p;
}

}  // namespace gspmd
