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

std::string_view name_of(Opcode op);
std::optional<Opcode> parse_opcode(std::string_view name);

}  // namespace gspmd
