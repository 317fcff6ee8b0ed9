#include "gspmd/formats/mlir/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace gspmd::mlir {
namespace {

bool is_word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

void Cursor::skip_space() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/' && text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

size_t Cursor::position() {
  skip_space();
  return at_;
}
bool Cursor::at_end() { return position() == text_.size(); }
char Cursor::next_char() { return at_end() ? '\0' : text_[at_]; }

bool Cursor::peek(std::string_view token) {
  skip_space();
  return text_.substr(at_, token.size()) == token;
}
bool Cursor::try_take(std::string_view token) {
  if (!peek(token)) return false;
  at_ += token.size();
  return true;
}
void Cursor::take(std::string_view token) {
  if (!try_take(token)) fail_here(fmt::format("expected '{}', not {}", token, found()));
}

std::string_view Cursor::peek_word() {
  skip_space();
  if (at_ == text_.size() || !is_word_start(text_[at_])) return {};
  size_t end = at_ + 1;
  while (end < text_.size() && is_word(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}
std::string_view Cursor::word() {
  std::string_view w = peek_word();
  at_ += w.size();
  return w;
}
bool Cursor::try_word(std::string_view word) {
  if (peek_word() != word) return false;
  at_ += word.size();
  return true;
}
void Cursor::take_word(std::string_view word) {
  if (!try_word(word)) fail_here(fmt::format("expected '{}', not {}", word, found()));
}

std::string Cursor::string() {
  size_t begin = position();
  take("\"");
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c != '\\' || at_ == text_.size()) {
      out += c;
      continue;
    }
    c = text_[at_++];
    int high = hex_value(c), low = at_ < text_.size() ? hex_value(text_[at_]) : -1;
    if (high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      ++at_;
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  if (at_ == text_.size()) fail(begin, "the string does not end");
  ++at_;
  return out;
}

std::string Cursor::name_or_string() {
  if (at_ < text_.size() && text_[at_] == '"') return string();
  size_t end = at_;
  while (end < text_.size() && (is_word(text_[end]) || text_[end] == '-')) ++end;
  if (end == at_) fail_here(fmt::format("expected a name, not {}", found()));
  // An arrow ends a name.
  if (text_[end - 1] == '-' && end < text_.size() && text_[end] == '>') --end;
  std::string out(text_.substr(at_, end - at_));
  at_ = end;
  return out;
}

bool Cursor::peek_number() {
  char c = next_char();
  return is_digit(c) || (c == '-' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]));
}

std::string_view Cursor::number() {
  if (!peek_number()) fail_here(fmt::format("expected a number, not {}", found()));
  size_t end = at_ + (text_[at_] == '-');
  if (text_.substr(end, 2) == "0x") {
    end += 2;
    while (end < text_.size() && hex_value(text_[end]) >= 0) ++end;
  } else {
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (end < text_.size() && text_[end] == '.') {
      ++end;
      while (end < text_.size() && is_digit(text_[end])) ++end;
      if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
        ++end;
        if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
        while (end < text_.size() && is_digit(text_[end])) ++end;
      }
    }
  }
  std::string_view n = text_.substr(at_, end - at_);
  at_ = end;
  return n;
}

int64_t Cursor::integer() {
  size_t begin = position();
  std::string_view n = number();
  bool negative = n.starts_with('-');
  std::string_view digits = n.substr(negative);
  bool hex = digits.starts_with("0x");
  uint64_t value = 0;
  digits.remove_prefix(hex ? 2 : 0);
  auto [end, fault] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (fault != std::errc() || end != digits.data() + digits.size())
    fail(begin, fmt::format("'{}' is no 64-bit integer", n));
  return static_cast<int64_t>(negative ? -value : value);
}

std::string_view Cursor::balanced(std::string_view open) {
  size_t begin = position();
  take(open);
  int depth = 1;
  bool quoted = false;
  while (at_ < text_.size() && depth > 0) {
    char c = text_[at_++];
    if (quoted && c == '\\') {
      ++at_;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '<' || c == '{' || c == '[' || c == '(')) {
      ++depth;
    } else if (!quoted && (c == '>' || c == '}' || c == ']' || c == ')')) {
      depth -= c != '>' || text_[at_ - 2] != '-';
    }
  }
  if (depth > 0 || at_ > text_.size()) fail(begin, "the bracket is not closed");
  return text_.substr(begin, at_ - begin);
}

std::string Cursor::found() {
  if (at_end()) return "the end";
  std::string_view w = peek_word();
  if (w.empty()) w = text_.substr(at_, 1);
  return fmt::format("'{}'", w.substr(0, 40));
}

void Cursor::fail(size_t at, std::string message, std::string hint) const {
  at = std::min(at, text_.size());
  size_t line_begin = text_.rfind('\n', at == 0 ? 0 : at - 1);
  line_begin = at == 0 || line_begin == std::string_view::npos ? 0 : line_begin + 1;
  size_t line_end = std::min(text_.find('\n', at), text_.size());
  Place place;
  place.file = source_->file;
  place.line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  place.column = static_cast<int64_t>(at - line_begin) + 1;
  Error e(std::move(message), std::move(hint));
  e.at(place, std::string(text_.substr(line_begin, line_end - line_begin)));
  throw e;
}

void Cursor::fail_here(std::string message, std::string hint) {
  fail(position(), std::move(message), std::move(hint));
}

}  // namespace gspmd::mlir
