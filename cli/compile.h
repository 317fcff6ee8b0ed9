#pragma once

#include <memory>

#include "cli/options.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd::cli {

// The pipeline's options: --num-partitions, --allow-propagation-to, --stop-after, --dump-dir.
CompileOptions compile_options(const Options& o);

// Reads, annotates, completes and partitions; warnings go to standard error.
Compiled compile(const Options& o, Phases* phases);

// --stats: figures of the result and the milliseconds of all phases.
void write_stats(const Options& o, const Compiled& c, const Phases& phases);

}  // namespace gspmd::cli
