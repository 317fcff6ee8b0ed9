#include "gspmd/ir/opcode.h"

#include <absl/container/flat_hash_map.h>

namespace gspmd {
namespace {

constexpr std::string_view kNames[] = {
#define OPCODE(id, name) name,
#include "gspmd/ir/opcodes.def"
#undef OPCODE
};

}  // namespace

std::string_view name_of(Opcode op) { return kNames[static_cast<size_t>(op)]; }

std::optional<Opcode> parse_opcode(std::string_view name) {
  static const auto* const kByName = [] {
    auto* map = new absl::flat_hash_map<std::string_view, Opcode>();
    for (int i = 0; i < kNumOpcodes; ++i) map->emplace(kNames[i], static_cast<Opcode>(i));
    return map;
  }();
  auto it = kByName->find(name);
  if (it == kByName->end()) return std::nullopt;
  return it->second;
}

}  // namespace gspmd
