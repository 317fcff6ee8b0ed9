#pragma once

#include <string_view>

namespace gspmd {

/// The library's version, "MAJOR.MINOR.PATCH", as `gspmd --version` prints it.
std::string_view version();

}  // namespace gspmd
