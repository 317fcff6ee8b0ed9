#include <gtest/gtest.h>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/equal.h"
#include "tests/unit/formats/programs.h"

namespace gspmd {
namespace {

using test::read_file;

// Reading what was printed gives the same module, and printing that the same text.
void expect_round_trip(const std::filesystem::path& path) {
  SCOPED_TRACE(path.string());
  try {
    std::vector<std::string> warnings;
    auto first = parse_hlo(std::make_shared<Context>(), read_file(path), path.string(), &warnings);
    std::string text = print_hlo(*first);
    auto second = parse_hlo(std::make_shared<Context>(), text, "printed");
    EXPECT_EQ(first_difference(*first, *second), "");
    EXPECT_EQ(print_hlo(*second), text);
    for (const std::string& w : warnings) {  // all but values left out of a dump is understood
      EXPECT_NE(w.find("are not in the text"), std::string::npos) << w;
    }
  } catch (const Error& e) {
    FAIL() << e.render();
  }
}

TEST(HloRoundTrip, Corpus) {
  auto files = test::corpus();
  if (files.empty()) GTEST_SKIP() << "no programs: set GSPMD_CORPUS to their folder";
  for (const auto& path : files) expect_round_trip(path);
}

TEST(HloRoundTrip, RealPrograms) {
  auto files = test::real_programs();
  if (files.empty()) GTEST_SKIP() << "no programs: set GSPMD_REAL to their folder";
  for (const auto& path : files) expect_round_trip(path);
}

}  // namespace
}  // namespace gspmd
