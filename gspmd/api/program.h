#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ir/module.h"

namespace gspmd {

// The formats that a whole program is read from and written in.
enum class Format : uint8_t { kHloText, kHloProto, kStableHlo };

// "hlo", "pb", "mlir"; throws Error for another name.
Format format_named(std::string_view name);
// By content first, since extensions lie: MLIR starts with `module` or `#`, `func`; a serialized
// HloModuleProto with its name field; all else is HLO text.
Format format_of(std::string_view content, std::string_view path);

// Reads and verifies. `file` names the source in diagnostics; what was skipped is appended to
// `warnings`. Throws Error.
std::unique_ptr<Module> read_program(Format format, std::string content, std::string file,
                                     std::vector<std::string>* warnings);
std::string write_program(Format format, const Module& m, const PrintOptions& options = {});

}  // namespace gspmd
