#include "gspmd/sharding/mesh.h"

#include <fmt/format.h>

#include "gspmd/base/check.h"

namespace gspmd {

Mesh::Mesh(std::vector<Axis> axes, std::vector<int64_t> device_of_position)
    : axes_(std::move(axes)),
      strides_(axes_.size()),
      device_of_position_(std::move(device_of_position)) {
  GSPMD_CHECK(axes_.size() <= kMaxAxes,
              fmt::format("a mesh of {} axes; {} are possible", axes_.size(), kMaxAxes));
  for (size_t a = axes_.size(); a-- > 0;) {
    GSPMD_CHECK(axes_[a].size > 1,
                fmt::format("axis {} has size {}", axes_[a].name, axes_[a].size));
    strides_[a] = num_devices_;
    num_devices_ *= axes_[a].size;
  }
  GSPMD_CHECK(device_of_position_.empty() ||
                  static_cast<int64_t>(device_of_position_.size()) == num_devices_,
              fmt::format("{} device ids for a mesh of {} positions", device_of_position_.size(),
                          num_devices_));
}

}  // namespace gspmd
