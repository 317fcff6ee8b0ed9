#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "gspmd/ir/module.h"

namespace gspmd::cli {

enum class Format : uint8_t { kHloText, kHloProto, kStableHlo };

// The whole content of a file or of standard input ("-"). Throws Error if it can not be read.
std::string read_all(const std::string& path);
void write_all(const std::string& path, std::string_view content);

// By content first, since extensions lie: MLIR starts with `module` or `#`, `func`; a serialized
// HloModuleProto with its name field; all else is HLO text.
Format format_of(std::string_view content, const std::string& path);

// Reads and verifies the program named by the options; warnings go to standard error.
std::unique_ptr<Module> read_program(const Options& o, Phases* phases);
void write_program(const Options& o, const Module& m, Phases* phases);
void warn(const Options& o, std::string_view rendered);

}  // namespace gspmd::cli
