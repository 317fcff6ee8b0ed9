#include "gspmd/formats/mlir/bytes.h"

#include <fmt/format.h>

#include <bit>

namespace gspmd::mlir {

void Bytes::fail(std::string message, std::string hint) const {
  Error e(fmt::format("MLIR bytecode, byte {}: {}", at_, message), std::move(hint));
  e.at({file_ == nullptr ? "" : *file_, 0, 0});
  throw e;
}

uint8_t Bytes::byte() {
  if (at_ >= end_) fail("ends too early", "the file may be cut off");
  return static_cast<uint8_t>(whole_[at_++]);
}

uint64_t Bytes::varint() {
  uint8_t first = byte();
  int more = first == 0 ? 8 : std::countr_zero(first);
  uint64_t value = first == 0 ? 0 : first >> (more + 1);
  for (int k = 0; k < more; ++k) {
    int shift = first == 0 ? 8 * k : 8 * (k + 1) - (more + 1);
    value |= static_cast<uint64_t>(byte()) << shift;
  }
  return value;
}

int64_t Bytes::svarint() {
  uint64_t u = varint();
  return static_cast<int64_t>(u >> 1 ^ (~(u & 1) + 1));
}

uint64_t Bytes::varint_with_flag(bool* flag) {
  uint64_t u = varint();
  *flag = (u & 1) != 0;
  return u >> 1;
}

size_t Bytes::count() {
  uint64_t n = varint();
  if (n > remaining()) fail(fmt::format("{} entries do not fit into {} bytes", n, remaining()));
  return static_cast<size_t>(n);
}

uint64_t Bytes::bits(unsigned width) {
  if (width <= 8) return byte();
  if (width > 64) fail(fmt::format("a number of {} bits", width));
  uint64_t value = static_cast<uint64_t>(svarint());
  return width == 64 ? value : value & ((uint64_t{1} << width) - 1);
}

std::string_view Bytes::raw(size_t size) {
  if (size > remaining()) fail(fmt::format("{} bytes where {} are left", size, remaining()));
  std::string_view out = whole_.substr(at_, size);
  at_ += size;
  return out;
}

std::string_view Bytes::zero_terminated() {
  size_t end = whole_.substr(0, end_).find('\0', at_);
  if (end == std::string_view::npos) fail("a text without end");
  std::string_view out = raw(end - at_);
  ++at_;
  return out;
}

void Bytes::align(uint64_t alignment) {
  if (!std::has_single_bit(alignment)) fail(fmt::format("an alignment of {}", alignment));
  while (at_ % alignment != 0) byte();
}

Bytes Bytes::part(uint64_t size) {
  size_t begin = at_;
  raw(static_cast<size_t>(size));
  return Bytes(whole_, begin, at_, file_);
}

void Bytes::expect_end(std::string_view what) const {
  if (!at_end()) fail(fmt::format("{} bytes too many in {}", remaining(), what));
}

}  // namespace gspmd::mlir
