#include "gspmd/formats/stablehlo/export.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>

#include "gspmd/formats/stablehlo/exporter.h"
#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/custom_call.h"
#include "gspmd/sharding/refinement.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {
namespace stablehlo {

void Exporter::fail(const Instr& i, std::string message) const {
  throw error_at(module_, i, std::move(message), "write the program as HLO text instead");
}

void Exporter::line(std::string_view text) {
  out_.append(static_cast<size_t>(2 * indent_), ' ');
  out_ += text;
  out_ += '\n';
}

std::string Exporter::fresh() { return fmt::format("%{}", next_++); }

std::string Exporter::define(Shape s) {
  std::string name = fresh();
  types_[name] = s;
  return name;
}

std::string Exporter::types_of(const Leaves& values) const {
  std::string out;
  for (const std::string& v : values) {
    if (!out.empty()) out += ", ";
    out += type_text(types_.at(v));
  }
  return out;
}

Leaves Exporter::all_operands(const Instr& i) const {
  Leaves all;
  for (const Instr* o : i.operands) {
    const Leaves& more = leaves(*o);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::string Exporter::annotation(const Instr& i) const {
  std::vector<std::string> all;
  if (i.annotation != nullptr)
    all.push_back("mhlo.sharding = " + quoted(print_hlo_sharding(*i.annotation)));
  if (i.opcode == Opcode::kCustomCall && has_own_rule(i))
    all.push_back("sdy.sharding_rule = " + *frontend_attribute(i, kSdyRule));
  return all.empty() ? "" : fmt::format(" {{{}}}", absl::StrJoin(all, ", "));
}

void Exporter::emit(const Instr& i, std::string_view name, const Leaves& operands,
                    const std::vector<std::string>& attributes, std::string_view regions) {
  std::string operand_types = types_of(operands);
  Leaves results;
  for_each_leaf(i.shape, [&](Shape s, int) { results.push_back(define(s)); });
  std::string head = absl::StrJoin(results, ", ");
  if (!head.empty()) head += " = ";
  std::string props =
      attributes.empty() ? "" : fmt::format(" <{{{}}}>", absl::StrJoin(attributes, ", "));
  line(fmt::format("{}\"{}\"({}){}{}{} : ({}) -> ({})", head, name, absl::StrJoin(operands, ", "),
                   props, regions, annotation(i), operand_types, types_of(results)));
  set(i, std::move(results));
}

std::string Exporter::block(const Computation& c, const std::vector<Leaves>& arguments,
                            std::string_view header, std::string_view terminator) {
  std::string before = std::move(out_);
  out_.clear();
  indent_ += 2;
  Leaves results = body(c, arguments);
  line(fmt::format("\"{}\"({}) : ({}) -> ()", terminator, absl::StrJoin(results, ", "),
                   types_of(results)));
  indent_ -= 2;
  std::string inside = std::move(out_);
  out_ = std::move(before);
  return fmt::format("{{{}\n{}{}}}", header, inside,
                     std::string(static_cast<size_t>(2 * indent_), ' '));
}

std::string Exporter::region(const Computation& c, std::string_view terminator) {
  std::vector<Leaves> arguments;
  std::string declared;
  for (const Instr* p : c.params()) {
    arguments.emplace_back();
    for_each_leaf(p->shape, [&](Shape s, int) {
      arguments.back().push_back(define(s));
      declared += fmt::format("{}{}: {}", declared.empty() ? "" : ", ", arguments.back().back(),
                              type_text(s));
    });
  }
  std::string header = declared.empty() ? "" : fmt::format("^bb0({}):", declared);
  return block(c, arguments, header, terminator);
}

Leaves Exporter::body(const Computation& c, const std::vector<Leaves>& arguments) {
  for (size_t k = 0; k < c.params().size(); ++k) set(*c.params()[k], arguments[k]);
  for (const Instr* i : c.instrs()) {
    if (i->opcode != Opcode::kParameter) instr(*i);
  }
  return leaves(*c.root());
}

void Exporter::instr(const Instr& i) {
  for_each_leaf(i.shape, [&](Shape s, int) {
    if (s.is_dynamic() || (!s.is_array() && !s.is_token()))
      fail(i, fmt::format("{} has no StableHLO type", to_string(s)));
  });
  if (Form form = form_of(i.opcode)) return form(*this, i);
  generic(i);
}

void Exporter::generic(const Instr& i) {
  const OpDef& d = def(i);
  std::string name(d.stablehlo.empty() ? d.name : d.stablehlo);
  std::replace(name.begin(), name.end(), '-', '_');
  std::string regions;
  for (const Computation* c : i.called) regions += (regions.empty() ? " (" : ", ") + region(*c);
  if (!regions.empty()) regions += ")";
  emit(i, "stablehlo." + name, all_operands(i), attribute_texts(i), regions);
}

namespace {

void print_header(const Module& m, std::string* out) {
  std::string name(m.name());
  bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$';
  });
  *out += fmt::format(
      "module @{} attributes {{mhlo.num_partitions = {} : i32, mhlo.num_replicas = {} : i32}} {{\n",
      plain ? name : quoted(name), m.attrs.num_partitions, m.attrs.replica_count);
}

std::string argument_attributes(const Module& m, const Instr& p, const std::string& sharding) {
  std::vector<std::string> all;
  if (!sharding.empty()) all.push_back(sharding);
  int64_t number = p.attrs<ParameterAttrs>().number;
  for (const Alias& a : m.attrs.aliases) {
    if (a.parameter == number && a.parameter_index.empty() && a.output_index.size() <= 1) {
      all.push_back(fmt::format("tf.aliasing_output = {} : i32",
                                a.output_index.empty() ? 0 : a.output_index[0]));
    }
  }
  for (const Donor& d : m.attrs.donors) {
    if (d.parameter == number && d.index.empty()) all.push_back("jax.buffer_donor = true");
  }
  return all.empty() ? "" : fmt::format(" {{{}}}", absl::StrJoin(all, ", "));
}

std::string hlo_sharding(const ShardingSpelling* s) {
  bool useful = s != nullptr && s->kind != ShardingSpelling::Kind::kUnknown;
  return useful ? fmt::format("mhlo.sharding = {}", quoted(print_hlo_sharding(*s))) : "";
}

}  // namespace
}  // namespace stablehlo

std::string print_stablehlo(const Module& m) {
  using namespace stablehlo;
  std::string out;
  print_header(m, &out);
  Exporter e(m);
  std::string declared, results;
  std::vector<Leaves> arguments;
  for (const Instr* p : m.entry()->params()) {
    if (!p->shape.is_array()) e.fail(*p, "a tuple as a parameter of the program");
    arguments.push_back({e.define(p->shape)});
    declared +=
        fmt::format("{}{}: {}{}", declared.empty() ? "" : ", ", arguments.back()[0],
                    type_text(p->shape), argument_attributes(m, *p, hlo_sharding(p->annotation)));
  }
  Leaves all = e.body(*m.entry(), arguments);
  const Instr& root = *m.entry()->root();
  for_each_leaf(root.shape, [&](Shape s, int k) {
    const ShardingSpelling* of = root.annotation;
    bool tuple = of != nullptr && of->kind == ShardingSpelling::Kind::kTuple;
    if (tuple) of = &of->elements.at(static_cast<size_t>(k));
    std::string sharding = hlo_sharding(of);
    if (!sharding.empty()) sharding = fmt::format(" {{{}}}", sharding);
    results += fmt::format("{}{}{}", results.empty() ? "" : ", ", type_text(s), sharding);
  });
  e.line(
      fmt::format("\"func.return\"({}) : ({}) -> ()", absl::StrJoin(all, ", "), e.types_of(all)));
  out += fmt::format("  func.func public @main({}) -> ({}) {{\n{}  }}\n}}\n", declared, results,
                     e.take());
  return out;
}

namespace stablehlo {
namespace {

// The one mesh of an interface, null if nothing is split; Error for what a region can not say.
const Mesh* mesh_of(const GlobalInterface& g) {
  const Mesh* mesh = nullptr;
  const auto look = [&](const std::vector<Sharding>& shardings, const std::vector<Shape>& shapes) {
    for (size_t k = 0; k < shardings.size(); ++k) {
      Sharding s = shardings[k];
      if (!s) continue;  // a token
      if (!s->pending.empty()) throw Error("a parameter or result is unreduced");
      if (mesh != nullptr && mesh != &s.mesh() && !s->splitting().empty())
        throw Error("parameters and results are over several meshes");
      if (mesh == nullptr || !s->splitting().empty()) mesh = &s.mesh();
      for (int d = 0; d < shapes[k].rank(); ++d) {
        if (shapes[k].dim(d) % s.mesh().product(s.dim(d)) != 0)
          throw Error(fmt::format("{} is split unevenly", to_string(shapes[k])));
      }
    }
  };
  look(g.parameter_shardings, g.parameters);
  look(g.result_shardings, g.results);
  return mesh;
}

std::string sdy_text(Sharding s, const Mesh* mesh) {
  if (!s || s->splitting().empty()) {
    std::string dims;
    for (int d = 0; s && d < s.rank(); ++d) dims += d == 0 ? "{}" : ", {}";
    return fmt::format("<@gspmd_mesh, [{}]>", dims);
  }
  (void)mesh;
  std::string text = print_sdy_sharding(spell_named(s, "gspmd_mesh"));
  return text.substr(text.find('<'));
}

std::string list_of(const std::vector<Sharding>& shardings, const Mesh* mesh) {
  std::string out;
  for (Sharding s : shardings) out += (out.empty() ? "" : ", ") + sdy_text(s, mesh);
  return "[" + out + "]";
}

}  // namespace
}  // namespace stablehlo

std::string print_stablehlo(const Module& m, const GlobalInterface& g) {
  using namespace stablehlo;
  const Mesh* mesh = mesh_of(g);
  NamedMesh named = mesh == nullptr ? NamedMesh{} : name_mesh(*mesh);
  if (named.axes.empty()) named.axes.emplace_back("d", m.attrs.num_partitions);
  std::string out, mesh_text = print_sdy_mesh(named), axes;
  for (const auto& [name, size] : named.axes) axes += (axes.empty() ? "" : ", ") + quoted(name);
  print_header(m, &out);
  out += fmt::format("  sdy.mesh @gspmd_mesh = {}\n", mesh_text.substr(mesh_text.find('<')));
  Exporter e(m);
  std::string outer, inner, given, global_types, results;
  std::vector<Leaves> arguments;
  const auto& params = m.entry()->params();
  for (size_t k = 0; k < params.size(); ++k) {
    std::string name = fmt::format("%arg{}", k), comma = k == 0 ? "" : ", ";
    std::string sharding =
        "sdy.sharding = #sdy.sharding" + sdy_text(g.parameter_shardings[k], mesh);
    outer += fmt::format("{}{}: {}{}", comma, name, type_text(g.parameters[k]),
                         argument_attributes(m, *params[k], sharding));
    given += comma + name;
    global_types += comma + type_text(g.parameters[k]);
    arguments.push_back({e.define(params[k]->shape)});
    inner += fmt::format("{}{}: {}", comma, arguments.back()[0], type_text(params[k]->shape));
  }
  Leaves all = e.body(*m.entry(), arguments);
  e.line(fmt::format("sdy.return {}{}{}", absl::StrJoin(all, ", "), all.empty() ? "" : " : ",
                     e.types_of(all)));
  std::string result_types;
  for (size_t k = 0; k < g.results.size(); ++k) {
    std::string comma = k == 0 ? "" : ", ";
    results += fmt::format("{}{} {{sdy.sharding = #sdy.sharding{}}}", comma,
                           type_text(g.results[k]), sdy_text(g.result_shardings[k], mesh));
    result_types += comma + type_text(g.results[k]);
  }
  Leaves names;
  for (size_t k = 0; k < g.results.size(); ++k)
    names.push_back(g.results.size() == 1 ? "%r" : fmt::format("%r#{}", k));
  std::string head = names.empty()       ? ""
                     : names.size() == 1 ? "%r = "
                                         : fmt::format("%r:{} = ", names.size());
  out += fmt::format("  func.func public @main({}) -> ({}) {{\n", outer, results);
  out += fmt::format(
      "    {}sdy.manual_computation({}) in_shardings={} out_shardings={} manual_axes={{{}}} ({}) "
      "{{\n",
      head, given, list_of(g.parameter_shardings, mesh), list_of(g.result_shardings, mesh), axes,
      inner);
  out += e.take();
  out += fmt::format("    }} : ({}) -> ({})\n", global_types, result_types);
  out += fmt::format("    return {}{}{}\n  }}\n}}\n", absl::StrJoin(names, ", "),
                     names.empty() ? "" : " : ", result_types);
  return out;
}

}  // namespace gspmd
