#pragma once

#include <vector>

#include "cli/options.h"
#include "gspmd/engine/buffer.h"
#include "gspmd/ir/module.h"

namespace gspmd::cli {

// The files of --inputs, one for each parameter leaf of the entry in order; empty where none are
// given. Throws Error.
std::vector<Buffer> read_inputs(const Options& o, const Module& m);

}  // namespace gspmd::cli
