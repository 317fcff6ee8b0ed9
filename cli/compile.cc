#include "cli/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/program_io.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/ir/frontend_attributes.h"

namespace gspmd::cli {
namespace {

// `%param` by number ("0" or "%0"), or any instruction of the entry by name.
Instr* find_instr(const Module& m, std::string_view name) {
  if (!name.empty() && name[0] == '%') name.remove_prefix(1);
  const Computation& entry = *m.entry();
  for (Instr* i : entry.instrs()) {
    if (i->name == name) return i;
  }
  size_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  bool is_number = error == std::errc() && end == name.data() + name.size();
  return is_number && number < entry.params().size() ? entry.params()[number] : nullptr;
}

ShardingSpelling read_spelling(const std::string& text) {
  size_t position = 0;
  try {
    bool sdy = text.rfind("#sdy", 0) == 0 || text.rfind("<@", 0) == 0;
    return sdy ? parse_sdy_sharding(text, &position) : parse_hlo_sharding(text, &position);
  } catch (const SpellingError& e) {
    throw Error(fmt::format("--annotate: {} at column {} of {}", e.message, e.offset + 1, text), e.hint);
  }
}

// "x=2,y=4" becomes the module's mesh "mesh".
void set_mesh(const std::string& text, Module* m) {
  if (text.empty()) return;
  NamedMesh mesh;
  size_t at = 0;
  while (at < text.size()) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, comma - at);
    size_t equals = part.find('=');
    int64_t size = 0;
    if (equals != std::string::npos) {
      std::from_chars(part.data() + equals + 1, part.data() + part.size(), size);
    }
    if (size < 1) throw Error(fmt::format("--mesh: {} is no axis", part), "write it as x=2,y=4");
    mesh.axes.emplace_back(part.substr(0, equals), size);
    at = comma + 1;
  }
  m->attrs.frontend_attributes = fmt::format("{{xla.sdy.meshes={{mesh = {}}}}}", print_sdy_mesh(mesh));
}

}  // namespace

void annotate(const Options& o, Module* m) {
  set_mesh(o.mesh, m);
  for (const std::string& text : o.annotations) {
    size_t equals = text.find('=');
    if (equals == std::string::npos) throw Error(fmt::format("--annotate: {} has no =", text), "write NAME={devices=[2,1]<=[2]}");
    Instr* i = find_instr(*m, text.substr(0, equals));
    if (i == nullptr) {
      throw Error(fmt::format("--annotate: the entry has no instruction or parameter {}", text.substr(0, equals)),
                  "use a name of the entry computation, or a parameter's number");
    }
    i->annotation = m->context().spelling(read_spelling(text.substr(equals + 1)));
  }
}

CompileOptions compile_options(const Options& o) {
  CompileOptions c;
  c.num_partitions = o.num_partitions;
  for (const std::string& what : o.propagation_to) {
    c.propagate.propagate_to_parameters |= what == "parameters";
    c.propagate.propagate_to_output |= what == "output";
  }
  if (!o.stop_after.empty()) {
    std::optional<Stage> stage = parse_stage(o.stop_after);
    if (!stage) {
      throw Error(fmt::format("--stop-after: there is no stage {}", o.stop_after),
                  "import, propagate, reconcile, optimize-reshards, localize, clean-up");
    }
    c.stop_after = *stage;
  }
  if (!o.dump_dir.empty()) {
    std::filesystem::create_directories(o.dump_dir);
    c.dump = [dir = o.dump_dir](Stage s, Module& m) {
      write_all(fmt::format("{}/{:02}.{}.hlo", dir, static_cast<int>(s), to_string(s)), print_hlo(m));
    };
  }
  return c;
}

Compiled compile(const Options& o, Phases* phases) {
  auto module = read_program(o, phases);
  annotate(o, module.get());
  Compiled c = partition(std::move(module), compile_options(o));
  phases->restart();
  phases->add("propagate", c.ms.propagate);
  phases->add("partition", c.ms.partition);
  phases->add("optimize", c.ms.optimize);
  for (const std::string& w : c.warnings) warn(o, w);
  return c;
}

}  // namespace gspmd::cli
