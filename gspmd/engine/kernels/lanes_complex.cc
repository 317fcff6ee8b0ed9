// Element-wise operators on c64 and c128 lanes.

#include <cmath>
#include <complex>

#include "gspmd/engine/kernels/lanes.h"

namespace gspmd {
namespace {

// The textbook product: infinities are not repaired as C's operator does.
template <typename C>
C product(C x, C y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// exp(z) - 1 without cancellation near 0: exp(a)cos(b) - 1 = expm1(a)cos(b) - 2 sin(b/2)^2.
template <typename C>
C expm1_of(C z) {
  using R = typename C::value_type;
  R half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half,
          std::exp(z.real()) * std::sin(z.imag())};
}

// log(1 + z): |1+z|^2 = 1 + a(2+a) + b^2.
template <typename C>
C log1p_of(C z) {
  using R = typename C::value_type;
  R a = z.real(), b = z.imag();
  bool small = std::fabs(a) < R(0.5) && std::fabs(b) < R(0.5);
  R real = small ? std::log1p(a * (2 + a) + b * b) / 2 : std::log(std::hypot(1 + a, b));
  return {real, std::atan2(b, 1 + a)};
}

template <typename C>
C power_of(C x, C y) {
  if (y == C(0)) return C(1);
  if (x == C(0)) return y.real() > 0 ? C(0) : std::pow(x, y);
  return std::pow(x, y);
}

template <typename C>
C sign_of(C x) {
  auto length = std::abs(x);
  return length == 0 ? C(0) : x / length;
}

template <typename C>
LaneFn transcendental(Opcode op) {
  switch (op) {
    case Opcode::kExp:
      return unary<C>([](C x) { return std::exp(x); });
    case Opcode::kExpm1:
      return unary<C>([](C x) { return expm1_of(x); });
    case Opcode::kLog:
      return unary<C>([](C x) { return std::log(x); });
    case Opcode::kLog1p:
      return unary<C>([](C x) { return log1p_of(x); });
    case Opcode::kLogistic:
      return unary<C>([](C x) { return C(1) / (C(1) + std::exp(-x)); });
    case Opcode::kSqrt:
      return unary<C>([](C x) { return std::sqrt(x); });
    case Opcode::kRsqrt:
      return unary<C>([](C x) { return C(1) / std::sqrt(x); });
    case Opcode::kCbrt:
      return unary<C>([](C x) {
        return power_of(x, C(typename C::value_type(1) / typename C::value_type(3)));
      });
    case Opcode::kSin:
      return unary<C>([](C x) { return std::sin(x); });
    case Opcode::kCos:
      return unary<C>([](C x) { return std::cos(x); });
    case Opcode::kTan:
      return unary<C>([](C x) { return std::tan(x); });
    case Opcode::kTanh:
      return unary<C>([](C x) { return std::tanh(x); });
    case Opcode::kSinh:
      return unary<C>([](C x) { return std::sinh(x); });
    case Opcode::kCosh:
      return unary<C>([](C x) { return std::cosh(x); });
    case Opcode::kAsin:
      return unary<C>([](C x) { return std::asin(x); });
    case Opcode::kAcos:
      return unary<C>([](C x) { return std::acos(x); });
    case Opcode::kAsinh:
      return unary<C>([](C x) { return std::asinh(x); });
    case Opcode::kAcosh:
      return unary<C>([](C x) { return std::acosh(x); });
    case Opcode::kAtanh:
      return unary<C>([](C x) { return std::atanh(x); });
    default:
      return nullptr;
  }
}

template <typename C>
LaneFn any(Opcode op) {
  using R = typename C::value_type;
  switch (op) {
    case Opcode::kAbs:
      return unary<C, R>([](C x) { return std::abs(x); });
    case Opcode::kReal:
      return unary<C, R>([](C x) { return x.real(); });
    case Opcode::kImag:
      return unary<C, R>([](C x) { return x.imag(); });
    case Opcode::kNegate:
      return unary<C>([](C x) { return -x; });
    case Opcode::kSign:
      return unary<C>([](C x) { return sign_of(x); });
    case Opcode::kAdd:
      return binary<C>([](C x, C y) { return x + y; });
    case Opcode::kSubtract:
      return binary<C>([](C x, C y) { return x - y; });
    case Opcode::kMultiply:
      return binary<C>([](C x, C y) { return product(x, y); });
    case Opcode::kDivide:
      return binary<C>([](C x, C y) { return x / y; });
    case Opcode::kPower:
      return binary<C>([](C x, C y) { return power_of(x, y); });
    case Opcode::kSelect:
      return select_fn<C>();
    default:
      return transcendental<C>(op);
  }
}

}  // namespace

LaneFn complex_lane_fn(Opcode op, Lane lane) {
  return lane == Lane::kC64 ? any<std::complex<float>>(op) : any<std::complex<double>>(op);
}

}  // namespace gspmd
