#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "gspmd/api/program.h"

namespace gspmd::cli {

// The whole content of a file or of standard input ("-"). Throws Error if it can not be read.
std::string read_all(const std::string& path);
void write_all(const std::string& path, std::string_view content);

// Reads and verifies the program named by the options; warnings go to standard error.
std::unique_ptr<Module> read_program(const Options& o, Phases* phases);
void write_program(const Options& o, const Module& m, Phases* phases);
void warn(const Options& o, std::string_view rendered);

}  // namespace gspmd::cli
