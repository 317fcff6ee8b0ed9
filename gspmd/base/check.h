#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace gspmd {

// A broken promise of our own code: never caused by bad input. It is thrown, not aborted on, so
// that an embedding process survives; the command turns it into exit code 3.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(std::string_view file, int line, std::string_view condition,
                               const std::string& message);

}  // namespace gspmd

// Checks stay on in release builds: each guards against a wrong answer.
// `message` is any expression convertible to std::string, evaluated only on failure.
#define GSPMD_CHECK(condition, message)                                 \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::gspmd::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
