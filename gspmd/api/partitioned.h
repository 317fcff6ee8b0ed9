#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gspmd/api/program.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd {

// What an embedder asks for: a program as bytes of any format, and how to partition it.
struct PartitionRequest {
  std::string program;
  std::string name = "<program>";  // in diagnostics
  std::optional<Format> format;    // else told from the content
  // Whether completion may choose the sharding of each parameter and result: one flag for each, or
  // one for all; empty = as the program's header says.
  std::vector<bool> free_parameters, free_results;
  CompileOptions options;
};

// A partitioned program together with the interface of the program that it was made from.
struct PartitionedProgram {
  Compiled compiled;
  std::vector<Shape> parameters, results;  // global shapes of the leaves, in order

  std::string text(Format format, const PrintOptions& options = {}) const;
  // StableHLO with the global arrays of the original as parameters and results.
  std::string stablehlo_with_global_interface() const;
  std::string stats_json() const;         // docs/stats.md
  std::string explanations_json() const;  // report/explain.h
  // In HLO's spelling, one for each leaf.
  std::vector<std::string> parameter_shardings() const, result_shardings() const;
};

// Throws Error for bad input.
PartitionedProgram partition(PartitionRequest request);

}  // namespace gspmd
