#pragma once

#include "gspmd/ir/module.h"

namespace gspmd {

// Cleans a per-device program of what localising emitted twice or for nothing: equal instructions
// become one, moves that change nothing go, dead code goes. Names of the source program stay on
// what is left.
void clean_up(Module* module);

}  // namespace gspmd
