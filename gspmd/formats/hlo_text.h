#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gspmd/ir/module.h"

namespace gspmd {

// Reads an HLO module text (old and new forms: with or without `%`, operand shapes, computation
// headings, layouts, header; nested operands; computations written in place). The text is kept as
// Module::source for diagnostics. What is skipped (unknown attributes) is reported in `warnings`
// ("FILE:LINE:COL: warning: ..."; may be null). Throws Error with place, line and hint; the result
// still has to pass verify().
std::unique_ptr<Module> parse_hlo(std::shared_ptr<Context> context, std::string text,
                                  std::string file_name,
                                  std::vector<std::string>* warnings = nullptr);

struct PrintOptions {
  bool metadata = true;          // metadata={...} and the stack-frame tables
  bool shardings = true;         // Instr::annotation
  bool elide_constants = false;  // values of more than 10 elements as {...}: not to be read back
  // How replica groups that were read in the mesh form are written; all others are iota or lists.
  enum class ReplicaGroups : uint8_t {
    kAsWritten,
    kIota
  } replica_groups = ReplicaGroups::kAsWritten;
};

// The module in the form of XLA's `as_hlo_text()`, which XLA's own parser reads: callees first, the
// entry computation last, names without `%`, layouts on result shapes. Instructions without a name
// are printed as `<opcode>.<id>`. The same module always gives the same bytes, and parsing them
// gives the same module.
std::string print_hlo(const Module& module, const PrintOptions& options = {});
// The same text piece by piece: with lists of device pairs it may be far larger than the program.
void print_hlo(const Module& module, const PrintOptions& options,
               const std::function<void(std::string_view)>& write);
// One instruction on one line, without indent and line end: for messages and reports.
std::string print_hlo(const Instr& instr, const PrintOptions& options = {});

}  // namespace gspmd
