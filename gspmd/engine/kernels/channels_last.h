#pragma once

#include "gspmd/engine/kernel.h"

namespace gspmd {

// A convolution's arrays with channels last: input [batch, spatial..., in], kernel [taps..., in,
// out] with taps reversed where the window says so, result [batch, spatial..., out].
struct ChannelsLast {
  Buffer input, kernel;
  DimVector result_dims;
  DimVector back;  // result dimension i of the program is dimension back[i]
};
ChannelsLast channels_last(const Instr& convolution, const Buffer& lhs, const Buffer& rhs);

}  // namespace gspmd
