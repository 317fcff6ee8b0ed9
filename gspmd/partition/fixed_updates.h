#pragma once

#include "gspmd/partition/reconcile.h"

namespace gspmd {

// An update of a window that lies at a known place of a split dimension becomes a choice by global
// index, so that nobody needs elements that others hold:
//
//   a = add(slice(x, [2:14]), 1)            y = add(x, 1)
//   dynamic-update-slice(x, a, 2)      ->   select(2 <= iota && iota < 14, y, x)
//
// Updates made element by element from the same window of values that are laid out as x are made of
// the whole values; what is split and has another source is padded (a halo exchange); any other
// update stays as it is, and so do small ones, which cost less than touching all of x. Scatters of
// one window, as `x.at[2:-2].add(1)` lowers to, likewise, with x's elements combined.
//
// Needs a sharding of every value; gives one to every value that it makes.
void make_fixed_updates_selects(PartitionState& state);

}  // namespace gspmd
