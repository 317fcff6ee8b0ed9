#include "gspmd/partition/price.h"

#include <algorithm>

namespace gspmd {
namespace {

// Sums and products of sizes that stop at a large number instead of wrapping.
constexpr int64_t kTooMuch = int64_t{1} << 60;
int64_t add(int64_t a, int64_t b) {
  return std::min(kTooMuch, std::min(a, kTooMuch) + std::min(b, kTooMuch));
}
int64_t mul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? kTooMuch : std::min(r, kTooMuch);
}

constexpr int64_t kFused = 4;

}  // namespace

int64_t Price::units(const Machine& m) const {
  int64_t n = add(mul(add(wire_bytes, far_bytes), m.per_wire_byte), mul(messages, m.per_message));
  n = add(n, mul(far_messages, m.per_message / 16));
  n = add(n, mul(memory_bytes, m.per_memory_byte));
  int64_t per_1024 = m.per_1024_flops[static_cast<size_t>(kind)];
  return add(n, add(mul(flops / 1024, per_1024), flops % 1024 * per_1024 / 1024));
}

Price& Price::operator+=(const Price& o) {
  wire_bytes = add(wire_bytes, o.wire_bytes);
  messages += o.messages;
  memory_bytes = add(memory_bytes, o.memory_bytes);
  far_bytes = add(far_bytes, o.far_bytes);
  far_messages += o.far_messages;
  if (flops == 0) kind = o.kind;
  flops = add(flops, o.flops);
  return *this;
}

Price price_of(const ReshardCost& cost) {
  return Price{
      cost.wire_bytes, cost.messages, cost.local_bytes, 0, cost.far_bytes, cost.far_messages, {}};
}

Price compute_price(const Iteration& it, const FactorAxes& factors,
                    absl::Span<const Sharding> layouts) {
  Price p;
  int64_t points = 1;
  for (int f = 0; f < it.rule.num_factors(); ++f) {
    points =
        mul(points, ceil_div(std::max<int64_t>(it.rule.factor(static_cast<FactorId>(f)).size, 1),
                             it.mesh->product(factors[f])));
  }
  p.flops = static_cast<int64_t>(static_cast<double>(points) * def(it.instr).flops_per_point);
  p.kind = flop_kind(it.instr);
  for (int t = 0; t < it.rule.num_tensors(); ++t) {
    Shape s = it.shape(t);
    if (!s.is_array()) continue;
    int64_t bytes = std::max<int64_t>(s.bytes(), 1), shards = 1;
    for (const AxisList& axes : layouts[t]->dims) shards *= it.mesh->product(axes);
    p.memory_bytes = add(p.memory_bytes, bytes / shards);
  }
  // Compilers fuse chains of these: mostly the values between never reach memory.
  const OpTraits& t = def(it.instr).traits;
  if (t.elementwise || t.data_movement) p.memory_bytes /= kFused;
  return p;
}

}  // namespace gspmd
