#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gspmd {

enum class Opcode : uint8_t {
#define OPCODE(id, name) k##id,
#include "gspmd/ir/opcodes.def"
#undef OPCODE
};

inline constexpr int kNumOpcodes = 0
#define OPCODE(id, name) +1
#include "gspmd/ir/opcodes.def"
#undef OPCODE
    ;

// In HLO text.
inline constexpr std::string_view kOpcodeNames[] = {
#define OPCODE(id, name) name,
#include "gspmd/ir/opcodes.def"
#undef OPCODE
};
constexpr std::string_view name_of(Opcode op) { return kOpcodeNames[static_cast<size_t>(op)]; }
std::optional<Opcode> parse_opcode(std::string_view name);

}  // namespace gspmd
