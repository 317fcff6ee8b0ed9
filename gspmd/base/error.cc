#include "gspmd/base/error.h"

#include <fmt/format.h>

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

std::string Error::render() const {
  std::string out;
  if (!place_.file.empty()) out += place_.file + ":";
  if (place_.line > 0) out += fmt::format("{}:{}:", place_.line, place_.column);
  out += fmt::format("{}error: {}", out.empty() ? "" : " ", message_);
  if (!code_.empty()) out += fmt::format(" [{}]", code_);
  if (!source_line_.empty()) {
    out += fmt::format("\n  {}\n  {:>{}}", source_line_, "^", place_.column < 1 ? 1 : place_.column);
  }
  if (!model_place_.empty()) out += "\n  in the model: " + model_place_;
  if (!hint_.empty()) out += "\n  hint: " + hint_;
  return out;
}

}  // namespace gspmd
