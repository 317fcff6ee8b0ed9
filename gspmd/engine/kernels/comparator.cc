#include "gspmd/engine/kernels/comparator.h"

#include <cstring>
#include <type_traits>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/min_max.h"
#include "gspmd/ops/equal.h"

namespace gspmd {
namespace {

bool equal_attrs(const Instr& a, const Instr& b) {
  if (a.opcode != Opcode::kCompare) return a.attributes.data() == b.attributes.data();
  const auto &x = a.attrs<CompareAttrs>(), &y = b.attrs<CompareAttrs>();
  return x.direction == y.direction && x.type == y.type;
}

// Whether two expressions are the same function, `a` of parameter p and `b` of parameter q.
bool same_function(const Instr& a, const Instr& b, const Instr* p, const Instr* q) {
  if (&a == p || &b == q) return &a == p && &b == q;
  if (a.opcode != b.opcode || a.shape != b.shape || a.num_operands() != b.num_operands()) {
    return false;
  }
  if (a.opcode == Opcode::kParameter || !a.called.empty()) return false;
  if (a.opcode == Opcode::kConstant) {
    return first_difference(*a.attrs<ConstantAttrs>().literal, *b.attrs<ConstantAttrs>().literal)
        .empty();
  }
  if (!equal_attrs(a, b)) return false;
  for (int i = 0; i < a.num_operands(); ++i) {
    if (!same_function(*a.operand(i), *b.operand(i), p, q)) return false;
  }
  return true;
}

template <typename T>
uint64_t order_key(T x, bool total) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  if constexpr (std::is_floating_point_v<T>) {
    const T plain = !total && x == 0 ? T{0} : x;  // -0 equals +0
    return static_cast<uint64_t>(static_cast<int64_t>(total_order(plain))) ^ kSign;
  } else if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? static_cast<uint64_t>(static_cast<int64_t>(x)) ^ kSign
                               : static_cast<uint64_t>(x);
  } else {
    return 0;  // complex numbers have no order: verify refuses to compare them
  }
}

}  // namespace

int key_operand(const Computation& c) {
  const Instr& root = *c.root();
  if (root.opcode != Opcode::kCompare) return -1;
  const Direction direction = root.attrs<CompareAttrs>().direction;
  if (direction != Direction::kLt && direction != Direction::kGt) return -1;
  const auto& params = c.params();
  for (size_t k = 0; 2 * k + 1 < params.size(); ++k) {
    if (same_function(*root.operand(0), *root.operand(1), params[2 * k], params[2 * k + 1])) {
      return static_cast<int>(k);
    }
  }
  return -1;
}

std::vector<uint64_t> order_keys(Lane lane, const std::byte* lanes, int64_t n, bool total_order) {
  std::vector<uint64_t> keys(static_cast<size_t>(n));
  with_lane_type(lane, [&](auto zero) {
    const auto* x = reinterpret_cast<const decltype(zero)*>(lanes);
    for (int64_t i = 0; i < n; ++i) keys[i] = order_key(x[i], total_order);
  });
  return keys;
}

Comparator::Comparator(const Computation& computation, absl::Span<const Buffer> operands,
                       const KernelContext& context)
    : computation_(computation),
      operands_(operands),
      context_(context),
      program_(LaneProgram::compile(computation, context.wide)) {
  for (const Buffer& b : operands) {
    lanes_.emplace_back(static_cast<size_t>(b.size() * bytes_of(lane_of(b.type()))));
    load_lanes(b.type(), b.raw(), b.size(), lanes_.back().data());
  }
}

std::optional<std::vector<uint64_t>> Comparator::keys() const {
  const int k = key_operand(computation_);
  if (k < 0) return std::nullopt;
  const Instr& root = *computation_.root();
  auto side = LaneProgram::compile(computation_, context_.wide, root.operand(0));
  if (!side) return std::nullopt;
  const Lane lane = lane_of(side->result_type(0));
  if (is_complex(lane)) return std::nullopt;
  const auto& compare = root.attrs<CompareAttrs>();
  const int64_t size = operands_[k].size();
  const int width = bytes_of(lane_of(operands_[k].type()));
  // The other parameters do not matter, but are read.
  const std::vector<std::byte> unused(static_cast<size_t>(kChunk * kMaxLaneBytes));
  std::vector<const void*> in(static_cast<size_t>(side->num_params()), unused.data());
  std::vector<uint64_t> keys;
  keys.reserve(static_cast<size_t>(size));
  for (int64_t begin = 0; begin < size; begin += kChunk) {
    const int64_t n = std::min(kChunk, size - begin);
    in[2 * k] = lanes_[k].data() + begin * width;
    side->run(in, n);
    std::vector<uint64_t> part = order_keys(lane, static_cast<const std::byte*>(side->result(0)), n,
                                            compare.type == CompareType::kTotalOrder);
    keys.insert(keys.end(), part.begin(), part.end());
  }
  if (compare.direction == Direction::kGt) {
    for (uint64_t& key : keys) key = ~key;
  }
  return keys;
}

bool Comparator::before(int64_t i, int64_t j) {
  if (!program_) return call(i, j);
  absl::InlinedVector<const void*, 8> in;
  for (size_t k = 0; k < operands_.size(); ++k) {
    const int width = bytes_of(lane_of(operands_[k].type()));
    in.push_back(lanes_[k].data() + i * width);
    in.push_back(lanes_[k].data() + j * width);
  }
  program_->run(in, 1);
  return *static_cast<const uint8_t*>(program_->result(0)) != 0;
}

bool Comparator::call(int64_t i, int64_t j) const {
  std::vector<Buffer> args;
  for (const Buffer& b : operands_) {
    for (int64_t at : {i, j}) {
      Buffer scalar(b.type(), {});
      const int width = storage_bytes(b.type());
      std::memcpy(scalar.mutable_raw(), b.raw() + at * width, static_cast<size_t>(width));
      args.push_back(std::move(scalar));
    }
  }
  return *context_.call(computation_, args)[0].data<uint8_t>() != 0;
}

}  // namespace gspmd
