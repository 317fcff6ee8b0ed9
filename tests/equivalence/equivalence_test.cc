// Every operator, every dimension, every sharding: what N devices compute equals what one does.
//
// The cases are enumerated from tensor dimensions and mesh axes, never from the rules under test.
// All of them run in some 10 seconds:
//   build/release/gspmd_tests --gtest_filter='*Equivalence*'
// GSPMD_EQUIVALENCE_COUNTS=FILE collects a line "OPCODE PARTITIONINGS FAILED" for each program;
// GSPMD_EQUIVALENCE_SAMPLE=N takes one case of N.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "gspmd/engine/check.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/pass/pipeline.h"
#include "tests/equivalence/programs.h"

namespace gspmd {
namespace {

using equivalence::Case;
using equivalence::Program;

std::vector<Program> all_programs() {
  std::vector<Program> out;
  for (const char* family : {"contractions", "movement", "reductions", "indexing", "others"}) {
    std::string path = fmt::format("tests/equivalence/programs/{}.txt", family);
    for (Program& p : equivalence::read_programs(path)) out.push_back(std::move(p));
  }
  return out;
}

std::unique_ptr<Module> parse(const Program& p) {
  auto m = parse_hlo(std::make_shared<Context>(), p.text, p.opcode + ".hlo");
  verify(*m);
  return m;
}

void annotate(Instr* i, const std::string& sharding) {
  if (sharding.empty()) return;
  size_t position = 0;
  i->annotation = i->parent->module().context().spelling(parse_hlo_sharding(sharding, &position));
}

// The fault, or an empty text.
std::string fault(const Program& p, const Case& c, uint64_t seed) {
  try {
    auto original = parse(p), annotated = parse(p);
    const Computation& entry = *annotated->entry();
    for (size_t k = 0; k < c.parameters.size(); ++k) annotate(entry.params()[k], c.parameters[k]);
    annotate(entry.root(), c.result);
    CompileOptions options;
    options.num_partitions = 1;
    for (int64_t n : c.mesh) options.num_partitions *= n;
    options.partition.handlers = c.handlers;
    Compiled compiled = partition(std::move(annotated), options);
    verify(*compiled.module);
    CheckInput in{*original,
                  *compiled.module,
                  compiled.parameter_shardings,
                  compiled.result_shardings,
                  {},
                  seed,
                  {}};
    RunOptions run;
    run.num_devices = options.num_partitions;
    run.threads = 1;
    CheckReport report = check(in, run);
    return report.agrees() ? "" : report.to_text(false);
  } catch (const Error& e) {
    return e.render();
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::vector<int> ranks_of(const Program& p) {
  auto m = parse(p);
  std::vector<int> ranks;
  for (const Instr* i : m->entry()->params())
    ranks.push_back(i->shape.is_array() ? i->shape.rank() : -1);
  ranks.push_back(m->entry()->root()->shape.rank());
  return ranks;
}

class Equivalence : public testing::TestWithParam<size_t> {};

TEST_P(Equivalence, OneDeviceAndMany) {
  static const std::vector<Program> programs = all_programs();
  const Program& p = programs[GetParam()];
  const char* wish = std::getenv("GSPMD_EQUIVALENCE_SAMPLE");
  size_t step = wish == nullptr ? 1 : std::max<size_t>(1, std::strtoul(wish, nullptr, 10));
  std::vector<Case> cases = equivalence::enumerate_cases(ranks_of(p));
  int64_t ran = 0, failed = 0;
  for (size_t k = GetParam() % step; k < cases.size(); k += step) {
    std::string found = fault(p, cases[k], k);
    ++ran;
    if (found.empty()) continue;
    if (++failed <= 3) {
      ADD_FAILURE() << p.opcode << p.sizes << describe(cases[k]) << "\n" << found << "\n" << p.text;
    }
  }
  if (failed > 3) ADD_FAILURE() << failed << " of " << ran << " fail";
  RecordProperty("partitionings", static_cast<int>(ran));
  if (const char* counts = std::getenv("GSPMD_EQUIVALENCE_COUNTS")) {
    std::ofstream(counts, std::ios::app) << p.opcode << ' ' << ran << ' ' << failed << '\n';
  }
}

std::string name_of_program(const testing::TestParamInfo<size_t>& info) {
  const Program p = all_programs()[info.param];
  std::string name = fmt::format("{}_{}{}", info.param, p.opcode, p.sizes);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Programs, Equivalence, testing::Range<size_t>(0, all_programs().size()),
                         name_of_program);

}  // namespace
}  // namespace gspmd
