#pragma once

#include <string_view>
#include <vector>

#include "gspmd/ops/builder.h"

namespace gspmd {

// HLO's operators as functions of values, for writing programs with Builder. All throw Error where
// operands or attributes do not fit. Dimension numbers and sizes are as in HLO.

Value unary(Opcode opcode, Value x);
// Equal sizes, or one is a scalar, which is broadcast. Types must be the same.
Value binary(Opcode opcode, Value a, Value b);

inline Value operator+(Value a, Value b) { return binary(Opcode::kAdd, a, b); }
inline Value operator-(Value a, Value b) { return binary(Opcode::kSubtract, a, b); }
inline Value operator*(Value a, Value b) { return binary(Opcode::kMultiply, a, b); }
inline Value operator/(Value a, Value b) { return binary(Opcode::kDivide, a, b); }
inline Value operator-(Value x) { return unary(Opcode::kNegate, x); }
inline Value maximum(Value a, Value b) { return binary(Opcode::kMaximum, a, b); }
inline Value minimum(Value a, Value b) { return binary(Opcode::kMinimum, a, b); }
inline Value abs(Value x) { return unary(Opcode::kAbs, x); }
inline Value exp(Value x) { return unary(Opcode::kExp, x); }
inline Value log(Value x) { return unary(Opcode::kLog, x); }
inline Value sqrt(Value x) { return unary(Opcode::kSqrt, x); }
inline Value rsqrt(Value x) { return unary(Opcode::kRsqrt, x); }
inline Value tanh(Value x) { return unary(Opcode::kTanh, x); }
inline Value logistic(Value x) { return unary(Opcode::kLogistic, x); }

Value compare(Direction direction, Value a, Value b);
Value select(Value predicate, Value on_true, Value on_false);
Value clamp(Value low, Value x, Value high);
Value convert(Value x, ElementType type);

// Operand dimension i becomes result dimension operand_dims[i].
Value broadcast(Value x, Ints sizes, Ints operand_dims);
// To the sizes of another value, from a scalar.
Value broadcast_like(Value scalar, Value like);
Value reshape(Value x, Ints sizes);
Value transpose(Value x, Ints permutation);
Value reverse(Value x, Ints dims);
Value concatenate(Values parts, int64_t dim);
Value slice(Value x, Ints starts, Ints limits, Ints strides = {});  // strides: 1 where left out
Value pad(Value x, Value fill, Ints low, Ints high, Ints interior = {});
Value dynamic_slice(Value x, Values starts, Ints sizes);
Value dynamic_update_slice(Value x, Value update, Values starts);
Value gather(Value x, Value indices, const GatherAttrs& attrs);
// `reducer`: of two scalars, the current value and the update.
Value scatter(Value x, Value indices, Value updates, Computation* reducer,
              const ScatterAttrs& attrs);

// The scalar computation `opcode(a, b)` that reductions call; one per program, opcode and type.
Computation* reducer(Value like, Opcode opcode);
// Reduces `dims` with a binary opcode: reduce(x, zero, {1}, Opcode::kAdd).
Value reduce(Value x, Value init, Ints dims, Opcode opcode);
Value reduce_window(Value x, Value init, Window window, Opcode opcode);
Value dot(Value lhs, Value rhs, const DotAttrs& attrs);
// One letter for each dimension: "bsm,mh->bsh". Letters of both operands and the result are batch
// dimensions, those of both operands alone are summed over, the others are free: each must be in
// the result.
Value einsum(std::string_view equation, Value lhs, Value rhs);
Value convolution(Value lhs, Value rhs, const ConvAttrs& attrs);

Value tuple(Values elements);
Value get_tuple_element(Value x, int64_t index);
Value call(Computation* callee, Values operands);
// The chooser is pred[] (branch 0 where true) or s32[] (clamped to the last branch); branch k gets
// operands[k].
Value conditional(Value chooser, absl::Span<Computation* const> branches, Values operands);
// Repeats body while condition holds. State in and out is one value for each of `init` (at least
// two values are carried as a tuple); returns the last state.
using LoopCondition = std::function<Value(Builder& b, Values state)>;
using LoopBody = std::function<std::vector<Value>(Builder& b, Values state)>;
std::vector<Value> while_loop(Values init, const LoopCondition& condition, const LoopBody& body);
// An opaque call to `target`; register a rule for it where it may be split (custom_call.h).
Value custom_call(std::string_view target, Values operands, Shape result);

}  // namespace gspmd
