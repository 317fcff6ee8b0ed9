#pragma once

#include "gspmd/ops/op_def.h"

namespace gspmd {

// Whether the value of an attribute (at `member`, inside attributes of `kind`) is the one that it
// has where a program does not write it.
bool is_default(const Field& f, AttrsKind kind, const void* member);
// Whether two attributes of one kind, maybe of different contexts, have the same meaning.
bool same_value(const Field& f, const void* a, const void* b);

// The same for all attributes of an operator, but for the channels of collectives. Elided literals
// equal only themselves.
size_t hash_of_attributes(Opcode op, Attrs a);
bool same_attributes(Opcode op, Attrs a, Attrs b);

}  // namespace gspmd
