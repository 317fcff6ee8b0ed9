#pragma once

#include "gspmd/partition/emitter.h"
#include "gspmd/sharding/halo.h"

namespace gspmd {

// A dimension of a local array split over the joined axes: shard i holds positions [i*need.block,
// (i+1)*need.block).
struct SplitDim {
  int dim = 0;
  const Mesh* mesh = nullptr;
  AxisList axes;
};

// Halo exchange (the paper's section 4.3): gives every shard i the positions [first(i), first(i) +
// need.length) of the dimension, first(i) = need.alpha*i + need.beta, as an array of that length.
// Positions outside [0, need.size) hold `fill` (a scalar of the element type) or, where it is null,
// anything. need.block is the local size; need.shards the number of shards. Emits
// collective-permutes, or an all-gather where that is cheaper (plan_halo).
//
//   blocks of 5 over x=4, window of 3:  [left 1 | own 5 | right 1]
Instr* exchange_halo(Emitter& e, Instr* local, const SplitDim& split, const HaloNeed& need,
                     Instr* fill);

// `x` with the elements of dimension `dim` replaced by `fill` where their global position, start +
// index, is outside [low, high). `start` is an index scalar (null = 0).
Instr* mask_outside(Emitter& e, Instr* x, int dim, Instr* start, int64_t low, int64_t high,
                    Instr* fill);

// alpha*i + beta for this device's shard number i, as an index scalar of `type`.
Instr* affine(Emitter& e, const SplitDim& split, int64_t alpha, int64_t beta, ElementType type);

}  // namespace gspmd
