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

// Bytes on each device at the program's interface, and the most it holds at once.
struct MemoryFigures {
  int64_t arguments = 0, results = 0;
  int64_t aliased = 0;  // of results that take over a parameter's buffer
  int64_t peak = 0;     // report/memory.h
};

// For each dimension the axes that split it, major to minor, named as in the user's mesh; parts of
// an axis as "x:(1)2".
using AxesOfDims = std::vector<std::vector<std::string>>;

// A partitioned program together with the interface of the program that it was made from.
struct PartitionedProgram {
  Compiled compiled;
  std::vector<Shape> parameters, results;  // global shapes of the leaves, in order
  PartitionRequest request;                // what was asked

  std::string text(Format format, const PrintOptions& options = {}) const;
  // StableHLO with the global arrays of the original as parameters and results.
  std::string stablehlo_with_global_interface() const;
  std::string stats_json() const;         // docs/stats.md
  std::string explanations_json() const;  // report/explain.h
  // In HLO's spelling, one for each leaf.
  std::vector<std::string> parameter_shardings() const, result_shardings() const;
  std::vector<AxesOfDims> parameter_axes() const, result_axes() const;
  MemoryFigures memory() const;
  // Runs the original on one virtual device and this on all, on made-up inputs, and compares
  // (engine/check.h). The verdict for people is appended to `report`.
  bool check(uint64_t seed, std::string* report) const;
};

// Throws Error for bad input.
PartitionedProgram partition(PartitionRequest request);

// How completion lays out what a custom-call takes and gives: for each array the mesh axes of each
// dimension, and the sharding in HLO's and in Shardy's spelling (over a mesh named @mesh).
struct CustomCallLayouts {
  struct Value {
    Shape shape;
    AxesOfDims axes;
    std::string hlo, sdy;
  };
  std::string backend_config;
  std::string mesh;  // #sdy.mesh<["x"=2]>
  std::vector<Value> operands, results;
};
// Of all calls of one target, in the order of the program with its functions inlined.
std::vector<CustomCallLayouts> complete_custom_calls(PartitionRequest request,
                                                     std::string_view target);

}  // namespace gspmd
