#pragma once

#include <memory>

#include "cli/options.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd::cli {

// Applies --annotate and --mesh to the program, as if they had been written in it. Throws Error for a name that is not there.
void annotate(const Options& o, Module* m);

// The pipeline's options: --num-partitions, --allow-propagation-to, --stop-after, --dump-dir.
CompileOptions compile_options(const Options& o);

// Reads, annotates, completes and partitions; warnings go to standard error.
Compiled compile(const Options& o, Phases* phases);

}  // namespace gspmd::cli
