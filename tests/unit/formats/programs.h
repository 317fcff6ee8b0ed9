#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace gspmd::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

// The programs named by the environment variable, or in `standard` beside the repository, by name;
// empty where there are none.
inline std::vector<std::filesystem::path> programs(const char* variable, const char* standard,
                                                   const char* extension = ".hlo") {
  const char* named = std::getenv(variable);
  std::filesystem::path folder = named != nullptr ? named : standard;
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == extension) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Programs traced from JAX by ourselves, and dumps of other people's models.
inline std::vector<std::filesystem::path> corpus() {
  return programs("GSPMD_CORPUS", "../shared/corpus");
}
inline std::vector<std::filesystem::path> real_programs() {
  return programs("GSPMD_REAL", "../shared/real");
}

}  // namespace gspmd::test
