// The extension module `gspmd._core`: programs in, per-device programs and reports out. All that is
// friendlier than strings and lists is Python's, in the package around it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "gspmd/api/partitioned.h"
#include "gspmd/base/version.h"
#include "gspmd/report/stats.h"

namespace nb = nanobind;

namespace {

using gspmd::PartitionedProgram;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

std::string text(const PartitionedProgram& p, const std::string& format, bool metadata,
                 bool shardings) {
  return p.text(gspmd::format_named(format),
                {.metadata = metadata,
                 .shardings = shardings,
                 .replica_groups = gspmd::PrintOptions::ReplicaGroups::kIota});
}

std::pair<bool, std::string> check(const PartitionedProgram& p, uint64_t seed) {
  std::string report;
  bool agrees = p.check(seed, &report);
  return {agrees, report};
}

// Arguments, results, aliased, peak.
std::vector<int64_t> memory(const PartitionedProgram& p) {
  gspmd::MemoryFigures f = p.memory();
  return {f.arguments, f.results, f.aliased, f.peak};
}

PartitionedProgram partition(nb::bytes program, std::string name, int64_t num_partitions,
                             std::vector<bool> free_parameters, std::vector<bool> free_results) {
  gspmd::PartitionRequest request;
  request.program.assign(program.c_str(), program.size());
  request.name = std::move(name);
  request.free_parameters = std::move(free_parameters);
  request.free_results = std::move(free_results);
  request.options.num_partitions = num_partitions;
  nb::gil_scoped_release unlocked;
  return gspmd::partition(std::move(request));
}

// {"dims": [8, 4], "axes": [["x"], []], "hlo": "{devices=...}", "sdy": "#sdy.sharding<@mesh, ...>"}
nb::dict to_dict(const gspmd::CustomCallLayouts::Value& v) {
  nb::dict out;
  std::vector<int64_t> dims;
  if (v.shape.is_array()) dims.assign(v.shape.dims().begin(), v.shape.dims().end());
  out["dims"] = dims;
  out["axes"] = v.axes;
  out["hlo"] = v.hlo;
  out["sdy"] = v.sdy;
  return out;
}

nb::list custom_calls(nb::bytes program, int64_t num_partitions, std::vector<bool> free_parameters,
                      std::vector<bool> free_results, const std::string& target) {
  gspmd::PartitionRequest request;
  request.program.assign(program.c_str(), program.size());
  request.free_parameters = std::move(free_parameters);
  request.free_results = std::move(free_results);
  request.options.num_partitions = num_partitions;
  nb::list out;
  for (const gspmd::CustomCallLayouts& call : complete_custom_calls(std::move(request), target)) {
    nb::dict one;
    nb::list operands, results;
    for (const auto& v : call.operands) operands.append(to_dict(v));
    for (const auto& v : call.results) results.append(to_dict(v));
    one["backend_config"] = nb::bytes(call.backend_config.data(), call.backend_config.size());
    one["mesh"] = call.mesh;
    one["operands"] = operands;
    one["results"] = results;
    out.append(one);
  }
  return out;
}

// Bad input becomes gspmd.Error with the whole diagnostic: place, source line and hint.
void register_errors(nb::module_& m) {
  static PyObject* error = nb::exception<gspmd::Error>(m, "Error", PyExc_ValueError).ptr();
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const gspmd::Error& e) {
      PyErr_SetString(error, e.render().c_str());
    }
  });
}

}  // namespace

NB_MODULE(_core, m) {
  register_errors(m);
  m.attr("version") = std::string(gspmd::version());
  nb::class_<PartitionedProgram>(m, "Partitioned")
      .def("text", &text, nb::arg("format") = "hlo", nb::arg("metadata") = true,
           nb::arg("shardings") = true, Unlocked())
      .def("stablehlo_with_global_interface", &PartitionedProgram::stablehlo_with_global_interface,
           Unlocked())
      .def("stats_json", &PartitionedProgram::stats_json, Unlocked())
      .def("explanations_json", &PartitionedProgram::explanations_json, Unlocked())
      .def("check", &check, nb::arg("seed"), Unlocked())
      .def(
          "transcendentals",
          [](const PartitionedProgram& p) {
            return gspmd::compute_stats(*p.compiled.module).transcendentals;
          },
          Unlocked())
      .def("memory", &memory, Unlocked())
      .def_prop_ro("input_axes", &PartitionedProgram::parameter_axes)
      .def_prop_ro("output_axes", &PartitionedProgram::result_axes)
      .def_prop_ro("input_shardings", &PartitionedProgram::parameter_shardings)
      .def_prop_ro("output_shardings", &PartitionedProgram::result_shardings)
      .def_prop_ro(
          "num_partitions",
          [](const PartitionedProgram& p) { return p.compiled.module->attrs.num_partitions; })
      .def_prop_ro("warnings", [](const PartitionedProgram& p) { return p.compiled.warnings; });
  m.def("partition", &partition, nb::arg("program"), nb::arg("name"), nb::arg("num_partitions"),
        nb::arg("free_parameters"), nb::arg("free_results"));
  m.def("custom_calls", &custom_calls, nb::arg("program"), nb::arg("num_partitions"),
        nb::arg("free_parameters"), nb::arg("free_results"), nb::arg("target"));
}
