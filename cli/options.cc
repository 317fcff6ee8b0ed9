#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>

#include "gspmd/partition/machine.h"

namespace gspmd::cli {

void add_input(CLI::App* command, Options* o) {
  command->add_option("IN", o->input, "the program: a file, or - for standard input")->required();
  command
      ->add_option("--format", o->format,
                   "of the program; otherwise told from its content and extension")
      ->check(CLI::IsMember({"hlo", "pb", "mlir"}));
  command->add_flag("--quiet,-q", o->quiet, "no warnings");
  command->add_flag("--time", o->time, "print the milliseconds of each phase to standard error");
}

void add_output(CLI::App* command, Options* o) {
  command->add_option("-o,--output", o->output, "where the result goes; - is standard output")
      ->capture_default_str();
  command
      ->add_option("--output-format", o->output_format,
                   "of the result; otherwise told from the extension, else HLO text")
      ->check(CLI::IsMember({"hlo", "pb", "mlir"}));
  command->add_flag("!--no-metadata", o->metadata, "leave source places out of the result");
}

void add_partitioning(CLI::App* command, Options* o) {
  command
      ->add_option("--num-partitions", o->num_partitions,
                   "how many devices; otherwise from the program, else from the mesh")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("--mesh", o->mesh, "named axes with their sizes: x=2,y=4");
  command
      ->add_option("--annotate", o->annotations,
                   "shard an instruction, or a parameter by its number: 'w={devices=[2,4]<=[8]}', "
                   "'0={replicated}'; over --mesh also 'w=[{x},{}]'; repeatable")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option(
      "--machine", o->machine,
      "what prices are those of: " + fmt::format("{}", fmt::join(machine_names(), ", ")) +
          ", or a JSON file (docs/machines.md); otherwise a typical accelerator");
  command
      ->add_option(
          "--custom-rule", o->custom_rules,
          "how custom-calls of a target may be split: 'my_dot=a b, b c -> a c', a name for "
          "each dimension, _ for one that is not split; repeatable")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--allow-propagation-to", o->propagation_to,
                   "let completion choose shardings of entry parameters, results or both")
      ->delimiter(',')
      ->check(CLI::IsMember({"parameters", "output"}));
}

void add_pipeline(CLI::App* command, Options* o) {
  command->add_option(
      "--stop-after", o->stop_after,
      "write the program as it is after a stage: import, propagate, choose-layouts, "
      "reconcile, optimize-reshards, localize, clean-up");
  command->add_flag("--keep-layouts", o->keep_layouts,
                    "lay every value out as completion says, even where another layout costs less");
  command->add_option("--decisions", o->decisions,
                      "a JSON file: where it does not exist, the choices made are written into it, "
                      "with the prices of what lost; where it does, they are made as it says");
  command->add_option("--dump-dir", o->dump_dir,
                      "write the program after each stage into this folder");
  command->add_option("--stats", o->stats_file,
                      "write figures of the result as JSON into this file");
  command
      ->add_option("--replica-groups", o->replica_groups,
                   "how groups that the program wrote over a mesh are printed: as iota and lists, "
                   "or as written")
      ->check(CLI::IsMember({"iota", "as-written"}))
      ->capture_default_str();
}

void add_execution(CLI::App* command, Options* o) {
  command->add_option("--seed", o->seed, "of made-up inputs")->capture_default_str();
  command->add_option("--scale", o->scale, "multiplies made-up floats; a power of two")
      ->capture_default_str();
  command->add_option("--max-trips", o->max_trips,
                      "when a loop of unknown length counts as endless; 10000 unless given");
  command->add_option("--inputs", o->inputs, "files of inputs (.npy), one for each parameter")
      ->delimiter(',');
  command->add_option("--threads", o->threads, "0 = one for each core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
}

Phases::Phases() { restart(); }

double Phases::now() const {
  auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(since).count();
}

void Phases::restart() { last_ = now(); }

void Phases::end(const std::string& phase) {
  double t = now();
  add(phase, t - last_);
  last_ = t;
}

std::vector<std::pair<std::string, double>> Phases::all() const {
  std::vector<std::pair<std::string, double>> out = ms_;
  double total = 0;
  for (const auto& [phase, ms] : ms_) total += ms;
  out.emplace_back("total", total);
  return out;
}

void Phases::report() const {
  for (const auto& [phase, ms] : all()) fmt::print(stderr, "{:<12}{:>10.2f} ms\n", phase, ms);
}

}  // namespace gspmd::cli
