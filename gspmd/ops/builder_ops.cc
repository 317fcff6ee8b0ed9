#include "gspmd/ops/builder_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/ops/program_writer.h"

namespace gspmd {
namespace {

Context& context_of(Expr x) { return x.writer().context(); }
Shape sized(Expr x, Ints sizes) { return context_of(x).array(x.type(), sizes); }

// Builder functions that look at ranks before the operator's own checks do.
int rank_of(Expr x, std::string_view name) {
  if (x.instr() != nullptr && x.shape().is_array()) return x.rank();
  throw Error(fmt::format("{}: an operand is no array", name));
}

}  // namespace

Expr unary(Opcode opcode, Expr x) { return op(opcode, {x}); }

Expr binary(Opcode opcode, Expr a, Expr b) {
  int rank_a = rank_of(a, name_of(opcode)), rank_b = rank_of(b, name_of(opcode));
  if (rank_a == 0 && rank_b > 0) a = broadcast_like(a, b);
  if (rank_b == 0 && rank_a > 0) b = broadcast_like(b, a);
  return op(opcode, {a, b});
}

Expr compare(Direction direction, Expr a, Expr b) {
  CompareAttrs attrs{direction};
  return op(Opcode::kCompare, {a, b}, &attrs);
}

Expr select(Expr predicate, Expr on_true, Expr on_false) {
  return op(Opcode::kSelect, {predicate, on_true, on_false});
}
Expr clamp(Expr low, Expr x, Expr high) { return op(Opcode::kClamp, {low, x, high}); }

Expr convert(Expr x, ElementType type) {
  rank_of(x, "convert");
  return op(Opcode::kConvert, {x}, {}, context_of(x).with_type(x.shape(), type));
}

Expr broadcast(Expr x, Ints sizes, Ints operand_dims) {
  rank_of(x, "broadcast");
  DimsAttrs attrs{Dims(operand_dims)};
  return op(Opcode::kBroadcast, {x}, &attrs, sized(x, sizes));
}

Expr broadcast_like(Expr scalar, Expr like) {
  rank_of(like, "broadcast");
  return broadcast(scalar, like.shape().dims(), {});
}

Expr reshape(Expr x, Ints sizes) {
  rank_of(x, "reshape");
  return op(Opcode::kReshape, {x}, {}, sized(x, sizes));
}

Expr transpose(Expr x, Ints permutation) {
  DimsAttrs attrs{Dims(permutation)};
  return op(Opcode::kTranspose, {x}, &attrs);
}

Expr reverse(Expr x, Ints dims) {
  DimsAttrs attrs{Dims(dims)};
  return op(Opcode::kReverse, {x}, &attrs);
}

Expr concatenate(Exprs parts, int64_t dim) {
  DimsAttrs attrs{Dims({&dim, 1})};
  return op(Opcode::kConcatenate, parts, &attrs);
}

Expr slice(Expr x, Ints starts, Ints limits, Ints strides) {
  DimVector ones(starts.size(), 1);
  SliceAttrs attrs{Dims(starts), Dims(limits), Dims(strides.empty() ? Ints(ones) : strides)};
  return op(Opcode::kSlice, {x}, &attrs);
}

Expr pad(Expr x, Expr fill, Ints low, Ints high, Ints interior) {
  DimVector zeros(low.size(), 0);
  PadAttrs attrs{Dims(low), Dims(high), Dims(interior.empty() ? Ints(zeros) : interior)};
  return op(Opcode::kPad, {x, fill}, &attrs);
}

Expr dynamic_slice(Expr x, Exprs starts, Ints sizes) {
  std::vector<Expr> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  DynamicSliceAttrs attrs{Dims(sizes)};
  return op(Opcode::kDynamicSlice, operands, &attrs);
}

Expr dynamic_update_slice(Expr x, Expr update, Exprs starts) {
  std::vector<Expr> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return op(Opcode::kDynamicUpdateSlice, operands);
}

Expr gather(Expr x, Expr indices, const GatherAttrs& attrs) {
  return op(Opcode::kGather, {x, indices}, &attrs);
}

Expr scatter(Expr x, Expr indices, Expr updates, Computation* reducer, const ScatterAttrs& attrs) {
  return op(Opcode::kScatter, {x, indices, updates}, &attrs, {}, {reducer});
}

Computation* reducer(Expr like, Opcode opcode) {
  return like.writer().reducer(opcode, like.type());
}

Expr reduce(Expr x, Expr init, Ints dims, Opcode opcode) {
  DimsAttrs attrs{Dims(dims)};
  return op(Opcode::kReduce, {x, init}, &attrs, {}, {reducer(x, opcode)});
}

Expr reduce_window(Expr x, Expr init, Window window, Opcode opcode) {
  WindowAttrs attrs{window};
  return op(Opcode::kReduceWindow, {x, init}, &attrs, {}, {reducer(x, opcode)});
}

Expr dot(Expr lhs, Expr rhs, const DotAttrs& attrs) { return op(Opcode::kDot, {lhs, rhs}, &attrs); }

Expr convolution(Expr lhs, Expr rhs, const ConvAttrs& attrs) {
  return op(Opcode::kConvolution, {lhs, rhs}, &attrs);
}

namespace {

// Letters of an equation "bsm,mh->bsh".
struct Equation {
  std::string_view lhs, rhs, result;
};

Equation parse_equation(std::string_view text) {
  size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string_view::npos || arrow == std::string_view::npos || arrow < comma) {
    throw Error(fmt::format("einsum: \"{}\" is no equation", text), "write it as \"bm,mh->bh\"");
  }
  return {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
}

void check_letters(std::string_view letters, std::string_view equation) {
  for (size_t k = 0; k < letters.size(); ++k) {
    if (letters.find(letters[k], k + 1) == std::string_view::npos) continue;
    throw Error(fmt::format("einsum: \"{}\" has {} twice in {}", equation, letters[k], letters),
                "take the diagonal first");
  }
}

void check_tensor(std::string_view letters, Expr x, std::string_view equation) {
  check_letters(letters, equation);
  if (static_cast<int>(letters.size()) == rank_of(x, "einsum")) return;
  throw Error(fmt::format("einsum: \"{}\" has {} dimensions in {} for {}", equation, letters.size(),
                          letters, to_string(x.shape())));
}

}  // namespace

Expr einsum(std::string_view equation, Expr lhs, Expr rhs) {
  Equation e = parse_equation(equation);
  check_tensor(e.lhs, lhs, equation);
  check_tensor(e.rhs, rhs, equation);
  check_letters(e.result, equation);
  DimVector lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  std::string batch, free;  // the letters of dot's result: batch, then free ones
  auto in = [](char c, std::string_view letters) { return letters.find(c) != letters.npos; };
  for (size_t d = 0; d < e.lhs.size(); ++d) {
    char c = e.lhs[d];
    if (!in(c, e.rhs)) {
      free += c;
      continue;
    }
    bool is_batch = in(c, e.result);
    if (is_batch) batch += c;
    (is_batch ? lhs_batch : lhs_contract).push_back(static_cast<int64_t>(d));
    (is_batch ? rhs_batch : rhs_contract).push_back(static_cast<int64_t>(e.rhs.find(c)));
  }
  for (char c : e.rhs) {
    if (!in(c, e.lhs)) free += c;
  }
  std::string made = batch + free;
  bool complete = made.size() == e.result.size() &&
                  std::is_permutation(made.begin(), made.end(), e.result.begin());
  if (!complete) {
    throw Error(fmt::format("einsum: \"{}\" gives {} and wants {}", equation, made, e.result),
                "a letter that only one operand has must be in the result");
  }
  DotAttrs attrs;
  attrs.lhs_batch = Dims(lhs_batch);
  attrs.rhs_batch = Dims(rhs_batch);
  attrs.lhs_contract = Dims(lhs_contract);
  attrs.rhs_contract = Dims(rhs_contract);
  Expr out = dot(lhs, rhs, attrs);
  if (made == e.result) return out;
  DimVector permutation;
  for (char c : e.result) permutation.push_back(static_cast<int64_t>(made.find(c)));
  return transpose(out, permutation);
}

Expr tuple(Exprs elements) { return op(Opcode::kTuple, elements); }

Expr get_tuple_element(Expr x, int64_t index) {
  IndexAttrs attrs{index};
  return op(Opcode::kGetTupleElement, {x}, &attrs);
}

Expr call(Computation* callee, Exprs operands) {
  return op(Opcode::kCall, operands, {}, {}, {callee});
}

Expr conditional(Expr chooser, absl::Span<Computation* const> branches, Exprs operands) {
  std::vector<Expr> all{chooser};
  all.insert(all.end(), operands.begin(), operands.end());
  return op(Opcode::kConditional, all, {}, {}, branches);
}

std::vector<Expr> while_loop(Exprs init, const LoopCondition& condition, const LoopBody& body) {
  if (init.empty()) throw Error("while: no state", "a loop without state never ends or never runs");
  bool single = init.size() == 1;
  auto unpack = [&](Expr state) {
    std::vector<Expr> out;
    for (size_t k = 0; k < init.size(); ++k) {
      out.push_back(single ? state : get_tuple_element(state, static_cast<int64_t>(k)));
    }
    return out;
  };
  Expr state = single ? init[0] : tuple(init);
  ProgramWriter& program = state.writer();
  Computation* c = program.define("condition", {state.shape()},
                                  [&](Builder& b, Exprs p) { return condition(b, unpack(p[0])); });
  Computation* loop = program.define("body", {state.shape()}, [&](Builder& b, Exprs p) {
    std::vector<Expr> next = body(b, unpack(p[0]));
    if (next.size() != init.size()) {
      throw Error(fmt::format("while: the body gives {} values for a state of {}", next.size(),
                              init.size()));
    }
    return single ? next[0] : tuple(next);
  });
  return unpack(op(Opcode::kWhile, {state}, {}, {}, {c, loop}));
}

Expr custom_call(std::string_view target, Exprs operands, Shape result) {
  CustomCallAttrs attrs;
  attrs.target = target;
  return op(Opcode::kCustomCall, operands, &attrs, result);
}

}  // namespace gspmd
