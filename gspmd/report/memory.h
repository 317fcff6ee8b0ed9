#pragma once

#include <cstdint>

#include "gspmd/ir/module.h"

namespace gspmd {

// The most memory that a per-device program holds at once, in bytes, when its instructions run in
// the order they stand in. Every value has a buffer from its instruction to its last use. No buffer
// is needed for what only names memory (ops/aliasing.h); an operator that may overwrite an operand
// does so where that one dies. Parameters of the entry are held to the end unless the module's
// header donates or aliases them; its results are held from where they are made. The state of a
// loop is updated in place: what it passes through unchanged is never copied, the rest is handed
// over where nothing reads it later, else copied. Fusions hold their results only. Example: p
// (donated, 16 B), a = add(p, p), ROOT b = multiply(a, a): 16 B, since each result overwrites its
// operand.
int64_t peak_bytes(const Module& m);

// The same in the best of a few orders of the instructions (schedule.h), as a compiler that
// schedules for memory may run them.
int64_t least_peak_bytes(const Module& m);

}  // namespace gspmd
