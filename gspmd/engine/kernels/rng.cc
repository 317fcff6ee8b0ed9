// rng-bit-generator: counter-based, bit exact.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gspmd/engine/kernels/kernels.h"

namespace gspmd {
namespace {

struct Words2 {
  uint32_t w[2];
};
struct Words4 {
  uint32_t w[4];
};

uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
uint64_t joined(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

// ThreeFry-2x32, 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3).
Words2 three_fry(uint64_t key, uint64_t counter) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {low(key), high(key), low(key) ^ high(key) ^ 0x1BD11BDA};
  uint32_t x0 = low(counter) + keys[0], x1 = high(counter) + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, rotation) ^ x0;
    }
    x0 += keys[(group + 1) % 3];
    x1 += keys[(group + 2) % 3] + group + 1;
  }
  return {{x0, x1}};
}

// Philox-4x32, 10 rounds (same paper).
Words4 philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t k0 = low(key), k1 = high(key);
  uint32_t x[4] = {low(counter_low), high(counter_low), low(counter_high), high(counter_high)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{x[0]} * 0xD2511F53, p1 = uint64_t{x[2]} * 0xCD9E8D57;
    const uint32_t y[4] = {high(p1) ^ x[1] ^ k0, low(p1), high(p0) ^ x[3] ^ k1, low(p0)};
    std::copy(y, y + 4, x);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{x[0], x[1], x[2], x[3]}};
}

// The dimension whose two halves a block's two words go to: the first of even size, else the
// largest.
int64_t split_dim(absl::Span<const int64_t> dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] % 2 == 0) return static_cast<int64_t>(d);
  }
  return std::max_element(dims.begin(), dims.end()) - dims.begin();
}

// Fills `bits` and returns by how much the counter moves.
uint64_t three_fry_32(uint64_t key, uint64_t counter, Buffer* bits) {
  auto* out = bits->mutable_data<uint32_t>();
  const DimVector& dims = bits->dims();
  if (dims.empty()) {
    out[0] = three_fry(key, counter).w[0];
    return 1;
  }
  const int64_t s = split_dim(dims), n = dims[s], half = (n + 1) / 2;
  const int64_t inner = strides_of(dims)[s], outer = n == 0 ? 0 : bits->size() / (n * inner);
  uint64_t block = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t h = 0; h < half; ++h) {
      for (int64_t i = 0; i < inner; ++i, ++block) {
        const Words2 words = three_fry(key, counter + block);
        uint32_t* at = out + (o * n + 2 * h) * inner + i;
        at[0] = words.w[0];
        if (2 * h + 1 < n) at[inner] = words.w[1];
      }
    }
  }
  return block;
}

uint64_t three_fry_64(uint64_t key, uint64_t counter, Buffer* bits) {
  auto* out = bits->mutable_data<uint64_t>();
  for (int64_t i = 0; i < bits->size(); ++i) {
    const Words2 words = three_fry(key, counter + static_cast<uint64_t>(i));
    out[i] = joined(words.w[0], words.w[1]);
  }
  return static_cast<uint64_t>(bits->size());
}

// Four words a block, in order; 64-bit elements take two.
uint64_t fill_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high, Buffer* bits) {
  const int64_t words = bits->bytes() / 4;
  auto* out = bits->mutable_data<uint32_t>();
  const int64_t blocks = (words + 3) / 4;
  for (int64_t j = 0; j < blocks; ++j) {
    const uint64_t at = counter_low + static_cast<uint64_t>(j);
    const Words4 block = philox(key, at, counter_high + (at < counter_low ? 1 : 0));
    for (int64_t m = 0; m < std::min<int64_t>(4, words - 4 * j); ++m) out[4 * j + m] = block.w[m];
  }
  return static_cast<uint64_t>(blocks);
}

// The new state in place of the old one.
void generate(RngAlgorithm algorithm, Buffer* state, Buffer* bits) {
  auto* s = state->mutable_data<uint64_t>();
  const uint64_t old = s[1];
  if (algorithm == RngAlgorithm::kThreeFry) {
    s[1] += bits_of(bits->type()) == 64 ? three_fry_64(s[0], s[1], bits)
                                        : three_fry_32(s[0], s[1], bits);
    return;
  }
  const bool has_high = state->size() == 3;
  s[1] += fill_philox(s[0], s[1], has_high ? s[2] : s[0], bits);
  if (has_high && s[1] < old) ++s[2];
}

}  // namespace

GSPMD_KERNEL(rng_bit_generator_kernel) {
  const RngAlgorithm algorithm = instr.attrs<RngBitGeneratorAttrs>().algorithm;
  Buffer state = operands[0];
  const int64_t most = algorithm == RngAlgorithm::kThreeFry ? 2 : 3;
  const bool fits = state.type() == ElementType::kU64 && state.rank() == 1 && state.size() >= 2 &&
                    state.size() <= most;
  if (!fits) {
    refuse_to_run(instr,
                  fmt::format("a state of {} elements of {}", state.size(), name_of(state.type())),
                  fmt::format("this algorithm has u64[2]{}", most == 3 ? " or u64[3]" : ""));
  }
  const Shape shape = leaf_shape(instr.shape, 1);
  const bool wide = bits_of(shape.type()) == 64;
  Buffer bits(wide ? ElementType::kU64 : ElementType::kU32, shape.dims());
  generate(algorithm, &state, &bits);
  Buffer result = bits;
  if (is_integer(shape.type())) {
    result = converted(bits, shape.type());  // the low bits
  } else {
    const int width = bits_of(shape.type());
    if (width < 16) refuse_to_run(instr, "bits of a float type under 16 bits");
    if (width == 16) bits = converted(bits, ElementType::kU16);
    result = bits.reinterpreted(shape.type(), shape.dims());
  }
  return {std::move(state), converted(result, result_type(instr, context, 1))};
}

}  // namespace gspmd
