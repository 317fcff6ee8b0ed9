// Random programs under random shardings give what one device gives. More of them, and others:
// gspmd-fuzz.

#include <gtest/gtest.h>

#include "tests/fuzz/judge.h"
#include "tests/fuzz/random_program.h"

namespace gspmd::fuzz {
namespace {

class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, OneDeviceAndMany) {
  constexpr uint64_t kEach = 100;
  uint64_t first = static_cast<uint64_t>(GetParam()) * kEach;
  for (uint64_t seed = first; seed < first + kEach; ++seed) {
    bool handlers = seed % 4 != 0;
    RandomProgram p = make_program(seed);
    std::string found = fault_of(p.to_hlo(), handlers, seed);
    if (found.empty()) continue;
    p = shrink(
        p, [&](const RandomProgram& q) { return !fault_of(q.to_hlo(), handlers, seed).empty(); });
    ADD_FAILURE() << "seed " << seed << (handlers ? "" : " without handlers") << "\n"
                  << fault_of(p.to_hlo(), handlers, seed) << "\n"
                  << p.to_hlo();
    return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0, 10));

}  // namespace
}  // namespace gspmd::fuzz
