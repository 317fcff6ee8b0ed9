#pragma once

#include <memory>

#include "gspmd/formats/mlir/program.h"
#include "gspmd/ir/module.h"

namespace gspmd {

// Translates a program of func, stablehlo (or old mhlo), chlo and sdy operations into HLO's
// operators: `main` becomes the entry computation, other functions called computations, regions
// computations that take what they use from outside as operands. Annotations of either kind
// (mhlo.sharding strings, sdy attributes and operations) are kept as JAX's own lowering to HLO
// keeps them. Throws Error with the place of what cannot be translated; the result still has to
// pass verify().
std::unique_ptr<Module> import_stablehlo(std::shared_ptr<Context> context,
                                         const mlir::Program& program);

// Both steps for a text, or for bytecode.
std::unique_ptr<Module> parse_stablehlo(std::shared_ptr<Context> context, std::string text,
                                        std::string file_name);

}  // namespace gspmd
