#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gspmd/formats/mlir/program.h"

namespace gspmd::mlir {

// Reads an MLIR text: the generic form of any operation, and the pretty forms of builtin, func,
// stablehlo, chlo and sdy. Throws Error with place, line and hint. Shapes and constants belong to
// the context.
Program read_text(Context& context, std::string text, std::string file_name);

// Reads MLIR bytecode: a portable artifact of StableHLO (VHLO with func and sdy), alone or as
// jax.export serializes it. The same program as from the text, but without places: errors name
// bytes or the model's lines.
Program read_bytecode(Context& context, std::string_view bytes, const std::string& file_name);
bool is_bytecode(std::string_view content);

}  // namespace gspmd::mlir
