// The time from the parsed to the final module, nothing cached in between: what `bench/vs_xla`
// calls "warm" and what to look at with a profiler. Programs are those of GSPMD_REAL and
// tests/corpus.

#include <benchmark/benchmark.h>

#include <chrono>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/pass/pipeline.h"
#include "tests/unit/formats/programs.h"

namespace gspmd {
namespace {

void compile(benchmark::State& state, const std::string& text) {
  for (auto _ : state) {
    auto module = parse_hlo(std::make_shared<Context>(), text, "program");
    auto start = std::chrono::steady_clock::now();
    Compiled compiled = partition(std::move(module), {});
    auto end = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(compiled.module->num_ids());
    state.SetIterationTime(std::chrono::duration<double>(end - start).count());
  }
}

const bool kRegistered = [] {
  std::vector<std::filesystem::path> programs = test::real_programs();
  for (const auto& entry : std::filesystem::directory_iterator("tests/corpus"))
    programs.push_back(entry.path());
  std::sort(programs.begin(), programs.end());
  for (const auto& path : programs) {
    std::string text = test::read_file(path);
    benchmark::RegisterBenchmark(("compile/" + path.stem().string()).c_str(),
                                 [text](benchmark::State& s) { compile(s, text); })
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime();
  }
  return true;
}();

}  // namespace
}  // namespace gspmd
