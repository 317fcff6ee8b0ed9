#pragma once

#include <string_view>
#include <vector>

#include "gspmd/ops/builder.h"

namespace gspmd {

// HLO's operators as functions of values, for writing programs with Builder. All throw Error where
// operands or attributes do not fit. Dimension numbers and sizes are as in HLO.

Expr unary(Opcode opcode, Expr x);
// Equal sizes, or one is a scalar, which is broadcast. Types must be the same.
Expr binary(Opcode opcode, Expr a, Expr b);

inline Expr operator+(Expr a, Expr b) { return binary(Opcode::kAdd, a, b); }
inline Expr operator-(Expr a, Expr b) { return binary(Opcode::kSubtract, a, b); }
inline Expr operator*(Expr a, Expr b) { return binary(Opcode::kMultiply, a, b); }
inline Expr operator/(Expr a, Expr b) { return binary(Opcode::kDivide, a, b); }
inline Expr operator-(Expr x) { return unary(Opcode::kNegate, x); }
inline Expr maximum(Expr a, Expr b) { return binary(Opcode::kMaximum, a, b); }
inline Expr minimum(Expr a, Expr b) { return binary(Opcode::kMinimum, a, b); }
inline Expr abs(Expr x) { return unary(Opcode::kAbs, x); }
inline Expr exp(Expr x) { return unary(Opcode::kExp, x); }
inline Expr log(Expr x) { return unary(Opcode::kLog, x); }
inline Expr sqrt(Expr x) { return unary(Opcode::kSqrt, x); }
inline Expr rsqrt(Expr x) { return unary(Opcode::kRsqrt, x); }
inline Expr tanh(Expr x) { return unary(Opcode::kTanh, x); }
inline Expr logistic(Expr x) { return unary(Opcode::kLogistic, x); }

Expr compare(Direction direction, Expr a, Expr b);
Expr select(Expr predicate, Expr on_true, Expr on_false);
Expr clamp(Expr low, Expr x, Expr high);
Expr convert(Expr x, ElementType type);

// Operand dimension i becomes result dimension operand_dims[i].
Expr broadcast(Expr x, Ints sizes, Ints operand_dims);
// To the sizes of another value, from a scalar.
Expr broadcast_like(Expr scalar, Expr like);
Expr reshape(Expr x, Ints sizes);
Expr transpose(Expr x, Ints permutation);
Expr reverse(Expr x, Ints dims);
Expr concatenate(Exprs parts, int64_t dim);
Expr slice(Expr x, Ints starts, Ints limits, Ints strides = {});  // strides: 1 where left out
Expr pad(Expr x, Expr fill, Ints low, Ints high, Ints interior = {});
Expr dynamic_slice(Expr x, Exprs starts, Ints sizes);
Expr dynamic_update_slice(Expr x, Expr update, Exprs starts);
Expr gather(Expr x, Expr indices, const GatherAttrs& attrs);
// `reducer`: of two scalars, the current value and the update.
Expr scatter(Expr x, Expr indices, Expr updates, Computation* reducer, const ScatterAttrs& attrs);

// The scalar computation `opcode(a, b)` that reductions call; one per program, opcode and type.
Computation* reducer(Expr like, Opcode opcode);
// Reduces `dims` with a binary opcode: reduce(x, zero, {1}, Opcode::kAdd).
Expr reduce(Expr x, Expr init, Ints dims, Opcode opcode);
Expr reduce_window(Expr x, Expr init, Window window, Opcode opcode);
Expr dot(Expr lhs, Expr rhs, const DotAttrs& attrs);
// One letter for each dimension: "bsm,mh->bsh". Letters of both operands and the result are batch
// dimensions, those of both operands alone are summed over, the others are free: each must be in
// the result.
Expr einsum(std::string_view equation, Expr lhs, Expr rhs);
Expr convolution(Expr lhs, Expr rhs, const ConvAttrs& attrs);

Expr tuple(Exprs elements);
Expr get_tuple_element(Expr x, int64_t index);
Expr call(Computation* callee, Exprs operands);
// The chooser is pred[] (branch 0 where true) or s32[] (clamped to the last branch); branch k gets
// operands[k].
Expr conditional(Expr chooser, absl::Span<Computation* const> branches, Exprs operands);
// Repeats body while condition holds. State in and out is one value for each of `init` (at least
// two values are carried as a tuple); returns the last state.
using LoopCondition = std::function<Expr(Builder& b, Exprs state)>;
using LoopBody = std::function<std::vector<Expr>(Builder& b, Exprs state)>;
std::vector<Expr> while_loop(Exprs init, const LoopCondition& condition, const LoopBody& body);
// An opaque call to `target`; register a rule for it where it may be split (custom_call.h).
Expr custom_call(std::string_view target, Exprs operands, Shape result);

}  // namespace gspmd
