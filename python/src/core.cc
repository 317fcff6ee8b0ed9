// The extension module `gspmd._core`: programs in, per-device programs and reports out. All that is
// friendlier than strings and lists is Python's, in the package around it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "gspmd/base/version.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/formats/stablehlo/import.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/pass/pipeline.h"
#include "gspmd/report/explain.h"
#include "gspmd/report/stats.h"

namespace nb = nanobind;

namespace gspmd {
namespace {

std::unique_ptr<Module> read(std::string program, const std::string& name) {
  auto context = std::make_shared<Context>();
  std::unique_ptr<Module> m = program.starts_with("HloModule")
                                  ? parse_hlo(context, std::move(program), name)
                                  : parse_stablehlo(context, std::move(program), name);
  verify(*m);
  return m;
}

void append_leaves(Shape s, std::vector<Shape>* out) {
  for_each_leaf(s, [&](Shape leaf, int) { out->push_back(leaf); });
}

// A partitioned program with what its interface was.
struct Partitioned {
  Compiled compiled;
  std::vector<Shape> parameters, results;  // global

  std::string hlo(bool metadata, bool shardings) const {
    return print_hlo(*compiled.module, {.metadata = metadata,
                                        .shardings = shardings,
                                        .replica_groups = PrintOptions::ReplicaGroups::kIota});
  }
  std::string stats() const {
    Stats s = compute_stats(*compiled.module);
    s.instructions_before = compiled.instructions_before;
    s.ms = {{"propagate", compiled.ms.propagate},
            {"partition", compiled.ms.partition},
            {"optimize", compiled.ms.optimize}};
    return to_json(s).dump();
  }
  std::string explanations() const { return to_json(explain(*compiled.module)).dump(); }
};

std::vector<std::string> spelled(const std::vector<Sharding>& shardings) {
  std::vector<std::string> out;
  for (Sharding s : shardings) out.push_back(print_hlo_sharding(spell(s)));
  return out;
}

// The one mesh that all shardings of the interface are over; null where there are several or none.
const Mesh* common_mesh(const Partitioned& p) {
  const Mesh* mesh = nullptr;
  for (const auto* list : {&p.compiled.parameter_shardings, &p.compiled.result_shardings}) {
    for (Sharding s : *list) {
      if (mesh != nullptr && mesh != &s.mesh()) return nullptr;
      mesh = &s.mesh();
    }
  }
  return mesh;
}

std::optional<std::string> mesh_in_sdy(const Partitioned& p) {
  const Mesh* mesh = common_mesh(p);
  if (mesh == nullptr) return std::nullopt;
  return print_sdy_mesh(name_mesh(*mesh));
}

std::vector<std::string> axes(const Partitioned& p) {
  std::vector<std::string> names;
  const Mesh* mesh = common_mesh(p);
  if (mesh == nullptr) return names;
  for (const auto& [name, size] : name_mesh(*mesh).axes) names.push_back(name);
  return names;
}

std::vector<std::string> spelled_in_sdy(const std::vector<Sharding>& shardings) {
  std::vector<std::string> out;
  for (Sharding s : shardings) out.push_back(print_sdy_sharding(spell_named(s, "gspmd_mesh")));
  return out;
}

Partitioned partition_program(std::string program, const std::string& name, int64_t num_partitions,
                              const std::vector<bool>& free_parameters,
                              const std::vector<bool>& free_results) {
  std::unique_ptr<Module> m = read(std::move(program), name);
  m->attrs.propagate_to_parameters = free_parameters;
  m->attrs.propagate_to_output = free_results;
  Partitioned p;
  for (const Instr* i : m->entry()->params()) append_leaves(i->shape, &p.parameters);
  append_leaves(m->entry()->root()->shape, &p.results);
  p.compiled = partition(std::move(m), {.num_partitions = num_partitions});
  return p;
}

}  // namespace
}  // namespace gspmd

NB_MODULE(_core, m) {
  using gspmd::Partitioned;
  nb::exception<gspmd::Error>(m, "Error", PyExc_ValueError);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const gspmd::Error& e) {
      nb::object type = nb::module_::import_("gspmd._core").attr("Error");
      PyErr_SetString(type.ptr(), e.render().c_str());
    }
  });
  m.attr("version") = std::string(gspmd::version());
  nb::class_<Partitioned>(m, "Partitioned")
      .def("hlo", &Partitioned::hlo, nb::arg("metadata") = true, nb::arg("shardings") = true)
      .def("stats", &Partitioned::stats, nb::call_guard<nb::gil_scoped_release>())
      .def("explanations", &Partitioned::explanations, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("mesh", &gspmd::mesh_in_sdy)
      .def_prop_ro("axes", &gspmd::axes)
      .def_prop_ro(
          "input_shardings",
          [](const Partitioned& p) { return gspmd::spelled(p.compiled.parameter_shardings); })
      .def_prop_ro("output_shardings",
                   [](const Partitioned& p) { return gspmd::spelled(p.compiled.result_shardings); })
      .def_prop_ro("sdy_input_shardings",
                   [](const Partitioned& p) {
                     return gspmd::spelled_in_sdy(p.compiled.parameter_shardings);
                   })
      .def_prop_ro(
          "sdy_output_shardings",
          [](const Partitioned& p) { return gspmd::spelled_in_sdy(p.compiled.result_shardings); })
      .def_prop_ro("warnings", [](const Partitioned& p) { return p.compiled.warnings; });
  m.def("partition", &gspmd::partition_program, nb::arg("program"), nb::arg("name"),
        nb::arg("num_partitions"), nb::arg("free_parameters"), nb::arg("free_results"),
        nb::call_guard<nb::gil_scoped_release>());
}
