#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "gspmd/ops/op_def.h"

namespace gspmd {

// How custom-calls of a target may be split. Targets that nobody registered are opaque: every
// operand is gathered.
using CustomRule = const Rule* (*)(const Instr& instr, Arena& arena);

// The rule of a target, or null. Known from the start: element-wise and identity-like targets,
// TopK.
CustomRule custom_rule(std::string_view target);

// Reads "a b, b c -> a c": one letter or word for each dimension of each operand and result.
// Letters that only operands have are summed over. Throws Error where the text does not fit the
// instruction.
const Rule* rule_from_text(const Instr& instr, std::string_view text, Arena& arena);

// True for targets that only carry annotations and are the identity on values.
bool is_annotation_target(std::string_view target);

}  // namespace gspmd
