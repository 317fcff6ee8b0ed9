#include "gspmd/formats/hlo_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "gspmd/base/error.h"
#include "gspmd/ir/frontend_attributes.h"

namespace gspmd {
namespace {

enum CharClass : uint8_t { kWordStart = 1, kWord = 2, kPattern = 4, kDigit = 8 };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> table{};
  for (int c = 0; c < 256; ++c) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool digit = c >= '0' && c <= '9';
    if (letter) table[c] |= kWordStart;
    if (digit) table[c] |= kDigit;
    if (letter || digit || c == '.' || c == '-') table[c] |= kWord | kPattern;
    if (c == '?' || c == '<' || c == '>') table[c] |= kPattern;
  }
  return table;
}
constexpr std::array<uint8_t, 256> kClasses = make_classes();

bool is(char c, uint8_t char_class) { return kClasses[static_cast<uint8_t>(c)] & char_class; }

std::string shown(char c) {
  uint8_t byte = static_cast<uint8_t>(c);
  return byte < 32 || byte > 126 ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
}

Place place_at(std::string_view text, std::string_view file, size_t offset, std::string* line) {
  offset = std::min(offset, text.size());
  size_t start = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  start = start == std::string_view::npos ? 0 : start + 1;
  size_t end = std::min(text.find('\n', offset), text.size());
  if (line != nullptr) *line = std::string(text.substr(start, end - start));
  int64_t number = 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(start), '\n');
  return {std::string(file), number, static_cast<int64_t>(offset - start) + 1};
}

}  // namespace

bool HloLexer::skip_comment() {
  char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (next == '/') {
    at_ = std::min(text_.find('\n', at_), text_.size());
    return true;
  }
  if (next != '*') return false;
  size_t close = text_.find("*/", at_ + 2);
  if (close == std::string_view::npos) fail(at_, "a comment that does not end", "close it with */");
  at_ = close + 2;
  return true;
}

std::string_view HloLexer::word() {
  skip_blanks();
  size_t begin = at_;
  if (at_ == text_.size() || !is(text_[at_], kWordStart)) return {};
  while (at_ < text_.size() && is(text_[at_], kWord)) ++at_;
  return text_.substr(begin, at_ - begin);
}

bool HloLexer::try_word(std::string_view expected) {
  size_t begin = position();
  if (word() == expected) return true;
  at_ = begin;
  return false;
}

std::string_view HloLexer::name(std::string_view what) {
  skip_blanks();
  size_t at = at_;
  if (at < text_.size() && text_[at] == '%') ++at;
  size_t begin = at;
  while (at < text_.size() && is(text_[at], kWord)) ++at;
  bool starts_well = at > begin && (is(text_[begin], kWordStart) || begin > at_);
  if (!starts_well) fail_here(what);
  at_ = at;
  return text_.substr(begin, at - begin);
}

std::string_view HloLexer::pattern() {
  skip_blanks();
  size_t begin = at_;
  while (at_ < text_.size() && is(text_[at_], kPattern)) ++at_;
  return text_.substr(begin, at_ - begin);
}

int64_t HloLexer::integer() {
  skip_blanks();
  const char* first = text_.data() + at_;
  const char* last = text_.data() + text_.size();
  int64_t value = 0;
  auto [end, fault] = std::from_chars(first, last, value);
  if (fault == std::errc::result_out_of_range) {
    uint64_t wrapped = 0;  // XLA prints some unsigned 64-bit numbers where it means signed ones
    auto [wrapped_end, wrapped_fault] = std::from_chars(first, last, wrapped);
    if (wrapped_fault != std::errc()) fail(at_, "an integer that does not fit in 64 bits");
    at_ += static_cast<size_t>(wrapped_end - first);
    return static_cast<int64_t>(wrapped);
  }
  if (fault != std::errc()) fail_here("an integer");
  at_ += static_cast<size_t>(end - first);
  return value;
}

bool HloLexer::boolean() {
  size_t at = position();
  std::string_view w = word();
  if (w == "true") return true;
  if (w == "false") return false;
  at_ = at;
  fail_here("true or false");
}

std::string_view HloLexer::number() {
  skip_blanks();
  size_t begin = at_, at = at_;
  auto digits = [&] {
    while (at < text_.size() && is(text_[at], kDigit)) ++at;
  };
  if (at < text_.size() && text_[at] == '-') ++at;
  if (at < text_.size() && is(text_[at], kWordStart)) {  // inf, nan, nan(0x1), true
    while (at < text_.size() && is(text_[at], kWord)) ++at;
    if (at < text_.size() && text_[at] == '(' && text_.substr(begin, at - begin).ends_with("nan")) {
      size_t close = text_.find(')', at);
      if (close == std::string_view::npos) fail(at, "a parenthesis that is not closed");
      at = close + 1;
    }
  } else {
    digits();
    if (at < text_.size() && text_[at] == '.') ++at;
    digits();
    if (at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
      ++at;
      if (at < text_.size() && (text_[at] == '+' || text_[at] == '-')) ++at;
      digits();
    }
  }
  if (at == begin) fail_here("a number");
  at_ = at;
  return text_.substr(begin, at - begin);
}

size_t HloLexer::skip_string(size_t quote) const {
  char q = text_[quote];
  for (size_t at = quote + 1; at < text_.size(); ++at) {
    if (text_[at] == '\\') {
      ++at;
    } else if (text_[at] == q) {
      return at + 1;
    }
  }
  fail(quote, "a string that does not end", "close it with a quote");
}

std::string_view HloLexer::raw_string() {
  char c = peek();
  if (c != '"' && c != '\'') fail_here("a string in quotes");
  size_t begin = at_;
  at_ = skip_string(at_);
  return text_.substr(begin, at_ - begin);
}

std::string HloLexer::string() {
  std::string_view raw = raw_string();
  raw = raw.substr(1, raw.size() - 2);
  return raw.find('\\') == std::string_view::npos ? std::string(raw) : unescape(raw);
}

std::string_view HloLexer::balanced() {
  char open = peek();
  char close = open == '{' ? '}' : open == '(' ? ')' : open == '[' ? ']' : '\0';
  if (close == '\0') fail_here("'{'");
  size_t begin = at_;
  int64_t depth = 0;
  for (size_t at = at_; at < text_.size(); ++at) {
    char c = text_[at];
    if (c == '"') {
      at = skip_string(at) - 1;
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      at_ = at + 1;
      return text_.substr(begin, at_ - begin);
    }
  }
  fail(begin, fmt::format("'{}' that is not closed", open),
       fmt::format("close it with '{}'", close));
}

std::string_view HloLexer::raw_value() {
  size_t begin = position();
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == '{' || c == '(' || c == '[') {
      balanced();
    } else if (c == '"') {
      at_ = skip_string(at_);
    } else if (c == ',' || c == '\n' || c == '\r' || c == '}' || c == ')' || c == ']') {
      break;
    } else {
      ++at_;
    }
  }
  std::string_view value = text_.substr(begin, at_ - begin);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  if (value.empty()) fail_here("a value");
  return value;
}

void HloLexer::fail(size_t offset, std::string message, std::string hint) const {
  Error e(std::move(message), std::move(hint));
  std::string line;
  Place place = place_at(text_, file_, offset, &line);
  e.at(std::move(place), std::move(line));
  throw e;
}

void HloLexer::fail_here(std::string_view what, std::string hint) {
  size_t at = position();
  if (at == text_.size()) {
    fail(at, fmt::format("expected {}, but the text ends here", what), std::move(hint));
  }
  size_t end = at;
  while (end < text_.size() && end < at + 40 && is(text_[end], kWord)) ++end;
  std::string token = end > at ? std::string(text_.substr(at, end - at)) : shown(text_[at]);
  fail(at, fmt::format("expected {}, not '{}'", what, token), std::move(hint));
}

void HloLexer::expected_char(char c) { fail_here(fmt::format("'{}'", c)); }

std::string HloLexer::place_text(size_t offset) const {
  Place p = place_at(text_, file_, offset, nullptr);
  return fmt::format("{}:{}:{}", p.file, p.line, p.column);
}

}  // namespace gspmd
