// The built-in machines. Peaks, memory and links are the makers' figures as published (Google's
// TPU pages and the scaling book of its researchers for TPUs; XLA's target descriptions and
// MLPerf's system descriptions for GPUs). Links: a TPU's ring uses a link's both directions; within
// a pod 1 us a hop, beyond it a host's network shared by its chips. GPUs: the switch in a domain,
// the network card beyond; latency is launching a collective (5 us) and one step of NCCL's ring
// (LL128: 1.9 us by NVLink, 4.0 us by network).

#include "gspmd/partition/machine.h"

namespace gspmd {
namespace {

constexpr double kNvlinkUs = 6.9, kNetworkUs = 9.0, kHopUs = 1.0, kDcnUs = 10.0;
constexpr double kHostGbPerS = 25;

//                                   elementwise, f64, f32, bf16, f8, f4, s8
using Peaks = std::array<double, kNumFlopKinds>;

MachineFacts tpu(std::string name, Peaks peaks, double memory_gb_per_s, double memory_gib,
                 double link, int64_t pod, int chips_per_host) {
  return {std::move(name),
          peaks,
          memory_gb_per_s,
          memory_gib * 1.073741824,
          {{pod, 2 * link, kHopUs}, {0, kHostGbPerS / chips_per_host, kDcnUs}},
          {}};
}

MachineFacts gpu(std::string name, Peaks peaks, double memory_gb_per_s, double memory_gb,
                 double link, int64_t domain, double network) {
  return {std::move(name),
          peaks,
          memory_gb_per_s,
          memory_gb,
          {{domain, link, kNvlinkUs}, {0, network, kNetworkUs}},
          {}};
}

const std::vector<MachineFacts>& table() {
  static const std::vector<MachineFacts> machines = {
      tpu("tpu_v3", {0, 0, 0, 61.5, 0, 0, 0}, 450, 16, 82, 2048, 16),  // of a core
      tpu("tpu_v4", {0, 0, 0, 275, 0, 0, 275}, 1200, 32, 45, 4096, 4),
      tpu("tpu_v5e", {0, 0, 0, 197, 0, 0, 393}, 819, 16, 45, 256, 8),
      tpu("tpu_v5p", {0, 0, 0, 459, 0, 0, 918}, 2765, 95, 90, 8960, 4),
      tpu("tpu_v6e", {0, 0, 0, 918, 0, 0, 1836}, 1640, 32, 90, 256, 8),
      gpu("a100_sxm_40", {0, 0, 155.9, 311.9, 0, 0, 623.7}, 1555.2, 42.331, 300, 8, 25),
      gpu("a100_sxm_80", {0, 0, 155.9, 311.9, 0, 0, 623.7}, 2039, 85.1, 300, 8, 25),
      gpu("h100_sxm", {0, 0, 494.6, 989.2, 1978.3, 0, 1978.3}, 3352.3, 84.943, 450, 8, 50),
      gpu("h200", {0, 0, 494.6, 989.2, 1978.3, 0, 1978.3}, 4800, 151.398, 450, 8, 50),
      gpu("b200", {0, 0, 1112.6, 2225.2, 4450.3, 8900.6, 4450.3}, 7672.3, 191.514, 900, 8, 50),
      gpu("gb200_nvl72", {0, 0, 1199.1, 2398.1, 4796.2, 9592.4, 4796.2}, 7928.1, 197.898, 900, 72,
          50),
  };
  return machines;
}

}  // namespace

std::vector<std::string_view> machine_names() {
  std::vector<std::string_view> names;
  for (const MachineFacts& m : table()) names.push_back(m.name);
  return names;
}

const MachineFacts* find_machine(std::string_view name) {
  for (const MachineFacts& m : table()) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

}  // namespace gspmd
