#include "gspmd/engine/buffer.h"

#include <fmt/format.h>

#include <atomic>
#include <new>

#include "gspmd/base/error.h"

namespace gspmd {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line, and the widest vector register
constexpr int64_t kSmall = 64;

// Scalars are many and short-lived: one allocation for count and data. Larger arrays are aligned.
std::shared_ptr<std::byte[]> allocate(int64_t bytes) {
  if (bytes <= kSmall) return std::make_shared<std::byte[]>(static_cast<size_t>(bytes));
  auto* memory = static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kAlignment));
  return {memory, [](std::byte* p) { ::operator delete(p, kAlignment); }};
}

int64_t product(absl::Span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

}  // namespace

Buffer::Buffer(ElementType type, absl::Span<const int64_t> dims)
    : type_(type), dims_(dims.begin(), dims.end()), size_(product(dims)) {
  data_ = allocate(bytes());
}

Buffer Buffer::zeros(ElementType type, absl::Span<const int64_t> dims) {
  Buffer b(type, dims);
  std::memset(b.data_.get(), 0, static_cast<size_t>(b.bytes()));
  return b;
}

Buffer Buffer::from_literal(const Literal& literal) {
  GSPMD_CHECK(literal.shape.is_array(), "a literal of no array");
  if (literal.elided) {
    throw Error(
        fmt::format("the values of a constant {} are elided ({{...}})", to_string(literal.shape)),
        "print the program with its large constants");
  }
  Buffer b(literal.shape.type(), literal.shape.dims());
  if (!literal.splat) {
    if (b.bytes() > 0) std::memcpy(b.data_.get(), literal.data.data(), b.bytes());
    return b;
  }
  const int64_t width = storage_bytes(b.type_);
  for (int64_t i = 0; i < b.size_; ++i) {
    std::memcpy(b.data_.get() + i * width, literal.data.data(), width);
  }
  return b;
}

bool Buffer::is_unique() const {
  if (data_.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);  // after the last other owner's reads
  return true;
}

std::byte* Buffer::mutable_raw() {
  if (!is_unique()) {
    std::shared_ptr<std::byte[]> copy = allocate(bytes());
    if (bytes() > 0) std::memcpy(copy.get(), data_.get(), static_cast<size_t>(bytes()));
    data_ = std::move(copy);
  }
  return data_.get();
}

Buffer Buffer::reshaped(absl::Span<const int64_t> dims) const {
  GSPMD_CHECK(product(dims) == size_, "reshaped to another number of elements");
  Buffer b = *this;
  b.dims_.assign(dims.begin(), dims.end());
  return b;
}

Buffer Buffer::reinterpreted(ElementType type, absl::Span<const int64_t> dims) const {
  Buffer b = *this;
  b.type_ = type;
  b.dims_.assign(dims.begin(), dims.end());
  b.size_ = product(dims);
  GSPMD_CHECK(b.bytes() == bytes(), "reinterpreted as another number of bytes");
  return b;
}

}  // namespace gspmd
