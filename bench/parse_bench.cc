// How fast HLO text is read and printed: bytes per second over the programs of GSPMD_REAL (a
// folder;
// ../shared/real where it is not set).

#include <benchmark/benchmark.h>

#include "gspmd/formats/hlo_text.h"
#include "tests/unit/formats/programs.h"

namespace gspmd {
namespace {

void parse(benchmark::State& state, const std::string& text) {
  for (auto _ : state) {
    auto module = parse_hlo(std::make_shared<Context>(), text, "program");
    benchmark::DoNotOptimize(module->num_ids());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

void print(benchmark::State& state, const std::string& text) {
  auto module = parse_hlo(std::make_shared<Context>(), text, "program");
  for (auto _ : state) benchmark::DoNotOptimize(print_hlo(*module).size());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

const bool kRegistered = [] {
  for (const auto& path : test::real_programs()) {
    std::string text = test::read_file(path), name = path.stem().string();
    auto in_ms = [](auto* b) { b->Unit(benchmark::kMillisecond); };
    in_ms(benchmark::RegisterBenchmark(("parse/" + name).c_str(),
                                       [text](benchmark::State& s) { parse(s, text); }));
    in_ms(benchmark::RegisterBenchmark(("print/" + name).c_str(),
                                       [text](benchmark::State& s) { print(s, text); }));
  }
  return true;
}();

}  // namespace
}  // namespace gspmd
