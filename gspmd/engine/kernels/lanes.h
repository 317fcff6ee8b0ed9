#pragma once

#include <cstdint>

#include "gspmd/engine/numeric.h"
#include "gspmd/ir/attrs.h"
#include "gspmd/ir/opcode.h"

namespace gspmd {

// What one element-wise operator does to `n` lanes: in[k] and out are arrays of lane types.
struct LaneArgs {
  const void* in[3] = {};
  void* out = nullptr;
  int64_t n = 0;
  int bits = 0;  // of the operands' element type: for shifts, popcnt, count-leading-zeros, mulhi
};
using LaneFn = void (*)(const LaneArgs&);

// The function of an element-wise operator of one to three operands whose lanes are all `lane`
// (select: those of its last two, the predicate is kPred; complex: of its parts); null where the
// operator is not defined there. `out` may be one of `in` where the lanes are as large.
LaneFn lane_fn(Opcode op, Lane lane);
LaneFn compare_fn(const CompareAttrs& compare, Lane lane);
// The lane of the result of that operator.
Lane result_lane(Opcode op, Lane lane);

// By class of lane, for lane_fn.
LaneFn float_lane_fn(Opcode op, Lane lane);
LaneFn integer_lane_fn(Opcode op, Lane lane);
LaneFn complex_lane_fn(Opcode op, Lane lane);
LaneFn pred_lane_fn(Opcode op);

// Loops over a function of elements that has no state. T: of the operands, R: of the result.
template <typename T, typename R = T, typename F>
LaneFn unary(F) {
  return [](const LaneArgs& a) {
    const auto* x = static_cast<const T*>(a.in[0]);
    auto* out = static_cast<R*>(a.out);
#pragma GCC ivdep  // out may be an operand: each element is read before it is written
    for (int64_t i = 0; i < a.n; ++i) out[i] = static_cast<R>(F{}(x[i]));
  };
}
template <typename T, typename R = T, typename F>
LaneFn binary(F) {
  return [](const LaneArgs& a) {
    const auto* x = static_cast<const T*>(a.in[0]);
    const auto* y = static_cast<const T*>(a.in[1]);
    auto* out = static_cast<R*>(a.out);
#pragma GCC ivdep  // out may be an operand: each element is read before it is written
    for (int64_t i = 0; i < a.n; ++i) out[i] = static_cast<R>(F{}(x[i], y[i]));
  };
}
template <typename P, typename T, typename F>
LaneFn ternary(F) {
  return [](const LaneArgs& a) {
    const auto* x = static_cast<const P*>(a.in[0]);
    const auto* y = static_cast<const T*>(a.in[1]);
    const auto* z = static_cast<const T*>(a.in[2]);
    auto* out = static_cast<T*>(a.out);
#pragma GCC ivdep  // out may be an operand: each element is read before it is written
    for (int64_t i = 0; i < a.n; ++i) out[i] = F{}(x[i], y[i], z[i]);
  };
}
template <typename T>
LaneFn select_fn() {
  return ternary<uint8_t, T>([](uint8_t p, T x, T y) { return p != 0 ? x : y; });
}

}  // namespace gspmd
