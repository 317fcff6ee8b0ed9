#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/program_io.h"
#include "gspmd/report/stats.h"

namespace gspmd::cli {
namespace {

struct StatsOptions : Options {
  bool json = false;
};

int run_stats(const StatsOptions& o) {
  Phases phases;
  auto module = read_program(o, &phases);
  if (o.num_partitions > 0) module->attrs.num_partitions = o.num_partitions;
  Stats stats = compute_stats(*module);
  phases.end("stats");
  bool json = o.json || o.output.ends_with(".json");
  write_all(o.output, json ? to_json(stats).dump(2) + "\n" : to_table(stats));
  if (o.time) phases.report();
  return 0;
}

}  // namespace

Command add_stats(CLI::App* app) {
  auto o = std::make_shared<StatsOptions>();
  CLI::App* command = app->add_subcommand(
      "stats", "Count collectives, bytes, operations and memory of a per-device program");
  add_input(command, o.get());
  command->add_flag("--json", o->json, "one JSON object instead of a table");
  command
      ->add_option("-o,--output", o->output, "where they go; - is standard output; *.json is JSON")
      ->capture_default_str();
  command
      ->add_option("--num-partitions", o->num_partitions,
                   "how many devices; otherwise from the program")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->footer(
      "Examples:\n"
      "  gspmd stats partitioned.hlo          a table\n"
      "  gspmd stats partitioned.hlo --json   for other programs; docs/stats.md says what is what\n"
      "Loops count as often as they run, where their length is known, else once.");
  return {command, [o] { return run_stats(*o); }};
}

}  // namespace gspmd::cli
