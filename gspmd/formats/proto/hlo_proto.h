#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gspmd/ir/module.h"

namespace gspmd {

// Reads a serialized HloModuleProto, or the module of an HloProto or HloSnapshot around one, with
// the meaning of the same module's text. Throws Error, with the instruction's name, for bytes that
// are no such message and for what text would be refused for; the result still has to pass
// verify().
std::unique_ptr<Module> parse_hlo_proto(std::shared_ptr<Context> context, std::string bytes,
                                        std::string file_name,
                                        std::vector<std::string>* warnings = nullptr);

struct ProtoOptions {
  bool metadata = true;     // source places and the stack-frame tables
  bool shardings = true;    // Instr::annotation
  bool mesh_groups = true;  // replica groups in the mesh form where they were read so, else iota
};

// A serialized HloModuleProto: the same module always gives the same bytes, and reading them gives
// the same module. XLA has no field for the number of partitions and the other settings of a text's
// header: they travel in a field that other readers skip. Throws Error for what has no message.
std::string print_hlo_proto(const Module& module, const ProtoOptions& options = {});

}  // namespace gspmd
