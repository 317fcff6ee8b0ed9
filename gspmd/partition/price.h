#pragma once

#include <cstdint>

#include "gspmd/partition/iteration.h"
#include "gspmd/partition/machine.h"
#include "gspmd/sharding/reshard.h"

namespace gspmd {

struct Price {
  int64_t wire_bytes = 0, messages = 0, memory_bytes = 0, flops = 0;
  // What slower links than the fastest add: as so many bytes, and sixteenths of messages.
  int64_t far_bytes = 0, far_messages = 0;
  FlopKind kind = FlopKind::kElementwise;  // of `flops`
  int64_t units(const Machine& m) const;
  Price& operator+=(const Price& other);
};

Price price_of(const ReshardCost& cost);
// Computing the operator with these factor axes, and its tensors laid out so, on each device:
// floating-point operations and bytes touched.
Price compute_price(const Iteration& it, const FactorAxes& factors,
                    absl::Span<const Sharding> layouts);

}  // namespace gspmd
