#include <gtest/gtest.h>

#include <fstream>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"
#include "tests/unit/formats/programs.h"

namespace gspmd {
namespace {

// The text of the comment lines at the start, without "// ".
std::string expected_of(const std::string& text) {
  std::string out;
  size_t at = 0;
  while (text.compare(at, 2, "//") == 0) {
    size_t end = text.find('\n', at);
    size_t begin = std::min(at + 3, end);
    out += text.substr(begin, end - begin) + "\n";
    at = end + 1;
  }
  return out;
}

std::string without_comment(const std::string& text) {
  size_t at = 0;
  while (text.compare(at, 2, "//") == 0) at = text.find('\n', at) + 1;
  return text.substr(at);
}

std::string diagnostic_of(const std::string& text) {
  try {
    auto m = parse_hlo(std::make_shared<Context>(), text, "");
    verify(*m);
  } catch (const Error& e) {
    return e.render() + "\n";
  }
  return "no error\n";
}

std::string as_comment(const std::string& diagnostic) {
  std::string out;
  for (size_t at = 0; at < diagnostic.size();) {
    size_t end = diagnostic.find('\n', at);
    out += "// " + diagnostic.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

// Puts the diagnostic as it now is at the start of the file; its own lines move the place.
void update(const std::filesystem::path& path) {
  std::string program = without_comment(test::read_file(path));
  std::string comment = as_comment(diagnostic_of(program));
  comment = as_comment(diagnostic_of(comment + program));
  std::ofstream(path, std::ios::binary) << comment << program;
}

// Every program of tests/error is refused with exactly the diagnostic in its first lines. With
// GSPMD_UPDATE_GOLDEN=1 the files are rewritten; the difference is then to be reviewed.
TEST(HloErrors, Diagnostics) {
  auto files = test::programs("GSPMD_ERROR_TESTS", "tests/error");
  ASSERT_FALSE(files.empty()) << "run in the folder of the repository";
  for (const auto& path : files) {
    SCOPED_TRACE(path.string());
    if (std::getenv("GSPMD_UPDATE_GOLDEN") != nullptr) update(path);
    std::string text = test::read_file(path);
    ASSERT_NE(expected_of(text), "");
    EXPECT_EQ(diagnostic_of(text), expected_of(text));
    EXPECT_NE(expected_of(text), "no error\n");
  }
}

}  // namespace
}  // namespace gspmd
