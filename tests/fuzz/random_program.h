#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gspmd::fuzz {

// A random program as lines of HLO text, with annotations apart, so that it can be made smaller.
struct RandomProgram {
  struct Value {
    std::string type;  // "f32", "s32", "pred"
    std::vector<int64_t> dims;
    std::string text;  // "add(v1, v2), ..."; parameters: empty
    std::vector<int> operands;
    std::string functions;  // computations that it calls
    std::string sharding;   // annotation, empty if none
  };
  std::vector<Value> values;
  std::vector<int> results;
  int64_t num_partitions = 1;

  // Only what the results need is written; parameters all are.
  std::string to_hlo() const;
};

// The same program for the same seed. Numbers stay small and whole, so that results are exact.
RandomProgram make_program(uint64_t seed);

// A smaller program for which `fails` still holds: fewer results, fewer annotations, values
// replaced by parameters.
template <typename F>
RandomProgram shrink(RandomProgram p, F&& fails) {
  for (size_t k = p.values.size(); k-- > 0;) {  // the earliest value that fails alone
    RandomProgram q = p;
    q.results = {static_cast<int>(k)};
    if (fails(q)) p = q;
  }
  for (size_t k = 0; k < p.values.size(); ++k) {
    if (p.values[k].sharding.empty()) continue;
    RandomProgram q = p;
    q.values[k].sharding.clear();
    if (fails(q)) p = q;
  }
  for (size_t k = p.values.size(); k-- > 0;) {
    if (p.values[k].text.empty()) continue;
    RandomProgram q = p;
    q.values[k].text.clear();
    q.values[k].operands.clear();
    q.values[k].functions.clear();
    if (fails(q)) p = q;
  }
  return p;
}

}  // namespace gspmd::fuzz
