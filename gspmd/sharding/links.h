#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gspmd/sharding/mesh.h"

namespace gspmd {

// How much longer a byte and a message take on some links than on the machine's fastest, in
// sixteenths: 16 is as long.
struct LinkRate {
  int64_t per_byte = 16, per_message = 16;
  bool is_fastest() const { return per_byte == 16 && per_message == 16; }
  LinkRate slower_of(LinkRate o) const {
    return {std::max(per_byte, o.per_byte), std::max(per_message, o.per_message)};
  }
  friend bool operator==(LinkRate, LinkRate) = default;
  template <typename H>
  friend H AbslHashValue(H h, LinkRate r) {
    return H::combine(std::move(h), r.per_byte, r.per_message);
  }
};

// Which links connect the devices along an axis of a mesh: by the axis's name, or by how many
// consecutive devices its groups reach over. Hosts of 8 devices: on mesh data=4,model=8 the groups
// along model stay inside a host, those along data leave it. Empty: all links are alike.
struct Links {
  struct Level {
    int64_t devices;  // that are connected so, consecutive ones
    LinkRate rate;
  };
  std::vector<Level> levels;  // from the inside; beyond the last one's devices, its links too
  std::vector<std::pair<std::string, LinkRate>> axes;

  bool are_alike() const { return levels.size() < 2 && axes.empty(); }
  LinkRate over(int64_t devices) const {
    for (const Level& l : levels) {
      if (devices <= l.devices) return l.rate;
    }
    return levels.empty() ? LinkRate{} : levels.back().rate;
  }
  LinkRate rate(const Mesh& mesh, AxisId a) const {
    for (const auto& [name, r] : axes) {
      if (name == mesh.axis(a).name) return r;
    }
    return over(mesh.stride(a) * mesh.size(a));
  }
  template <typename Axes>
  LinkRate slowest(const Mesh& mesh, const Axes& among) const {
    LinkRate slowest;
    if (are_alike()) return slowest;
    for (AxisId a : among) slowest = slowest.slower_of(rate(mesh, a));
    return slowest;
  }
};

}  // namespace gspmd
