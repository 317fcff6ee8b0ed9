#include "gspmd/base/error.h"

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/base/check.h"

namespace gspmd {

void check_failed(std::string_view file, int line, std::string_view condition,
                  const std::string& message) {
  throw InternalError(fmt::format("{}:{}: check failed: {}: {}", file, line, condition, message));
}

Error& Error::at(Place place, std::string source_line) {
  if (place_.line == 0) {
    place_ = std::move(place);
    source_line_ = std::move(source_line);
  }
  return *this;
}

Error& Error::in_model(std::string model_place) {
  if (model_place_.empty()) model_place_ = std::move(model_place);
  return *this;
}

namespace {

// The line with a caret below the column; of a long line only what is around it.
std::string excerpt(const std::string& line, int64_t column) {
  constexpr size_t kWidth = 160, kBefore = 100;
  size_t caret = column < 1 ? 0 : static_cast<size_t>(column) - 1;
  size_t start =
      caret > kBefore && line.size() > kWidth ? std::min(caret - kBefore, line.size()) : 0;
  std::string shown = line.substr(start, kWidth);
  if (start + kWidth < line.size()) shown += "...";
  std::string_view lead = start > 0 ? "..." : "";
  return fmt::format("\n  {}{}\n  {:>{}}", lead, shown, "^", lead.size() + caret - start + 1);
}

}  // namespace

std::string Error::render() const {
  std::string out;
  if (!place_.file.empty()) out += place_.file + ":";
  if (place_.line > 0) out += fmt::format("{}:{}:", place_.line, place_.column);
  out += fmt::format("{}error: {}", out.empty() ? "" : " ", message_);
  if (!code_.empty()) out += fmt::format(" [{}]", code_);
  if (!source_line_.empty()) out += excerpt(source_line_, place_.column);
  if (!model_place_.empty()) out += "\n  in the model: " + model_place_;
  if (!hint_.empty()) out += "\n  hint: " + hint_;
  return out;
}

}  // namespace gspmd
