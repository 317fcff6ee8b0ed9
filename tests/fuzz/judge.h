#pragma once

#include <cstdint>
#include <string>

namespace gspmd::fuzz {

// What is wrong with how a program (HLO text with annotations) is partitioned: the difference of
// one device and many, or an error; empty where all is well.
std::string fault_of(const std::string& hlo, bool handlers, uint64_t seed);

}  // namespace gspmd::fuzz
