// gspmd-fuzz: random programs, partitioned and compared with one device.
//
//   gspmd-fuzz [FIRST_SEED] [COUNT]     defaults: 0 5000
//   gspmd-fuzz --print SEED             writes that program
//
// A program that fails is made smaller and printed with its seed. Exit code 1 if any fails.

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "tests/fuzz/judge.h"
#include "tests/fuzz/random_program.h"

int main(int argc, char** argv) {
  using namespace gspmd::fuzz;
  if (argc == 3 && std::string_view(argv[1]) == "--print") {
    fmt::print("{}", make_program(std::strtoull(argv[2], nullptr, 10)).to_hlo());
    return 0;
  }
  uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 5000;
  int64_t failed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    bool handlers = seed % 4 != 0;
    RandomProgram p = make_program(seed);
    if (fault_of(p.to_hlo(), handlers, seed).empty()) continue;
    ++failed;
    p = shrink(
        p, [&](const RandomProgram& q) { return !fault_of(q.to_hlo(), handlers, seed).empty(); });
    fmt::print("seed {}{}\n{}\n{}\n", seed, handlers ? "" : " without handlers",
               fault_of(p.to_hlo(), handlers, seed), p.to_hlo());
    if (failed == 10) break;
  }
  fmt::print("{} of {} programs failed\n", failed, count);
  return failed > 0 ? 1 : 0;
}
