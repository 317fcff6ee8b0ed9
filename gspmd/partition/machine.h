#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/ir/instr.h"
#include "gspmd/sharding/links.h"

namespace gspmd {

// Which of a machine's peaks bounds an operator: dots and convolutions have one for each type that
// they multiply, all else shares one.
enum class FlopKind : uint8_t { kElementwise, kF64, kF32, kF16, kF8, kF4, kS8 };
inline constexpr int kNumFlopKinds = 7;
FlopKind flop_kind(const Instr& i);

// What one device's work costs, in one integer unit that is the same on every host. The defaults
// are those of an accelerator whose links move a byte in the time of about 1000 floating-point
// operations or 5 bytes of memory traffic.
struct Machine {
  std::string name = "default";
  int64_t per_wire_byte = 64;  // on the fastest links
  int64_t per_message = 64 * 512;
  int64_t per_memory_byte = 12;
  std::array<int64_t, kNumFlopKinds> per_1024_flops = {64, 64, 64, 64, 64, 64, 64};
  double seconds_per_unit = 1e-11 / 64;
  int64_t memory_bytes = 0;  // of a device; 0 = not said
  Links links;
};

// A machine as its data sheet says: peaks in TFLOP/s (0 = not said: that of the next wider type),
// GB/s = 1e9 bytes, in one direction.
struct MachineFacts {
  struct Link {
    int64_t devices = 0;  // consecutive ones that are connected so; 0 = all
    double gb_per_s = 0, latency_us = 0;
  };
  std::string name;
  std::array<double, kNumFlopKinds> peak_tflops = {};
  double memory_gb_per_s = 0, memory_gb = 0;
  std::vector<Link> links;                         // from the inside
  std::vector<std::pair<std::string, Link>> axes;  // of the mesh, by name
};
Machine machine_from(const MachineFacts& facts);

// The built-in machines, and one of them by name; null where there is none.
std::vector<std::string_view> machine_names();
const MachineFacts* find_machine(std::string_view name);

// Reads a machine's facts from JSON (docs/machines.md). Throws Error with its place.
MachineFacts read_machine(std::string file, std::string text);

}  // namespace gspmd
