#include "gspmd/base/json_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace gspmd {
namespace {

using nlohmann::json;

// Walks a text that is known to be JSON.
class Locator {
 public:
  explicit Locator(std::string_view text) : text_(text) {}

  // Offset of the value that the keys (or indices) lead to, or of the last one on the way.
  size_t find(const std::vector<std::string>& keys) {
    space();
    size_t best = at_;
    for (const std::string& key : keys) {
      if (!enter(key)) return best;
      best = at_;
    }
    return best;
  }

 private:
  void space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  std::string_view quoted() {
    size_t start = at_++;
    while (text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    return text_.substr(start, ++at_ - start);
  }

  void skip_value() {
    if (text_[at_] == '"') {
      quoted();
      return;
    }
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') {
        quoted();
        --at_;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth-- == 0) return;
      } else if (c == ',' && depth == 0) {
        return;
      }
    }
  }

  // From the start of an object or a list to the start of its part.
  bool enter(const std::string& key) {
    bool object = text_[at_] == '{';
    if (!object && text_[at_] != '[') return false;
    ++at_;
    for (size_t index = 0;; ++index) {
      space();
      if (text_[at_] == '}' || text_[at_] == ']') return false;
      std::string name = object ? json::parse(quoted()).get<std::string>() : std::to_string(index);
      if (object) at_ = text_.find(':', at_) + 1;
      space();
      if (name == key) return true;
      skip_value();
      space();
      if (text_[at_] == ',') ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::vector<std::string> keys_of(JsonText::Pointer where) {
  std::vector<std::string> keys;
  for (; !where.empty(); where.pop_back()) keys.push_back(where.back());
  std::reverse(keys.begin(), keys.end());
  return keys;
}

std::string name_of(const JsonText::Pointer& where) {
  return where.empty() ? "the file" : fmt::format("'{}'", where.to_string().substr(1));
}

}  // namespace

JsonText::JsonText(std::string file, std::string text)
    : file_(std::move(file)), text_(std::move(text)) {
  try {
    value_ = json::parse(text_);
  } catch (const json::parse_error& e) {
    throw error_at(e.byte > 0 ? e.byte - 1 : 0, "this is no JSON", "see what stands just before");
  }
}

Error JsonText::error_at(size_t offset, std::string message, std::string hint) const {
  std::string_view before = std::string_view(text_).substr(0, offset);
  size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  size_t end = std::min(text_.find('\n', start), text_.size());
  Error e(std::move(message), std::move(hint));
  e.at({file_, 1 + std::count(before.begin(), before.end(), '\n'),
        static_cast<int64_t>(offset - start) + 1},
       text_.substr(start, end - start));
  return e;
}

Error JsonText::error(const Pointer& where, std::string message, std::string hint) const {
  return error_at(Locator(text_).find(keys_of(where)), std::move(message), std::move(hint));
}

const json& JsonText::member(const Pointer& where) const {
  if (value_.contains(where)) return value_.at(where);
  throw error(where, name_of(where) + " is missing");
}

double JsonText::positive(const Pointer& where) const {
  const json& v = member(where);
  if (v.is_number() && v.get<double>() > 0) return v.get<double>();
  throw error(where, name_of(where) + " is no number above 0");
}

const json& JsonText::object(const Pointer& where) const {
  const json& v = member(where);
  if (v.is_object()) return v;
  throw error(where, name_of(where) + " is no object", "write {...}");
}

const json& JsonText::array(const Pointer& where) const {
  const json& v = member(where);
  if (v.is_array()) return v;
  throw error(where, name_of(where) + " is no list", "write [...]");
}

std::string JsonText::string(const Pointer& where) const {
  const json& v = member(where);
  if (v.is_string()) return v.get<std::string>();
  throw error(where, name_of(where) + " is no string", "write \"...\"");
}

void JsonText::check_members(const Pointer& object_at,
                             std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object(object_at).items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw error(object_at / key, fmt::format("there is no '{}' here", key),
                fmt::format("known are {}", fmt::join(known, ", ")));
  }
}

}  // namespace gspmd
