#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gspmd/base/error.h"

namespace gspmd::cli {

// The command line is wrong in a way that only the program shows: exit code 2, not 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

// What every command may be given. A command shows only the groups that mean something to it:
//   add_input, add_output, add_partitioning, add_pipeline, add_execution.
struct Options {
  std::string input;          // file, or "-" = standard input
  std::string output = "-";   // file, or "-" = standard output
  std::string format;         // of the input: "hlo", "pb", "mlir"; empty = told from content
  std::string output_format;  // empty = told from the output's extension, else HLO text
  bool metadata = true;       // of the output
  bool quiet = false;         // no warnings, no progress
  bool time = false;          // milliseconds of each phase, to standard error
  std::string stats_file;     // JSON; empty = none

  int64_t num_partitions = 0;               // 0 = from the header, else from the mesh
  std::string mesh;                         // "x=2,y=4"
  std::vector<std::string> annotations;     // "NAME={devices=[2,4]<=[8]}"
  std::vector<std::string> custom_rules;    // "TARGET=a b, b c -> a c"
  std::vector<std::string> propagation_to;  // "parameters", "output"
  std::string stop_after;
  bool keep_layouts = false;
  std::string decisions;  // JSON; empty = none
  std::string machine;    // a built-in one's name, or a JSON file; empty = the default
  std::string dump_dir;
  std::string replica_groups = "iota";  // or "as-written"

  uint64_t seed = 0;
  std::vector<std::string> inputs;  // .npy, one for each parameter
  int threads = 0;                  // 0 = one for each core
  double scale = 1;                 // of made-up float inputs
  int64_t max_trips = 0;            // 0 = the engine's default
};

void add_input(CLI::App* command, Options* o);
void add_output(CLI::App* command, Options* o);
void add_partitioning(CLI::App* command, Options* o);
void add_pipeline(CLI::App* command, Options* o);
void add_execution(CLI::App* command, Options* o);

// Milliseconds of named phases, for --time and --stats.
class Phases {
 public:
  Phases();
  // Ends a phase: the time since the last call (or since the start).
  void end(const std::string& phase);
  void add(const std::string& phase, double ms) { ms_.emplace_back(phase, ms); }
  // Forgets the time since the last call: it was added by name.
  void restart();
  // With "total", their sum, as the last.
  std::vector<std::pair<std::string, double>> all() const;
  void report() const;  // to standard error

 private:
  double now() const;
  double last_ = 0;
  std::vector<std::pair<std::string, double>> ms_;
};

// A command: its options, and what it does. The result is the exit code.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

// One function for each command, in a file of its own; main.cc lists them.
Command add_convert(CLI::App* app);
Command add_stats(CLI::App* app);
Command add_check(CLI::App* app);
Command add_explain(CLI::App* app);
Command add_partition(CLI::App* app);
Command add_propagate(CLI::App* app);
Command add_run(CLI::App* app);

}  // namespace gspmd::cli
