#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace gspmd {

// A place in an input file. Lines and columns count from 1; 0 = unknown.
struct Place {
  std::string file;
  int64_t line = 0;
  int64_t column = 0;
};

// Bad input. Thrown anywhere in the library, caught only at the edge (command, Python, C API).
// `message` says what is wrong, with the operator's name and the numbers; `hint` says what to do.
class Error : public std::exception {
 public:
  explicit Error(std::string message, std::string hint = "", std::string code = "")
      : message_(std::move(message)), hint_(std::move(hint)), code_(std::move(code)) {}

  // The same error with a place; an error that already has one keeps it.
  Error& at(Place place, std::string source_line = "");

  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  const std::string& code() const { return code_; }  // e.g. "GS2001"; empty where none is assigned
  const Place& place() const { return place_; }
  const std::string& source_line() const { return source_line_; }

  // The model's own place (file and line of the user's program), where known.
  Error& in_model(std::string model_place);
  const std::string& model_place() const { return model_place_; }

  // "FILE:LINE:COL: error: MESSAGE", the source line, a caret, and the hint, one per line.
  std::string render() const;
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_, hint_, code_, source_line_, model_place_;
  Place place_;
};

}  // namespace gspmd
