#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/ir/module.h"

namespace gspmd {

// One entry of `frontend_attributes={a="b",c={json}}`. A string's value is unescaped and without
// quotes; one in braces (`is_raw`) is kept with its braces.
struct FrontendAttribute {
  std::string name;
  std::string value;
  bool is_raw = false;
  friend bool operator==(const FrontendAttribute&, const FrontendAttribute&) = default;
};

// From the raw text with its braces (empty text: none) and back. Throws Error on a malformed text.
std::vector<FrontendAttribute> read_frontend_attributes(std::string_view raw);
std::string write_frontend_attributes(const std::vector<FrontendAttribute>& attributes);

// The value of one attribute: frontend_attribute(i, "xla.sdy.sharding") ==
// `#sdy.sharding<@mesh, [{"a"}, {}]>`; frontend_attribute(m, "xla.sdy.meshes") ==
// `{mesh = #sdy.mesh<["a"=2]>}`. nullopt where there is none.
std::optional<std::string> frontend_attribute(const Instr& instr, std::string_view name);
std::optional<std::string> frontend_attribute(const Module& module, std::string_view name);

// Sets one attribute (a string; nullopt removes it) on an instruction or a module, others kept.
void set_frontend_attribute(Instr* instr, std::string_view name,
                            std::optional<std::string_view> value);
void set_frontend_attribute(Module* module, std::string_view name,
                            std::optional<std::string_view> value);

// C escapes undone: `\"`, `\n`, `\x41`, `\101`. And the other way, for text between double quotes.
std::string unescape(std::string_view text);
void append_escaped(std::string* out, std::string_view text);

}  // namespace gspmd
