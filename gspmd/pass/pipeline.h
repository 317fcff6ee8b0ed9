#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/partition/reconcile.h"
#include "gspmd/propagate/propagate.h"

namespace gspmd {

// The stages of design, section 3, in order; `--stop-after` names them.
enum class Stage : uint8_t {
  kImport,
  kPropagate,
  kChooseLayouts,
  kReconcile,
  kOptimizeReshards,
  kLocalize,
  kCleanUp
};
std::string_view to_string(Stage s);
std::optional<Stage> parse_stage(std::string_view name);

struct CompileOptions {
  int64_t num_partitions = 0;  // 0: from the header, else from the meshes
  PropagateOptions propagate;
  PartitionOptions partition;
  Stage stop_after = Stage::kCleanUp;
  // Called after every stage with the module as it then is, shardings written as annotations.
  std::function<void(Stage, Module&)> dump;
  // Called after completion.
  std::function<void(const Module&, const ShardingTable&)> completed;
};

struct Compiled {
  // The per-device program; or, where the pipeline stopped earlier, the global one with its
  // shardings as annotations.
  std::unique_ptr<Module> module;
  std::vector<Sharding> parameter_shardings;  // of the leaves of all entry parameters, in order
  std::vector<Sharding> result_shardings;
  std::vector<std::string> warnings;  // rendered diagnostics
  int64_t instructions_before = 0;
  struct Milliseconds {
    double propagate = 0, partition = 0, optimize = 0;
  } ms;
};

// Completes and partitions. Takes over `module`, which must be verified; throws Error for bad
// input.
Compiled partition(std::unique_ptr<Module> module, const CompileOptions& options);

// How many devices: the option, else the header, else the largest mesh of an annotation; 1 where
// none says.
int64_t num_partitions_of(const Module& module, int64_t option);

}  // namespace gspmd
