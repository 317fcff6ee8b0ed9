#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gspmd {

// A place in an HLO text that moves forward: skips blanks and comments, takes what is expected or
// throws Error at the place where it is not. Tokens are views of the text.
class HloLexer {
 public:
  HloLexer(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  std::string_view text() const { return text_; }
  // The offset of the next token.
  size_t position() {
    skip_blanks();
    return at_;
  }
  size_t end() const { return at_; }  // where the last token ended
  void seek(size_t offset) { at_ = offset; }
  bool at_end() { return position() == text_.size(); }

  // The first character of the next token; 0 at the end.
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool peek(char c) { return peek() == c; }
  // The character right here, blanks not skipped.
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool try_take(char c) {
    if (peek() != c || c == '\0') return false;
    ++at_;
    return true;
  }
  bool try_take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void take(char c) {
    if (!try_take(c)) expected_char(c);
  }
  void take(std::string_view token) {
    if (!try_take(token)) fail_here("'" + std::string(token) + "'");
  }

  // [A-Za-z_][A-Za-z0-9_.-]*; empty where there is none.
  std::string_view word();
  bool try_word(std::string_view expected);
  // Optional '%', then a word that may also start with a digit. `what` names it in the error.
  std::string_view name(std::string_view what);
  // The longest run of [A-Za-z0-9_.?<>-]: dim labels, paddings, sizes joined by 'x'.
  std::string_view pattern();
  int64_t integer();
  bool boolean();
  // A number with sign, point and exponent, or inf, nan, nan(0x..): the raw token.
  std::string_view number();
  // "a" or 'a' with C escapes, unescaped. `raw_string` keeps quotes and escapes.
  std::string string();
  std::string_view raw_string();
  // From an opening bracket here to the one that closes it, both included; strings are respected.
  std::string_view balanced();
  // One value of an attribute of any kind, up to the ',' or closing bracket behind it.
  std::string_view raw_value();

  // `open` f() ',' f() ... `close`; nothing between them is an empty list.
  template <typename F>
  void list(char open, char close, F f) {
    take(open);
    if (try_take(close)) return;
    do {
      f();
    } while (try_take(','));
    take(close);
  }

  [[noreturn]] void fail(size_t offset, std::string message, std::string hint = "") const;
  // "expected WHAT, not 'xyz'" at the next token.
  [[noreturn]] void fail_here(std::string_view what, std::string hint = "");
  [[noreturn]] void expected_char(char c);
  // "FILE:LINE:COL" of an offset.
  std::string place_text(size_t offset) const;

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c != '/' || !skip_comment()) {
        return;
      }
    }
  }
  bool skip_comment();
  size_t skip_string(size_t quote) const;

  std::string_view text_, file_;
  size_t at_ = 0;
};

}  // namespace gspmd
