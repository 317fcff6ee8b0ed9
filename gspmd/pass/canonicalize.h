#pragma once

#include "gspmd/ir/module.h"

namespace gspmd {

// Inlines every `call` into its caller, so that each call site is completed and partitioned for its
// own shardings. Callees that nothing uses afterwards are dropped. Needs a verified module (calls
// are not cyclic); a program that would grow beyond `max_instrs` is refused with an Error.
void inline_calls(Module* module, int64_t max_instrs = 8'000'000);

// Drops annotations on values of reducers and comparators, which run whole on every device; a
// reducer is then recognised by its operator.
void drop_annotations_of_reducers(Module* module);

// Puts a copy of each array behind an entry root that is control flow: how the program hands its
// results out is then apart from how a loop or conditional lays them out. The root's annotation
// moves to the copies.
void separate_root(Module* module);

// Drops instructions that no root, side effect or parameter needs.
void remove_dead(Module* module);

}  // namespace gspmd
