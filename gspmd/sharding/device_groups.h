#pragma once

#include <functional>
#include <string>

#include "gspmd/sharding/halo.h"
#include "gspmd/sharding/mesh.h"
#include "gspmd/sharding/sharding.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {

// The groups of a collective: num_groups rows of group_size devices each; the order inside a row is
// the order of the data.
// `[2,4]<=[4,2]T(1,0)` is num_groups 2, group_size 4 over that iota. Both 0 = `{}` = one group of
// all.
struct DeviceGroups {
  int64_t num_groups = 0;
  int64_t group_size = 0;
  IdList ids;  // row-major
  // The mesh form, kept as written: mesh['a'=4,'b'=2] {'a'}; empty otherwise.
  std::string mesh_form;
  friend bool operator==(const DeviceGroups&, const DeviceGroups&) = default;
};

// Groups that vary over `axes` (in this order, major to minor) and fix all others. Iota where the
// mesh has no device table: over x=2,y=4 the groups along {x} are [4,2]<=[2,4]T(1,0).
DeviceGroups groups_along(const Mesh& mesh, const AxisList& axes);

std::string print_replica_groups(const DeviceGroups& groups);
// Any of the three forms of `replica_groups=`: lists, iota, mesh. Ragged lists are refused with
// SpellingError.
DeviceGroups parse_replica_groups(std::string_view text, size_t* position);
// For the engine and for printers that must list: the rows, expanded.
std::vector<std::vector<int64_t>> expand(const DeviceGroups& groups, int64_t num_devices);

// A permutation of devices as a map of axis coordinates; nothing lists devices until it is printed
// or run.
//   kShift: along the (joined) axes list, from position i to i + shift; without wrap the last ones
//   send nothing. kRemap: target coordinates along `to[k]` = source coordinates along `from[k]`
//   (lists of equal total size). kReverse: along the joined axes, from position i to n-1-i. kHop:
//   along the joined axes, shard j sends to hop_target(need, hop, j) (halo.h).
struct DevicePermutation {
  enum class Kind : uint8_t { kShift, kRemap, kReverse, kHop } kind = Kind::kShift;
  AxisList axes;      // kShift, kReverse, kHop: the joined axis
  int64_t shift = 0;  // kShift
  bool wrap = false;  // kShift
  AxisList from, to;  // kRemap: digit sequences of equal sizes; the device at coordinates c sends
                      // to coordinates c' where the digits of c' along `to` are the digits of c
                      // along `from`; axes outside `to` keep their coordinate
  HaloNeed need;      // kHop
  HaloHop hop;        // kHop
  friend bool operator==(const DevicePermutation&, const DevicePermutation&) = default;
};
// Calls visit(source, target) for each device that sends: only for printing and running.
void for_each_pair(const DevicePermutation& p, const Mesh& mesh,
                   const std::function<void(int64_t, int64_t)>& visit);
// The same as a list.
std::vector<std::pair<int64_t, int64_t>> expand(const DevicePermutation& p, const Mesh& mesh);

}  // namespace gspmd
