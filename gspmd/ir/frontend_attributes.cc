#include "gspmd/ir/frontend_attributes.h"

#include <fmt/format.h>

#include <algorithm>

namespace gspmd {
namespace {

// The raw text read entry by entry. It was balanced when it was read, but may come from elsewhere.
class Reader {
 public:
  explicit Reader(std::string_view raw) : raw_(raw) {}

  std::vector<FrontendAttribute> read() {
    std::vector<FrontendAttribute> out;
    take('{');
    if (try_take('}')) return out;
    do {
      FrontendAttribute a;
      a.name = std::string(name());
      take('=');
      if (peek() == '"' || peek() == '\'') {
        std::string_view quoted = string();
        a.value = unescape(quoted.substr(1, quoted.size() - 2));
      } else {
        a.value = std::string(braces());
        a.is_raw = true;
      }
      out.push_back(std::move(a));
    } while (try_take(','));
    take('}');
    return out;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(fmt::format("malformed frontend attributes at offset {}: {}", at_, raw_),
                "write frontend_attributes={name=\"value\",name={...}}");
  }
  char peek() {
    at_ = std::min(raw_.find_first_not_of(" \t\n\r", at_), raw_.size());
    return at_ < raw_.size() ? raw_[at_] : '\0';
  }
  bool try_take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void take(char c) {
    if (!try_take(c)) fail();
  }
  std::string_view name() {
    peek();
    size_t end = std::min(raw_.find_first_of("= \t\n\r,{}", at_), raw_.size());
    if (end == at_) fail();
    std::string_view n = raw_.substr(at_, end - at_);
    at_ = end;
    return n;
  }
  std::string_view string() {
    size_t begin = at_;
    for (++at_; at_ < raw_.size(); ++at_) {
      if (raw_[at_] == '\\') {
        ++at_;
      } else if (raw_[at_] == raw_[begin]) {
        return raw_.substr(begin, ++at_ - begin);
      }
    }
    fail();
  }
  std::string_view braces() {
    if (peek() != '{') fail();
    size_t begin = at_;
    int64_t depth = 0;
    while (at_ < raw_.size()) {
      char c = raw_[at_];
      if (c == '"') {
        string();
        continue;
      }
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      ++at_;
      if (depth == 0) return raw_.substr(begin, at_ - begin);
    }
    fail();
  }

  std::string_view raw_;
  size_t at_ = 0;
};

std::optional<std::string> find(std::string_view raw, std::string_view name) {
  if (raw.find(name) == std::string_view::npos) return std::nullopt;
  for (FrontendAttribute& a : read_frontend_attributes(raw)) {
    if (a.name == name) return std::move(a.value);
  }
  return std::nullopt;
}

std::string with(std::string_view raw, std::string_view name,
                 std::optional<std::string_view> value) {
  std::vector<FrontendAttribute> all = read_frontend_attributes(raw);
  auto it = std::find_if(all.begin(), all.end(), [&](auto& a) { return a.name == name; });
  if (it != all.end() && !value)
    all.erase(it);
  else if (it != all.end())
    *it = {std::string(name), std::string(*value), false};
  else if (value)
    all.push_back({std::string(name), std::string(*value), false});
  return write_frontend_attributes(all);
}

}  // namespace

std::vector<FrontendAttribute> read_frontend_attributes(std::string_view raw) {
  if (raw.empty()) return {};
  return Reader(raw).read();
}

std::string write_frontend_attributes(const std::vector<FrontendAttribute>& attributes) {
  if (attributes.empty()) return "";
  std::string out = "{";
  for (const FrontendAttribute& a : attributes) {
    if (out.size() > 1) out.push_back(',');
    out.append(a.name).append(a.is_raw ? "=" : "=\"");
    if (a.is_raw) {
      out.append(a.value);
    } else {
      append_escaped(&out, a.value);
      out.push_back('"');
    }
  }
  return out + "}";
}

std::optional<std::string> frontend_attribute(const Instr& instr, std::string_view name) {
  if (instr.extras == nullptr) return std::nullopt;
  return find(instr.extras->frontend_attributes, name);
}

std::optional<std::string> frontend_attribute(const Module& module, std::string_view name) {
  return find(module.attrs.frontend_attributes, name);
}

void set_frontend_attribute(Instr* instr, std::string_view name,
                            std::optional<std::string_view> value) {
  Context& context = instr->parent->module().context();
  Extras extras = instr->extras != nullptr ? *instr->extras : Extras();
  extras.frontend_attributes = context.name(with(extras.frontend_attributes, name, value));
  instr->extras = context.arena().make<Extras>(extras);
}

void set_frontend_attribute(Module* module, std::string_view name,
                            std::optional<std::string_view> value) {
  module->attrs.frontend_attributes = with(module->attrs.frontend_attributes, name, value);
}

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character of a one-letter escape; the letter itself where it stands for none.
char simple_escape(char c) {
  constexpr std::string_view kLetters = "abfnrtv", kMeaning = "\a\b\f\n\r\t\v";
  size_t k = kLetters.find(c);
  return k == std::string_view::npos ? c : kMeaning[k];
}

}  // namespace

std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    char c = text[++i];
    int value = 0, digits = 0;
    if (c == 'x' || c == 'X') {
      for (; digits < 2 && i + 1 < text.size() && hex_digit(text[i + 1]) >= 0; ++digits) {
        value = value * 16 + hex_digit(text[++i]);
      }
      out.push_back(digits > 0 ? static_cast<char>(value) : c);
    } else if (c >= '0' && c <= '7') {
      value = c - '0';
      for (; digits < 2 && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '7';
           ++digits) {
        value = value * 8 + (text[++i] - '0');
      }
      out.push_back(static_cast<char>(value));
    } else {
      out.push_back(simple_escape(c));
    }
  }
  return out;
}

void append_escaped(std::string* out, std::string_view text) {
  for (char c : text) {
    uint8_t byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\' || c == '\'') {
      out->append({'\\', c});
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '\t') {
      out->append("\\t");
    } else if (c == '\r') {
      out->append("\\r");
    } else if (byte < 32 || byte == 127) {
      fmt::format_to(std::back_inserter(*out), "\\{:03o}", byte);
    } else {
      out->push_back(c);
    }
  }
}

}  // namespace gspmd
