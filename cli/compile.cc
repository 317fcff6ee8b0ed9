#include "cli/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/annotate.h"
#include "cli/program_io.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/partition/decisions.h"
#include "gspmd/report/stats.h"

namespace gspmd::cli {
namespace {

// --machine: a built-in one by its name, else a file.
Machine machine_of(const Options& o) {
  if (o.machine.empty()) return {};
  if (const MachineFacts* known = find_machine(o.machine)) return machine_from(*known);
  if (o.machine.ends_with(".json"))
    return machine_from(read_machine(o.machine, read_all(o.machine)));
  throw UsageError(fmt::format("--machine: there is no machine '{}'", o.machine),
                   fmt::format("one of {}, or a file FILE.json", fmt::join(machine_names(), ", ")));
}

// --decisions: replays a file that exists; else keeps what is to be written into it.
std::unique_ptr<DecisionLog> decision_log(const Options& o) {
  if (o.decisions.empty()) return nullptr;
  if (!std::filesystem::exists(o.decisions)) return std::make_unique<DecisionLog>();
  return std::make_unique<DecisionReplay>(o.decisions, read_all(o.decisions));
}

}  // namespace

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
      throw UsageError(fmt::format("--stop-after: there is no stage {}", o.stop_after),
                       "import, propagate, choose-layouts, reconcile, optimize-reshards, localize, "
                       "clean-up");
    }
    c.stop_after = *stage;
  }
  c.partition.choose_layouts = !o.keep_layouts;
  c.partition.machine = machine_of(o);
  if (!o.dump_dir.empty()) {
    std::filesystem::create_directories(o.dump_dir);
    c.dump = [dir = o.dump_dir](Stage s, Module& m) {
      write_all(fmt::format("{}/{:02}.{}.hlo", dir, static_cast<int>(s), to_string(s)),
                print_hlo(m));
    };
  }
  return c;
}

Compiled compile(const Options& o, Phases* phases) {
  auto module = read_program(o, phases);
  annotate(o, module.get());
  CompileOptions options = compile_options(o);
  std::unique_ptr<DecisionLog> log = decision_log(o);
  options.partition.decider = log.get();
  Compiled c = partition(std::move(module), options);
  if (log != nullptr && !std::filesystem::exists(o.decisions))
    write_all(o.decisions, log->to_json(*c.module).dump(1) + "\n");
  phases->restart();
  phases->add("propagate", c.ms.propagate);
  phases->add("partition", c.ms.partition);
  phases->add("optimize", c.ms.optimize);
  for (const std::string& w : c.warnings) warn(o, w);
  return c;
}

void write_stats(const Options& o, const Compiled& c, const Phases& phases) {
  if (o.stats_file.empty()) return;
  Stats stats = compute_stats(*c.module);
  stats.instructions_before = c.instructions_before;
  stats.ms = phases.all();
  write_all(o.stats_file, to_json(stats).dump(2) + "\n");
}

}  // namespace gspmd::cli
