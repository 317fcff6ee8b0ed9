#pragma once

#include <cstdint>

#include "gspmd/partition/iteration.h"
#include "gspmd/sharding/reshard.h"

namespace gspmd {

// What one device's work costs, in one integer unit that is the same on every host. The defaults
// are those of an accelerator whose links move a byte in the time of about 1000 floating-point
// operations or 5 bytes of memory traffic.
struct Machine {
  int64_t per_wire_byte = 64;
  int64_t per_message = 64 * 512;
  int64_t per_memory_byte = 12;
  int64_t flops_per_unit = 16;
};

struct Price {
  int64_t wire_bytes = 0, messages = 0, memory_bytes = 0, flops = 0;
  int64_t units(const Machine& m) const;
  Price& operator+=(const Price& other);
};

Price price_of(const ReshardCost& cost);
// Computing the operator with these factor axes, and its tensors laid out so, on each device:
// floating-point operations and bytes touched.
Price compute_price(const Iteration& it, const FactorAxes& factors,
                    absl::Span<const Sharding> layouts);

}  // namespace gspmd
