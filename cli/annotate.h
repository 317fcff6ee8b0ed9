#pragma once

#include "cli/options.h"
#include "gspmd/ir/module.h"

namespace gspmd::cli {

// Applies --annotate, --custom-rule and --mesh to the program, as if they had been written in it:
// an annotation replaces the one that the instruction has. A program that does not say for how many
// devices it is (and no --num-partitions) is for those of the mesh. Throws UsageError for a name
// that is not there or a text that is no sharding.
void annotate(const Options& o, Module* m);

}  // namespace gspmd::cli
