#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gspmd {

// What each shard of a dimension needs of the others: shard i of `shards`, which owns positions
// [i*block, (i+1)*block), needs positions [alpha*i + beta, alpha*i + beta + length). Positions
// outside [0, size) do not exist and are never fetched; size <= shards*block, block > 0 unless size
// is 0.
//
//   a realign from blocks of 6 to blocks of 4 over 2 shards, 7 elements:  {7, 6, 2, alpha 4, beta
//   0, length 4} a window of 3 around each element, blocks of 5 over 4 shards:         {20, 5, 4,
//   alpha 5, beta -1, length 7} the reverse of 10 elements in blocks of 4 over 3 shards: {10, 4, 3,
//   alpha -4, beta 6, length 4}
struct HaloNeed {
  int64_t size = 0;
  int64_t block = 0;
  int64_t shards = 1;
  int64_t alpha = 0;
  int64_t beta = 0;
  int64_t length = 0;
  int64_t first(int64_t i) const { return alpha * i + beta; }
  friend bool operator==(const HaloNeed&, const HaloNeed&) = default;
};

// One collective-permute of an exchange: each receiver i gets `width` consecutive elements of one
// other block.
//   kShift:    from shard i + step
//   kBySource: from the step-th block that i needs (each block feeds at most one i, as alpha >=
//   block) kByTarget: each block sends to the step-th shard that needs it (alpha < block)
// `mirrored`: the rule is applied to shard numbers counted from the end (alpha < 0). With kBySource
// and kByTarget a shard may also send to itself.
struct HaloHop {
  enum class Kind : uint8_t { kShift, kBySource, kByTarget } kind = Kind::kShift;
  bool mirrored = false;
  int64_t step = 0;
  int64_t width = 0;
  friend bool operator==(const HaloHop&, const HaloHop&) = default;
};

// How to bring everything that is needed. Counts are elements along the dimension, per device;
// multiply by the other dimensions' local sizes.
struct HaloPlan {
  enum class Form : uint8_t {
    kLocal,   // every shard has what it needs
    kShift,   // own block + hops of kind kShift
    kStride,  // hops of kind kBySource or kByTarget bring all, the own block included
    kGather,  // all-gather the dimension, then slice
  } form = Form::kLocal;
  int64_t left = 0,
          right = 0;  // the furthest that any shard reaches before its own block and behind it
  std::vector<HaloHop> hops;
  int64_t wire = 0;         // elements that each device sends: the widths' sum, or gather_wire
  int64_t messages = 0;     // collectives
  int64_t gather_wire = 0;  // (shards-1) * block: what an all-gather costs
};

// The form with the least on the wire, then the fewest messages. The time does not depend on the
// number of shards (but for a logarithm).
HaloPlan plan_halo(const HaloNeed& need);

// Which shard sends to `receiver` in this hop, and to which shard `sender` sends; nullopt: nobody.
// Inverse of each other.
//
// The arithmetic that a lowered program does: the sender j cuts `width` elements at
// hop_offset(need, hop, j, i) of its block, i = hop_target(j). The receiver has a buffer of
// `length` elements between two margins of M, M the widest piece (in form kShift the own block is a
// piece too, offset 0); it puts each piece at M + j*block + offset - first(i), j = hop_source(i),
// clamped into the buffer as dynamic-update-slice does. What i needs lands at its place, all else
// in the margins or outside [0, size). Where nobody sends, the zeros received must go to a margin.
std::optional<int64_t> hop_source(const HaloNeed& need, const HaloHop& hop, int64_t receiver);
std::optional<int64_t> hop_target(const HaloNeed& need, const HaloHop& hop, int64_t sender);
int64_t hop_offset(const HaloNeed& need, const HaloHop& hop, int64_t sender, int64_t receiver);

// "shift -1: 2, shift -2: 4" (step: width), "local", "gather": for messages, dumps and tests.
std::string to_string(const HaloPlan& plan);

}  // namespace gspmd
