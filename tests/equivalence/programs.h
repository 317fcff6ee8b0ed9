#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gspmd::equivalence {

// A little program around one operator, for one choice of sizes.
struct Program {
  std::string opcode, sizes, text;
};

// Reads a file of blocks
//
//   == OPCODE A=8 B=4 | A=5 B=3
//   ...HLO computations, sizes as {A} or {2*A-1}, as <A> where HLO's own braces stand around it...
//
// one program for each alternative of sizes.
std::vector<Program> read_programs(const std::string& path);

// One way to shard a program's parameters and result: HLO shardings, empty where there is none.
struct Case {
  std::vector<int64_t> mesh;  // axis sizes
  std::vector<std::string> parameters;
  std::string result;
  bool handlers = true;
};

// Every dimension of every tensor on one axis; of two tensors on one axis; on two axes, of one
// tensor or of two, the result following or not. Tensors are known by their ranks: those of the
// parameters, then that of the result (-1: not to be sharded).
std::vector<Case> enumerate_cases(const std::vector<int>& ranks);

std::string describe(const Case& c);

}  // namespace gspmd::equivalence
