#include <gtest/gtest.h>

#include <cstdint>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/equal.h"
#include "gspmd/ops/op_def.h"
#include "tests/unit/formats/programs.h"

namespace gspmd {
namespace {

// A damaged text is read or refused with a place inside it, never anything else; and what is read
// can be printed and read again.
void expect_well_behaved(const std::string& text, const std::string& what) {
  try {
    auto m = parse_hlo(std::make_shared<Context>(), text, "damaged");
    try {
      verify(*m);
    } catch (const Error&) {
    }
    std::string printed = print_hlo(*m);
    auto again = parse_hlo(std::make_shared<Context>(), printed, "printed");
    EXPECT_EQ(first_difference(*m, *again), "") << what;
  } catch (const Error& e) {
    EXPECT_EQ(e.place().file, "damaged") << what << ": " << e.render();
    EXPECT_GE(e.place().line, 1) << what;
    EXPECT_GE(e.place().column, 1) << what;
    EXPECT_FALSE(e.render().empty());
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << ": " << e.what();
  }
}

std::vector<std::filesystem::path> all_programs() {
  auto files = test::corpus();
  for (const auto& path : test::real_programs()) files.push_back(path);
  return files;
}

class Random {  // xorshift: the same everywhere
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435769u + 1) {}
  uint64_t operator()(uint64_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % n;
  }

 private:
  uint64_t state_;
};

// Big files are cut at fewer places, as the time goes with the square of the size.
TEST(HloFuzz, CutShort) {
  auto files = all_programs();
  if (files.empty()) GTEST_SKIP() << "no programs: set GSPMD_CORPUS and GSPMD_REAL";
  for (const auto& path : files) {
    std::string text = test::read_file(path);
    size_t step = std::max<size_t>(1000, text.size() / 120);
    for (size_t n = 0; n < text.size(); n += step) {
      expect_well_behaved(text.substr(0, n), path.string() + " cut at " + std::to_string(n));
    }
  }
}

TEST(HloFuzz, ChangedBytes) {
  auto files = all_programs();
  if (files.empty()) GTEST_SKIP() << "no programs: set GSPMD_CORPUS and GSPMD_REAL";
  constexpr std::string_view kLikely = "{}()[]<>=,%\"'#-0123456789 \n/*:x";
  for (const auto& path : files) {
    std::string text = test::read_file(path);
    int rounds = text.size() < 50'000 ? 200 : text.size() < 400'000 ? 40 : 8;
    for (int seed = 1; seed <= rounds; ++seed) {
      Random random(static_cast<uint64_t>(seed));
      std::string damaged = text;
      for (uint64_t flips = 1 + random(3); flips > 0; --flips) {
        char c = random(2) ? kLikely[random(kLikely.size())] : static_cast<char>(random(256));
        damaged[random(damaged.size())] = c;
      }
      expect_well_behaved(damaged, path.string() + " seed " + std::to_string(seed));
    }
  }
}

}  // namespace
}  // namespace gspmd
