#pragma once

#include <string>

#include "gspmd/ir/module.h"

namespace gspmd {

// The first difference between two modules (maybe of different contexts), or an empty text: header,
// tables, computations in order, and all of their instructions: names, shapes with layouts,
// operands, attributes, constants bit by bit, annotations, metadata. Ids, places, provenance and
// the source text are not compared.
std::string first_difference(const Module& a, const Module& b);
inline bool equal(const Module& a, const Module& b) { return first_difference(a, b).empty(); }

// The first difference between two constants, or an empty text; a splat equals the same elements
// written out.
std::string first_difference(const Literal& a, const Literal& b);

}  // namespace gspmd
