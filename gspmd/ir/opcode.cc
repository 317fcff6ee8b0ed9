#include "gspmd/ir/opcode.h"

#include <absl/container/flat_hash_map.h>

namespace gspmd {
std::optional<Opcode> parse_opcode(std::string_view name) {
  static const auto* const kByName = [] {
    auto* map = new absl::flat_hash_map<std::string_view, Opcode>();
    for (int i = 0; i < kNumOpcodes; ++i) map->emplace(kOpcodeNames[i], static_cast<Opcode>(i));
    return map;
  }();
  auto it = kByName->find(name);
  if (it == kByName->end()) return std::nullopt;
  return it->second;
}

}  // namespace gspmd
