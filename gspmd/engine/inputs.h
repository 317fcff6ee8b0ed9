#pragma once

#include <cstdint>
#include <vector>

#include "gspmd/engine/buffer.h"
#include "gspmd/ir/module.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// Made-up global values for the entry's parameter leaves, the same for the same seed everywhere:
// floats are small dyadic numbers (-8 to 8 units of a power of two), so that sums and products are
// exact as long as they can be; what the program does with a value bounds it (input_wishes.h);
// other integers lie in [0, 4).
// `scale` multiplies the floats; take a power of two.
std::vector<Buffer> make_inputs(const Module& module, uint64_t seed, double scale = 1);

// The block of a global array that each device has under a sharding (position by position: devices
// of the mesh). Blocks have ceil(size/n) elements; what lies beyond the array is poisoned: NaN, the
// largest integer, true.
std::vector<Buffer> blocks_of(const Buffer& whole, Sharding sharding);

// The global array from the devices' blocks, and whether replicas agree bit for bit: `differing`
// gets the first device whose copy differs from an earlier one's, or -1. `dims`: global sizes.
Buffer assemble(absl::Span<const Buffer> blocks, Sharding sharding, absl::Span<const int64_t> dims,
                int64_t* differing);

}  // namespace gspmd
