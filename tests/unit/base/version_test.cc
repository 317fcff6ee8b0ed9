#include "gspmd/base/version.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace gspmd {
namespace {

// The version is said twice, in CMakeLists.txt (the package) and in the library; they must agree.
TEST(Version, AgreesWithThePackage) {
  std::ifstream file("CMakeLists.txt");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("project(gspmd VERSION " + std::string(version()) + " "),
            std::string::npos);
}

}  // namespace
}  // namespace gspmd
