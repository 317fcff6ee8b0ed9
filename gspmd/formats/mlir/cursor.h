#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gspmd/base/error.h"
#include "gspmd/ir/module.h"

namespace gspmd::mlir {

// A position in an MLIR text, with the small pieces of its grammar. Every take skips white space
// and comments first; what is not there throws Error with its place.
class Cursor {
 public:
  explicit Cursor(std::shared_ptr<const SourceText> source)
      : source_(std::move(source)), text_(source_->text) {}

  size_t position();  // of the next token
  size_t end() const { return at_; }
  void seek(size_t position) { at_ = position; }
  bool at_end();
  std::string_view text() const { return text_; }
  const std::shared_ptr<const SourceText>& source() const { return source_; }

  bool peek(std::string_view token);
  bool try_take(std::string_view token);  // punctuation
  void take(std::string_view token);
  char next_char();  // of the next token, 0 at the end
  // [A-Za-z_][A-Za-z0-9_$.]*, or empty.
  std::string_view word();
  std::string_view peek_word();
  bool try_word(std::string_view word);
  void take_word(std::string_view word);
  // "..." with escapes undone.
  std::string string();
  // name or "name": after @, #, %, ^ or as a key.
  std::string name_or_string();
  int64_t integer();
  bool peek_number();
  // Digits, sign, point, exponent; or 0x...
  std::string_view number();
  // What stands between a bracket and its partner, both included.
  std::string_view balanced(std::string_view open = "<");

  template <typename F>
  void list(std::string_view open, std::string_view close, F&& element) {
    take(open);
    if (try_take(close)) return;
    do {
      element();
    } while (try_take(","));
    take(close);
  }

  [[noreturn]] void fail(size_t at, std::string message, std::string hint = "") const;
  [[noreturn]] void fail_here(std::string message, std::string hint = "");
  std::string found();  // the next token, for messages

 private:
  void skip_space();
  std::shared_ptr<const SourceText> source_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace gspmd::mlir
