#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gspmd/base/error.h"

namespace gspmd::mlir {

// A position in a part of a file of MLIR bytecode, with the primitives of its encoding. What does
// not fit throws Error with the file and the byte's number.
class Bytes {
 public:
  Bytes() = default;
  // `whole` is the file; the part is [begin, end).
  Bytes(std::string_view whole, size_t begin, size_t end, const std::string* file)
      : whole_(whole), at_(begin), end_(end), file_(file) {}

  bool at_end() const { return at_ == end_; }
  size_t position() const { return at_; }  // in the file
  size_t remaining() const { return end_ - at_; }

  uint8_t byte();
  // Of variable length: the low zero bits of the first byte count the bytes that follow.
  uint64_t varint();
  int64_t svarint();
  uint64_t varint_with_flag(bool* flag);
  // A varint that counts what takes at least one byte each.
  size_t count();
  // The low `width` bits of an integer.
  uint64_t bits(unsigned width);
  std::string_view raw(size_t size);
  std::string_view blob() { return raw(static_cast<size_t>(varint())); }
  // Up to a zero byte, which is skipped.
  std::string_view zero_terminated();
  void align(uint64_t alignment);  // of the position in the file
  // The next `size` bytes as a part of their own, which are skipped here.
  Bytes part(uint64_t size);
  void expect_end(std::string_view what) const;

  [[noreturn]] void fail(std::string message, std::string hint = "") const;

 private:
  std::string_view whole_;
  size_t at_ = 0, end_ = 0;
  const std::string* file_ = nullptr;
};

}  // namespace gspmd::mlir
