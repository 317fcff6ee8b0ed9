#include "gspmd/api/partitioned.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gspmd/engine/check.h"
#include "gspmd/engine/inputs.h"
#include "gspmd/formats/stablehlo/export.h"
#include "gspmd/pass/boundaries.h"
#include "gspmd/pass/sdy_manual.h"
#include "gspmd/report/explain.h"
#include "gspmd/report/memory.h"
#include "gspmd/report/stats.h"

namespace gspmd {
namespace {

std::vector<std::string> spelled(const std::vector<Sharding>& shardings) {
  std::vector<std::string> out;
  for (Sharding s : shardings) out.push_back(print_hlo_sharding(spell(s)));
  return out;
}

std::vector<AxesOfDims> axes_of(const std::vector<Sharding>& shardings) {
  std::vector<AxesOfDims> out;
  for (Sharding s : shardings) {
    out.emplace_back();
    for (const NamedDim& d : spell_named(s, "mesh").dims) {
      out.back().emplace_back();
      for (const NamedAxis& a : d.axes) {
        out.back().back().push_back(a.size == 0 ? a.name
                                                : fmt::format("{}:({}){}", a.name, a.pre, a.size));
      }
    }
  }
  return out;
}

std::unique_ptr<Module> read(const PartitionRequest& r, std::vector<std::string>* warnings) {
  return read_program(r.format.value_or(format_of(r.program, r.name)), r.program, r.name, warnings);
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
  f.peak = peak_bytes(m);
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

PartitionedProgram partition(PartitionRequest request) {
  PartitionedProgram p;
  std::vector<std::string> warnings;
  std::unique_ptr<Module> m = read(request, &warnings);
  if (!request.free_parameters.empty()) m->attrs.propagate_to_parameters = request.free_parameters;
  if (!request.free_results.empty()) m->attrs.propagate_to_output = request.free_results;
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
