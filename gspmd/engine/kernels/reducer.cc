#include "gspmd/engine/kernels/reducer.h"

#include <cstring>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

Opcode opcode_of(Combiner combiner) {
  switch (combiner) {
    case Combiner::kSum:
      return Opcode::kAdd;
    case Combiner::kProduct:
      return Opcode::kMultiply;
    case Combiner::kMin:
      return Opcode::kMinimum;
    case Combiner::kMax:
      return Opcode::kMaximum;
    case Combiner::kAnd:
      return Opcode::kAnd;
    case Combiner::kOr:
      return Opcode::kOr;
    case Combiner::kXor:
      return Opcode::kXor;
    case Combiner::kNone:
      break;
  }
  GSPMD_CHECK(false, "no combiner");
}

bool accumulates_rounding(Combiner c) { return c == Combiner::kSum || c == Combiner::kProduct; }

bool fits(const LaneProgram& program, absl::Span<const ElementType> types) {
  const int n = static_cast<int>(types.size());
  if (program.num_params() != 2 * n || program.num_results() != n) return false;
  for (int k = 0; k < n; ++k) {
    if (program.param_type(k) != types[k] || program.result_type(k) != types[k]) return false;
    if (lane_of(program.param_type(n + k)) != lane_of(types[k])) return false;
  }
  return true;
}

}  // namespace

Reducer::Reducer(const Computation& computation, absl::Span<const ElementType> types,
                 const KernelContext& context, Sums sums)
    : computation_(computation), context_(context), types_(types.begin(), types.end()) {
  for (ElementType t : types_) lanes_.push_back(lane_of(t));
  const Combiner combiner = types.size() == 1 ? combiner_of(computation) : Combiner::kNone;
  if (combiner != Combiner::kNone) {
    const bool widens = sums == Sums::kWide && accumulates_rounding(combiner) &&
                        (is_float(lanes_[0]) || is_complex(lanes_[0]));
    if (widens) lanes_[0] = wide_lane(lanes_[0]);
    fn_ = lane_fn(opcode_of(combiner), lanes_[0]);
    if (fn_ != nullptr) return;
    lanes_[0] = lane_of(types_[0]);
  }
  program_ = LaneProgram::compile(computation, context.wide);
  if (program_ && !fits(*program_, types_)) program_.reset();
}

void Reducer::fold(absl::Span<void* const> acc, absl::Span<const void* const> x, int64_t n) {
  if (fn_ != nullptr) {
    LaneArgs args;
    args.in[0] = acc[0];
    args.in[1] = x[0];
    args.out = acc[0];
    args.n = n;
    args.bits = bits_of(types_[0]);
    return fn_(args);
  }
  if (!program_) {
    for (int64_t i = 0; i < n; ++i) call(acc, x, i);
    return;
  }
  absl::InlinedVector<const void*, 8> in(acc.begin(), acc.end());
  in.insert(in.end(), x.begin(), x.end());
  program_->run(in, n);
  for (int k = 0; k < arity(); ++k) {
    std::memcpy(acc[k], program_->result(k), static_cast<size_t>(n * bytes_of(lanes_[k])));
  }
}

void Reducer::call(absl::Span<void* const> acc, absl::Span<const void* const> x, int64_t i) {
  std::vector<Buffer> args;
  auto add = [&](int k, const void* lanes) {
    Buffer scalar(types_[k], {});
    store_lanes(types_[k], static_cast<const std::byte*>(lanes) + i * bytes_of(lanes_[k]), 1,
                scalar.mutable_raw());
    args.push_back(std::move(scalar));
  };
  for (int k = 0; k < arity(); ++k) add(k, acc[k]);
  for (int k = 0; k < arity(); ++k) add(k, x[k]);
  std::vector<Buffer> results = context_.call(computation_, args);
  for (int k = 0; k < arity(); ++k) {
    load_lanes(types_[k], results[k].raw(), 1,
               static_cast<std::byte*>(acc[k]) + i * bytes_of(lanes_[k]));
  }
}

std::vector<std::vector<std::byte>> Reducer::accumulators(absl::Span<const Buffer> init,
                                                          int64_t n) const {
  std::vector<std::vector<std::byte>> acc(types_.size());
  for (int k = 0; k < arity(); ++k) {
    const int width = bytes_of(lanes_[k]);
    std::byte value[kMaxLaneBytes];
    load_as(init[k].type(), init[k].raw(), 1, lanes_[k], value);
    acc[k].resize(static_cast<size_t>(n * width));
    for (int64_t i = 0; i < n; ++i) std::memcpy(acc[k].data() + i * width, value, width);
  }
  return acc;
}

std::vector<Buffer> Reducer::results(const std::vector<std::vector<std::byte>>& acc,
                                     absl::Span<const int64_t> dims) const {
  std::vector<Buffer> out;
  for (int k = 0; k < arity(); ++k) {
    Buffer b(types_[k], dims);
    store_from(types_[k], lanes_[k], acc[k].data(), b.size(), b.mutable_raw());
    out.push_back(std::move(b));
  }
  return out;
}

}  // namespace gspmd
