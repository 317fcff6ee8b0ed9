#include <fmt/format.h>

#include <algorithm>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/lanes.h"

namespace gspmd {
namespace {

// The operands that have a common type: all but select's predicate.
absl::Span<Buffer> typed_operands(const Instr& instr, absl::Span<Buffer> operands) {
  return instr.opcode == Opcode::kSelect ? operands.subspan(1) : operands;
}

// Old programs mix float types: the wider one counts.
ElementType unify_types(absl::Span<Buffer> operands) {
  ElementType widest = operands[0].type();
  for (const Buffer& b : operands) {
    if (bits_of(b.type()) > bits_of(widest)) widest = b.type();
  }
  for (Buffer& b : operands) b = converted(b, widest);
  return widest;
}

// One operand as lanes, chunk by chunk: directly where stored so, else converted into `memory`.
class LaneReader {
 public:
  LaneReader(const Buffer& buffer, bool splat)
      : type_(buffer.type()),
        data_(buffer.raw()),
        splat_(splat),
        direct_(!splat && is_native(buffer.type())) {
    if (!splat) return;
    const int bytes = bytes_of(lane_of(type_));
    load_lanes(type_, data_, 1, memory_);
    for (int64_t i = 1; i < kChunk; ++i) std::memcpy(memory_ + i * bytes, memory_, bytes);
  }

  bool direct() const { return direct_; }
  const void* lanes(int64_t begin, int64_t n) {
    if (splat_) return memory_;
    const std::byte* from = data_ + begin * storage_bytes(type_);
    if (direct_) return from;
    load_lanes(type_, from, n, memory_);
    return memory_;
  }

 private:
  ElementType type_;
  const std::byte* data_;
  bool splat_, direct_;
  alignas(64) std::byte memory_[kChunk * kMaxLaneBytes];
};

// A result buffer: the memory of an operand that nobody else holds, or new.
Buffer result_memory(ElementType type, absl::Span<const int64_t> dims, int64_t size,
                     absl::Span<Buffer> operands) {
  for (Buffer& b : operands) {
    bool fits = b.size() == size && b.rank() == static_cast<int>(dims.size()) &&
                storage_bytes(b.type()) == storage_bytes(type);
    if (fits && b.is_unique()) return b.reinterpreted(type, dims);
  }
  return Buffer(type, dims);
}

// Shared memory would be copied on writing: gives up the operands' handles.
Buffer detached(Buffer result, absl::Span<Buffer> operands) {
  for (Buffer& b : operands) {
    if (b.raw() == result.raw()) b = Buffer();
  }
  return result;
}

struct Run {
  LaneFn fn;
  Lane out_lane;
  int bits;
};

Buffer run_lanes(const Run& run, ElementType type, absl::Span<const int64_t> dims,
                 absl::Span<Buffer> operands) {
  int64_t size = 1;
  for (int64_t d : dims) size *= d;
  std::vector<LaneReader> readers;
  readers.reserve(operands.size());
  bool direct = is_native(type) && lane_of(type) == run.out_lane;
  const bool direct_out = direct;
  for (const Buffer& b : operands) {
    readers.emplace_back(b, b.rank() == 0 && !dims.empty());
    direct = direct && readers.back().direct();
  }
  Buffer result = detached(result_memory(type, dims, size, operands), operands);
  std::byte* out = result.mutable_raw();
  const int64_t step = direct ? std::max<int64_t>(size, 1) : kChunk;
  alignas(64) std::byte memory[kChunk * kMaxLaneBytes];
  for (int64_t begin = 0; begin < size; begin += step) {
    LaneArgs args;
    args.n = std::min(step, size - begin);
    args.bits = run.bits;
    for (size_t k = 0; k < readers.size(); ++k) args.in[k] = readers[k].lanes(begin, args.n);
    std::byte* target = out + begin * storage_bytes(type);
    args.out = direct_out ? target : memory;
    run.fn(args);
    if (!direct_out) store_from(type, run.out_lane, memory, args.n, target);
  }
  return result;
}

}  // namespace

GSPMD_KERNEL(elementwise_kernel) {
  ElementType common = unify_types(typed_operands(instr, operands));
  const Lane lane = lane_of(common);
  Run run;
  run.fn = instr.opcode == Opcode::kCompare ? compare_fn(instr.attrs<CompareAttrs>(), lane)
                                            : lane_fn(instr.opcode, lane);
  if (run.fn == nullptr) {
    refuse_to_run(instr, fmt::format("not defined for type {}", name_of(common)));
  }
  run.out_lane = result_lane(instr.opcode, lane);
  run.bits = bits_of(common);
  return {run_lanes(run, result_type(instr, context), leaf_shape(instr.shape, 0).dims(), operands)};
}

}  // namespace gspmd
