// Element-wise operators on integer lanes and on pred. Types narrower than a lane wrap when they
// are stored.

#include <bit>
#include <limits>
#include <type_traits>

#include "gspmd/engine/kernels/lanes.h"
#include "gspmd/engine/kernels/min_max.h"

namespace gspmd {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

template <typename T>
constexpr int kWidth = 8 * static_cast<int>(sizeof(T));

// Arithmetic modulo 2^width, which overflows of signed types are not allowed to rely on.
template <typename T>
T wrapped(Unsigned<T> x) {
  return static_cast<T>(x);
}
template <typename T>
Unsigned<T> u(T x) {
  return static_cast<Unsigned<T>>(x);
}

template <typename T>
T divide(T x, T y) {
  if (y == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return wrapped<T>(0 - u(x));
  return x / y;
}

template <typename T>
T remainder(T x, T y) {
  if (y == 0) return x;
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
  return x % y;
}

template <typename T>
T power(T base, T exponent) {
  if (std::is_signed_v<T> && exponent < 0) {
    if (base == 1) return 1;
    if (base == static_cast<T>(-1)) return (exponent & 1) != 0 ? base : 1;
    return 0;
  }
  Unsigned<T> result = 1, square = u(base);
  for (Unsigned<T> e = u(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= square;
    square *= square;
  }
  return wrapped<T>(result);
}

// Loops over a function that needs the type's width too.
template <typename T, typename F>
LaneFn with_bits(F) {
  return [](const LaneArgs& a) {
    const auto* x = static_cast<const T*>(a.in[0]);
    const auto* y = static_cast<const T*>(a.in[1]);
    auto* out = static_cast<T*>(a.out);
#pragma GCC ivdep
    for (int64_t i = 0; i < a.n; ++i) out[i] = F{}(x[i], y == nullptr ? T{0} : y[i], a.bits);
  };
}

// The low `bits` of x as an unsigned number.
template <typename T>
Unsigned<T> low_bits(T x, int bits) {
  return u(x) & (std::numeric_limits<Unsigned<T>>::max() >> (kWidth<T> - bits));
}

template <typename T>
T mulhi(T x, T y, int bits) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>(static_cast<Wide>(x) * static_cast<Wide>(y) >> bits);
}

template <typename T>
LaneFn bitwise(Opcode op) {
  switch (op) {
    case Opcode::kAnd:
      return binary<T>([](T x, T y) { return x & y; });
    case Opcode::kOr:
      return binary<T>([](T x, T y) { return x | y; });
    case Opcode::kXor:
      return binary<T>([](T x, T y) { return x ^ y; });
    case Opcode::kNot:
      return unary<T>([](T x) { return ~x; });
    case Opcode::kShiftLeft:
      return with_bits<T>(
          [](T x, T by, int bits) { return u(by) >= u<T>(bits) ? T{0} : wrapped<T>(u(x) << by); });
    case Opcode::kShiftRightLogical:
      return with_bits<T>([](T x, T by, int bits) {
        return u(by) >= u<T>(bits) ? T{0} : wrapped<T>(low_bits(x, bits) >> by);
      });
    case Opcode::kShiftRightArithmetic:
      return with_bits<T>([](T x, T by, int bits) {
        const int unused = kWidth<T> - bits;
        auto value = static_cast<std::make_signed_t<T>>(u(x) << unused) >> unused;
        return static_cast<T>(value >> (u(by) >= u<T>(bits) ? bits - 1 : static_cast<int>(by)));
      });
    case Opcode::kPopcnt:
      return with_bits<T>(
          [](T x, T, int bits) { return static_cast<T>(std::popcount(low_bits(x, bits))); });
    case Opcode::kClz:
      return with_bits<T>([](T x, T, int bits) {
        return static_cast<T>(std::countl_zero(low_bits(x, bits)) - (kWidth<T> - bits));
      });
    default:
      return nullptr;
  }
}

template <typename T>
LaneFn arithmetic(Opcode op) {
  switch (op) {
    case Opcode::kAbs:
      return unary<T>([](T x) { return x < 0 ? wrapped<T>(0 - u(x)) : x; });
    case Opcode::kNegate:
      return unary<T>([](T x) { return wrapped<T>(0 - u(x)); });
    case Opcode::kSign:
      return unary<T>([](T x) { return static_cast<T>(x > 0 ? 1 : x < 0 ? -1 : 0); });
    case Opcode::kReal:
      return unary<T>([](T x) { return x; });
    case Opcode::kAdd:
      return binary<T>([](T x, T y) { return wrapped<T>(u(x) + u(y)); });
    case Opcode::kSubtract:
      return binary<T>([](T x, T y) { return wrapped<T>(u(x) - u(y)); });
    case Opcode::kMultiply:
      return binary<T>([](T x, T y) { return wrapped<T>(u(x) * u(y)); });
    case Opcode::kDivide:
      return binary<T>([](T x, T y) { return divide(x, y); });
    case Opcode::kRemainder:
      return binary<T>([](T x, T y) { return remainder(x, y); });
    case Opcode::kPower:
      return binary<T>([](T x, T y) { return power(x, y); });
    case Opcode::kMulhi:
      return with_bits<T>([](T x, T y, int bits) { return mulhi(x, y, bits); });
    case Opcode::kMaximum:
      return binary<T>([](T x, T y) { return maximum_of(x, y); });
    case Opcode::kMinimum:
      return binary<T>([](T x, T y) { return minimum_of(x, y); });
    case Opcode::kClamp:
      return ternary<T, T>([](T lo, T x, T hi) { return minimum_of(maximum_of(x, lo), hi); });
    case Opcode::kSelect:
      return select_fn<T>();
    default:
      return bitwise<T>(op);
  }
}

}  // namespace

LaneFn integer_lane_fn(Opcode op, Lane lane) {
  switch (lane) {
    case Lane::kS32:
      return arithmetic<int32_t>(op);
    case Lane::kU32:
      return arithmetic<uint32_t>(op);
    case Lane::kS64:
      return arithmetic<int64_t>(op);
    default:
      return arithmetic<uint64_t>(op);
  }
}

LaneFn pred_lane_fn(Opcode op) {
  using T = uint8_t;
  switch (op) {
    case Opcode::kAdd:
    case Opcode::kOr:
    case Opcode::kMaximum:
      return binary<T>([](T x, T y) { return x | y; });
    case Opcode::kMultiply:
    case Opcode::kAnd:
    case Opcode::kMinimum:
      return binary<T>([](T x, T y) { return x & y; });
    case Opcode::kXor:
    case Opcode::kSubtract:
      return binary<T>([](T x, T y) { return x ^ y; });
    case Opcode::kNot:
      return unary<T>([](T x) { return x ^ 1; });
    case Opcode::kClamp:
      return ternary<T, T>([](T lo, T x, T hi) { return static_cast<T>((x | lo) & hi); });
    case Opcode::kSelect:
      return select_fn<T>();
    default:
      return nullptr;
  }
}

}  // namespace gspmd
