#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gspmd/report/stats.h"

namespace gspmd {
namespace {

using Json = nlohmann::ordered_json;

// Whole numbers without a fraction, so that readers see 512 and not 512.0.
Json number(double x) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (x == std::floor(x) && std::abs(x) < kExact) return static_cast<int64_t>(x);
  return x;
}

// "1.5 MB": powers of 1000.
std::string scaled(double x, std::string_view unit) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t p = 0;
  while (std::abs(x) >= 1000 && p + 1 < std::size(kPrefixes)) {
    x /= 1000;
    ++p;
  }
  return p == 0 ? fmt::format("{:.6g} {}", x, unit)
                : fmt::format("{:.4g} {}{}", x, kPrefixes[p], unit);
}

void append_collectives(const Stats& s, std::string* out) {
  auto line = fmt::format_to(std::back_inserter(*out), "{:<22}{:>8}{:>12}{:>14}{:>14}\n",
                             "collective", "count", "executed", "operands", "on the wire");
  int64_t count = 0;
  double executed = 0;
  for (const auto& [kind, c] : s.collectives) {
    count += c.count;
    executed += c.executed;
    line =
        fmt::format_to(line, "{:<22}{:>8}{:>12}{:>14}{:>14}\n", kind, c.count,
                       number(c.executed).dump(), scaled(c.bytes, "B"), scaled(c.wire_bytes, "B"));
  }
  fmt::format_to(line, "{:<22}{:>8}{:>12}{:>14}{:>14}\n", "total", count, number(executed).dump(),
                 scaled(s.total_bytes, "B"), scaled(s.wire_bytes, "B"));
}

}  // namespace

nlohmann::ordered_json to_json(const Stats& s) {
  Json out = {{"schema", 1}, {"num_partitions", s.num_partitions}};
  out["instructions"] = Json::object();
  if (s.instructions_before > 0) out["instructions"]["before"] = s.instructions_before;
  out["instructions"]["after"] = s.instructions;
  out["collectives"] = Json::object();
  for (const auto& [kind, c] : s.collectives) {
    out["collectives"][kind] = {{"count", c.count},
                                {"executed", number(c.executed)},
                                {"bytes", number(c.bytes)},
                                {"wire_bytes", number(c.wire_bytes)}};
  }
  out["total_bytes"] = number(s.total_bytes);
  out["wire_bytes"] = number(s.wire_bytes);
  out["unknown_loop_wire_bytes"] = number(s.unknown_loop_wire_bytes);
  out["loops"] = {{"known", s.loops_known}, {"unknown", s.loops_unknown}};
  out["flops"] = {{"dot", number(s.dot_flops)},
                  {"convolution", number(s.convolution_flops)},
                  {"elementwise", number(s.elementwise_flops)},
                  {"other", number(s.other_flops)}};
  out["bytes_touched"] = number(s.bytes_touched);
  out["peak_bytes"] = s.peak_bytes;
  if (!s.ms.empty()) {
    out["ms"] = Json::object();
    for (const auto& [phase, ms] : s.ms) out["ms"][phase] = ms;
  }
  return out;
}

std::string to_table(const Stats& s) {
  std::string out = fmt::format("per device, of {}\n", s.num_partitions);
  append_collectives(s, &out);
  auto row = [&](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(out), "{:<22}{}\n", name, value);
  };
  if (s.loops_unknown > 0) {
    row("unknown loops", fmt::format("{}, each counted once: {} of the wire bytes", s.loops_unknown,
                                     scaled(s.unknown_loop_wire_bytes, "B")));
  }
  row("dots", scaled(s.dot_flops, "FLOP"));
  row("convolutions", scaled(s.convolution_flops, "FLOP"));
  row("element-wise", scaled(s.elementwise_flops, "elements"));
  row("other", scaled(s.other_flops, "elements"));
  row("memory touched", scaled(s.bytes_touched, "B"));
  row("peak memory", scaled(static_cast<double>(s.peak_bytes), "B"));
  std::string instructions = std::to_string(s.instructions);
  if (s.instructions_before > 0) instructions += fmt::format(" (from {})", s.instructions_before);
  row("instructions", instructions);
  for (const auto& [phase, ms] : s.ms)
    row(fmt::format("time, {}", phase), fmt::format("{:.2f} ms", ms));
  return out;
}

}  // namespace gspmd
