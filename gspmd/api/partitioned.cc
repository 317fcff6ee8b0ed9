#include "gspmd/api/partitioned.h"

#include <nlohmann/json.hpp>

#include "gspmd/formats/stablehlo/export.h"
#include "gspmd/report/explain.h"
#include "gspmd/report/stats.h"

namespace gspmd {
namespace {

std::vector<std::string> spelled(const std::vector<Sharding>& shardings) {
  std::vector<std::string> out;
  for (Sharding s : shardings) out.push_back(print_hlo_sharding(spell(s)));
  return out;
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

PartitionedProgram partition(PartitionRequest request) {
  PartitionedProgram p;
  Format format = request.format.value_or(format_of(request.program, request.name));
  std::vector<std::string> warnings;
  std::unique_ptr<Module> m =
      read_program(format, std::move(request.program), request.name, &warnings);
  if (!request.free_parameters.empty()) m->attrs.propagate_to_parameters = request.free_parameters;
  if (!request.free_results.empty()) m->attrs.propagate_to_output = request.free_results;
  for (const Instr* i : m->entry()->params()) {
    for_each_leaf(i->shape, [&](Shape leaf, int) { p.parameters.push_back(leaf); });
  }
  for_each_leaf(m->entry()->root()->shape, [&](Shape leaf, int) { p.results.push_back(leaf); });
  p.compiled = partition(std::move(m), request.options);
  p.compiled.warnings.insert(p.compiled.warnings.begin(), warnings.begin(), warnings.end());
  return p;
}

}  // namespace gspmd
