#include "gspmd/report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace gspmd {
namespace {

// "1.5 MB", for a column.
std::string bytes_text(double n) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t k = 0;
  while (n >= 1000 && k + 1 < std::size(kUnits)) {
    n /= 1000;
    ++k;
  }
  return fmt::format("{:.4g} {}", n, kUnits[k]);
}

std::string reasons_of(const Instr& i) {
  std::string out;
  for (const Cause& c : i.provenance) {
    std::string_view r = to_string(c.reason);
    if (out.find(r) == std::string::npos) out += (out.empty() ? "" : ", ") + std::string(r);
  }
  return out.empty() ? "in the program" : out;
}

std::string sources_of(const Instr& i) {
  std::string out;
  for (size_t k = 0; k < i.provenance.size() && k < 3; ++k) {
    out += (k > 0 ? ", " : "") + std::string(i.provenance[k].instr);
  }
  return i.provenance.size() > 3 ? out + ", ..." : out;
}

}  // namespace

std::vector<ExplainedCollectives> explain(const Module& m) {
  std::map<std::string, ExplainedCollectives> lines;
  Stats stats = compute_stats(m);
  for (const CountedCollective& c : stats.each) {
    const Instr& i = *c.instr;
    std::string place = m.model_place(i.metadata), reasons = reasons_of(i);
    std::string op(i.metadata != nullptr ? i.metadata->op_name : std::string_view());
    std::string source = sources_of(i);
    // Without locations every source operator has its own line.
    std::string key = fmt::format("{}|{}|{}|{}", name_of(i.opcode), place, reasons,
                                  place.empty() ? source : std::string());
    ExplainedCollectives& line = lines[key];
    if (line.count == 0) {
      line.kind = name_of(i.opcode);
      line.place = place;
      line.op_name = op;
      line.source = source;
      line.reasons = reasons;
    }
    ++line.count;
    line.runs += c.runs;
    line.bytes += c.bytes;
    line.wire_bytes += c.wire_bytes;
  }
  std::vector<ExplainedCollectives> out;
  for (auto& [key, line] : lines) out.push_back(std::move(line));
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.wire_bytes > b.wire_bytes; });
  return out;
}

std::string to_table(const std::vector<ExplainedCollectives>& lines, size_t most) {
  std::string out = fmt::format("{:19} {:>6} {:>8} {:>11} {:>11}  {:26} {}\n", "collective",
                                "count", "runs", "operands", "on the wire", "because of", "source");
  size_t shown = std::min(most, lines.size());
  for (size_t k = 0; k < shown; ++k) {
    const ExplainedCollectives& l = lines[k];
    std::string where = l.place.empty() ? l.source : fmt::format("{} ({})", l.place, l.source);
    out += fmt::format("{:19} {:>6} {:>8g} {:>11} {:>11}  {:26} {}\n", l.kind, l.count, l.runs,
                       bytes_text(l.bytes), bytes_text(l.wire_bytes), l.reasons, where);
  }
  if (shown < lines.size()) {
    double rest = 0;
    for (size_t k = shown; k < lines.size(); ++k) rest += lines[k].wire_bytes;
    out += fmt::format("... and {} more lines with {} on the wire\n", lines.size() - shown,
                       bytes_text(rest));
  }
  return out;
}

nlohmann::ordered_json to_json(const std::vector<ExplainedCollectives>& lines) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ExplainedCollectives& l : lines) {
    out.push_back({{"kind", l.kind},
                   {"count", l.count},
                   {"runs", l.runs},
                   {"bytes", l.bytes},
                   {"wire_bytes", l.wire_bytes},
                   {"reasons", l.reasons},
                   {"place", l.place},
                   {"op_name", l.op_name},
                   {"source", l.source}});
  }
  return out;
}

}  // namespace gspmd
