#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gspmd/base/dims.h"
#include "gspmd/sharding/axes.h"

namespace gspmd {

// An ordered list of named axes, major to minor, and the order of the devices in it. A device's
// *position* is the mixed-radix number of its coordinates: on mesh x=2,y=4 the device at x=1,y=2
// stands at position 6. Usually device == position; only an input that spells out an irregular
// order has a table.
class Mesh {
 public:
  struct Axis {
    std::string name;   // of the user's axis, or "axis_0"... where the spelling had none
    int64_t size = 1;   // > 1
    int64_t pre = 1;    // which part of the user's axis this is: product of the sizes before it, as
                        // in sdy's "z":(2)4
    int64_t whole = 1;  // size of the whole user's axis
    friend bool operator==(const Axis&, const Axis&) = default;
  };

  Mesh() = default;
  explicit Mesh(std::vector<Axis> axes, std::vector<int64_t> device_of_position = {});

  int num_axes() const { return static_cast<int>(axes_.size()); }
  const Axis& axis(AxisId a) const { return axes_[a]; }
  const std::vector<Axis>& axes() const { return axes_; }
  AxisSet all_axes() const { return AxisSet::first(num_axes()); }
  int64_t size(AxisId a) const { return axes_[a].size; }
  // How far apart in position two neighbours along `a` are: the product of the sizes of the more
  // minor axes.
  int64_t stride(AxisId a) const { return strides_[a]; }
  int64_t num_devices() const { return num_devices_; }

  int64_t product(const AxisList& axes) const {
    int64_t n = 1;
    for (AxisId a : axes) n *= axes_[a].size;
    return n;
  }
  int64_t product(AxisSet axes) const {
    int64_t n = 1;
    axes.for_each([&](AxisId a) { n *= axes_[a].size; });
    return n;
  }

  bool has_device_table() const { return !device_of_position_.empty(); }
  const std::vector<int64_t>& device_of_position() const { return device_of_position_; }

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<Axis> axes_;
  std::vector<int64_t> strides_;
  std::vector<int64_t> device_of_position_;  // empty = identity
  int64_t num_devices_ = 1;
};

}  // namespace gspmd
