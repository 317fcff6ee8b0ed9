#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gspmd/base/error.h"

namespace gspmd {

// A JSON file that a user wrote (a machine, decisions): its value, and where each part of it
// stands, for errors.
class JsonText {
 public:
  // Throws Error at the place of what is no JSON.
  JsonText(std::string file, std::string text);

  const nlohmann::json& value() const { return value_; }
  // An error about the part that `where` leads to (the nearest part that exists):
  //   machine.json:3:12: error: ...
  Error error(const nlohmann::json::json_pointer& where, std::string message,
              std::string hint = "") const;

  // Members of objects with their kind checked; `where` leads to the object.
  using Pointer = nlohmann::json::json_pointer;
  double positive(const Pointer& where) const;
  const nlohmann::json& object(const Pointer& where) const;
  const nlohmann::json& array(const Pointer& where) const;
  std::string string(const Pointer& where) const;
  // Throws where an object has a member that is not among these.
  void check_members(const Pointer& object, std::initializer_list<std::string_view> known) const;

 private:
  Error error_at(size_t offset, std::string message, std::string hint) const;
  const nlohmann::json& member(const Pointer& where) const;

  std::string file_, text_;
  nlohmann::json value_;
};

}  // namespace gspmd
