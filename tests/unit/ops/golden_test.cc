// Programs with every operator of a family, in the form that XLA prints (attributes in its order,
// defaults left out): they are read, verified and printed as they stand, and every operator that is
// not structural has a rule.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

class GoldenOps : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenOps, ReadVerifiedAndPrinted) {
  std::string path = std::string("tests/golden/ops/") + GetParam() + ".hlo";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << ": run the tests from the root of the sources";
  std::stringstream text;
  text << file.rdbuf();
  std::vector<std::string> warnings;
  auto m = parse_hlo(std::make_shared<Context>(), text.str(), path, &warnings);
  EXPECT_TRUE(warnings.empty()) << warnings.front();
  EXPECT_NO_THROW(verify(*m));
  EXPECT_EQ(print_hlo(*m), text.str());
  RuleCache rules;
  for (const Instr* i : m->entry()->instrs()) {
    if (def(*i).traits.structural) continue;
    const Rule& rule = rules.get(*i);
    EXPECT_EQ(rule.num_operands(), i->num_operands()) << describe(*i);
    EXPECT_EQ(&rules.get(*i), &rule) << "the same rule again";
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenOps,
                         ::testing::Values("contractions", "reductions_and_communication",
                                           "elementwise_and_movement", "indexing_and_control",
                                           "scan_and_scaled_dot"));

}  // namespace
}  // namespace gspmd
