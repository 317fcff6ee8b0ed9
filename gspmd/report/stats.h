#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gspmd/ir/module.h"

namespace gspmd {

// What a per-device program does, on one device. Loops count as often as they run
// (ops/trip_count.h); one of unknown length counts once. `executed`, bytes and operations are so
// weighted, `count` is not.
struct CollectiveStats {
  int64_t count = 0;    // instructions
  double executed = 0;  // runs
  double bytes = 0;     // of the operands
  // What a device sends on a ring of n devices, times the operand: all-reduce 2(n-1)/n, all-gather
  // n-1, reduce-scatter, all-to-all and others (n-1)/n, collective-permute and send 1.
  double wire_bytes = 0;
};

// One collective instruction with its weights.
struct CountedCollective {
  const Instr* instr = nullptr;
  double runs = 0, bytes = 0, wire_bytes = 0;
};

struct Stats {
  int64_t num_partitions = 1;
  int64_t instructions_before = 0;  // of the program it was made from; 0 = unknown
  int64_t instructions = 0;         // of all computations
  std::map<std::string, CollectiveStats> collectives;  // by HLO opcode, without -start
  std::vector<CountedCollective> each;                 // in the order of the program
  double total_bytes = 0, wire_bytes = 0;              // sums over kinds
  double unknown_loop_wire_bytes = 0;  // part of wire_bytes: in loops of unknown length
  int64_t loops_known = 0, loops_unknown = 0;
  // Dots and convolutions: floating-point operations. Elementwise and other: elements computed.
  double transcendentals = 0;  // elements of exp, sqrt, ...; part of elementwise_flops
  double dot_flops = 0, convolution_flops = 0, elementwise_flops = 0, other_flops = 0;
  double bytes_touched =
      0;                   // read and written by all but what is free (ops/cost.h) and collectives
  int64_t peak_bytes = 0;  // report/memory.h
  std::vector<std::pair<std::string, double>> ms;  // time of each phase, where known; "total" last
};

// Figures of a module, ours or XLA's. A program without num_partitions counts its replicas.
Stats compute_stats(const Module& m);

// One object, as `gspmd stats` and `--stats` write it: docs/stats.md.
nlohmann::ordered_json to_json(const Stats& s);
// For people: one line for each collective, then the rest.
std::string to_table(const Stats& s);

}  // namespace gspmd
