#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {

void SpellingReader::skip_blanks() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (text_.substr(at_).starts_with("/*")) {
      const size_t close = text_.find("*/", at_ + 2);
      if (close == std::string_view::npos)
        fail(at_, "a comment that does not end", "close it with */");
      at_ = close + 2;
    } else {
      return;
    }
  }
}

void SpellingReader::fail_here(const std::string& message, std::string hint) {
  const size_t at = position();
  if (at >= text_.size()) fail(at, message + ", but the text ends here", std::move(hint));
  size_t end = at + 1;
  if (is_word(text_[at])) {
    while (end < text_.size() && end < at + 30 && is_word(text_[end])) ++end;
  }
  fail(at, message + ", not '" + std::string(text_.substr(at, end - at)) + "'", std::move(hint));
}

int64_t SpellingReader::integer() {
  const size_t begin = position();
  const bool negative = try_take("-");
  if (!peek_digit()) {
    at_ = begin;
    fail_here("expected an integer");
  }
  int64_t value = 0;
  for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
    if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
        __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
      fail(begin, "an integer over 2^63", "write a number that fits 64 bits");
    }
  }
  return negative ? -value : value;
}

std::string SpellingReader::quoted() {
  const size_t begin = position();
  if (!peek('"') && !peek('\'')) fail_here("expected a name in quotes");
  const char quote = text_[at_++];
  std::string out;
  while (at_ < text_.size() && text_[at_] != quote) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    out += text_[at_++];
  }
  if (at_ >= text_.size()) fail(begin, "a name whose quote does not end");
  ++at_;
  return out;
}

std::string_view SpellingReader::braces() {
  const size_t begin = position();
  if (!peek('{')) fail_here("expected '{'");
  int depth = 0;
  bool in_string = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (in_string) {
      if (c == '\\') ++at_;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) {
      ++at_;
      return text_.substr(begin, at_ - begin);
    }
  }
  fail(begin, "a '{' without its '}'");
}

}  // namespace gspmd
