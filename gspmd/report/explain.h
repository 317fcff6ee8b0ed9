#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gspmd/report/stats.h"

namespace gspmd {

// Collectives of one kind that one line of the user's program caused for one reason.
struct ExplainedCollectives {
  std::string kind;     // HLO's opcode
  std::string place;    // "model.py:12"; empty where the program carries no locations
  std::string op_name;  // of the source instruction, as the framework named it
  std::string source;   // names of the source instructions, the first few
  std::string reasons;  // "partial-reduction", ...
  int64_t count = 0;
  double runs = 0, bytes = 0, wire_bytes = 0;  // per device, weighed by loops
};

// Why each collective of a program that we partitioned is there, the largest first: from the causes
// that every instruction carries since the pass that made it.
std::vector<ExplainedCollectives> explain(const Module& partitioned);
std::string to_table(const std::vector<ExplainedCollectives>& lines, size_t most);
nlohmann::ordered_json to_json(const std::vector<ExplainedCollectives>& lines);

}  // namespace gspmd
