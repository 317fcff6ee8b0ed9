#include "gspmd/engine/kernels/lanes.h"

#include <type_traits>

#include "gspmd/engine/kernels/min_max.h"

namespace gspmd {
namespace {

template <typename T>
LaneFn ordered(Direction direction) {
  switch (direction) {
    case Direction::kEq:
      return binary<T, uint8_t>([](T x, T y) { return x == y; });
    case Direction::kNe:
      return binary<T, uint8_t>([](T x, T y) { return x != y; });
    case Direction::kGe:
      return binary<T, uint8_t>([](T x, T y) { return x >= y; });
    case Direction::kGt:
      return binary<T, uint8_t>([](T x, T y) { return x > y; });
    case Direction::kLe:
      return binary<T, uint8_t>([](T x, T y) { return x <= y; });
    case Direction::kLt:
      return binary<T, uint8_t>([](T x, T y) { return x < y; });
  }
  return nullptr;
}

template <typename T>
LaneFn totally_ordered(Direction direction) {
  switch (direction) {
    case Direction::kEq:
      return binary<T, uint8_t>([](T x, T y) { return total_order(x) == total_order(y); });
    case Direction::kNe:
      return binary<T, uint8_t>([](T x, T y) { return total_order(x) != total_order(y); });
    case Direction::kGe:
      return binary<T, uint8_t>([](T x, T y) { return total_order(x) >= total_order(y); });
    case Direction::kGt:
      return binary<T, uint8_t>([](T x, T y) { return total_order(x) > total_order(y); });
    case Direction::kLe:
      return binary<T, uint8_t>([](T x, T y) { return total_order(x) <= total_order(y); });
    case Direction::kLt:
      return binary<T, uint8_t>([](T x, T y) { return total_order(x) < total_order(y); });
  }
  return nullptr;
}

template <typename C>
LaneFn equal(Direction direction) {
  if (direction == Direction::kEq) return binary<C, uint8_t>([](C x, C y) { return x == y; });
  if (direction == Direction::kNe) return binary<C, uint8_t>([](C x, C y) { return x != y; });
  return nullptr;
}

}  // namespace

LaneFn compare_fn(const CompareAttrs& compare, Lane lane) {
  const bool total = compare.type == CompareType::kTotalOrder;
  return with_lane_type(lane, [&](auto zero) -> LaneFn {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      return total ? totally_ordered<T>(compare.direction) : ordered<T>(compare.direction);
    } else if constexpr (std::is_integral_v<T>) {
      return ordered<T>(compare.direction);
    } else {
      return equal<T>(compare.direction);
    }
  });
}

LaneFn lane_fn(Opcode op, Lane lane) {
  if (lane == Lane::kPred) return pred_lane_fn(op);
  if (is_float(lane)) return float_lane_fn(op, lane);
  if (is_complex(lane)) return complex_lane_fn(op, lane);
  return integer_lane_fn(op, lane);
}

Lane result_lane(Opcode op, Lane lane) {
  if (op == Opcode::kCompare || op == Opcode::kIsFinite) return Lane::kPred;
  const bool wide = lane == Lane::kF64 || lane == Lane::kC128;
  if (op == Opcode::kComplex) return wide ? Lane::kC128 : Lane::kC64;
  const bool part = op == Opcode::kAbs || op == Opcode::kReal || op == Opcode::kImag;
  if (part && is_complex(lane)) return wide ? Lane::kF64 : Lane::kF32;
  return lane;
}

}  // namespace gspmd
