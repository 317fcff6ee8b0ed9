#pragma once

#include <memory>
#include <string>

#include "gspmd/formats/mlir/program.h"

namespace gspmd::mlir {

// Reads an MLIR text: the generic form of any operation, and the pretty forms of builtin, func,
// stablehlo, chlo and sdy. Throws Error with place, line and hint. Shapes and constants belong to
// the context.
Program read_text(Context& context, std::string text, std::string file_name);

}  // namespace gspmd::mlir
