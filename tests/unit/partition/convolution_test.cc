// The per-device program of a kernel's gradient, whose taps are split with the image: its own
// windows are as large as the local kernel, so that it is a right program again.

#include <gtest/gtest.h>

#include "gspmd/ops/builder_ops.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd {
namespace {

// Gradient of a 1x1 kernel: image and kernel have `height` rows, split over four devices.
std::unique_ptr<Module> gradient(int64_t height) {
  Builder b("m", 4);
  NamedMesh mesh{{{"x", 4}}};
  Expr x = MeshSplit(b.parameter("x", ElementType::kF32, {2, height, 8, 3}), mesh, {-1, 0, -1, -1});
  Expr g = MeshSplit(b.parameter("g", ElementType::kF32, {2, height, 8, 5}), mesh, {-1, 0, -1, -1});
  ConvAttrs conv;  // f01b_i01o->01bf
  WindowDim window[] = {{.size = height}, {.size = 8}};
  int64_t spatial[] = {1, 2}, out[] = {0, 1};
  conv.window = window;
  conv.dims.input_feature = conv.dims.kernel_input = 0;
  conv.dims.input_batch = conv.dims.kernel_output = 3;
  conv.dims.input_spatial = conv.dims.kernel_spatial = Dims(spatial);
  conv.dims.output_spatial = Dims(out);
  conv.dims.output_batch = 2;
  conv.dims.output_feature = 3;
  return b.build(convolution(x, g, conv));
}

TEST(Convolution, WindowsAreThoseOfTheLocalKernel) {
  for (int64_t height : {16, 13}) {  // 13 in blocks of 4, the last with padding
    Compiled c = partition(gradient(height), {});
    EXPECT_NO_THROW(verify(*c.module)) << height;
    int convolutions = 0;
    for (const Instr* i : c.module->entry()->instrs()) {
      if (i->opcode != Opcode::kConvolution) continue;
      ++convolutions;
      EXPECT_EQ(i->attrs<ConvAttrs>().window[0].size, 4) << height;
      EXPECT_EQ(i->attrs<ConvAttrs>().window[1].size, 8) << height;
      EXPECT_EQ(to_string(i->shape), "f32[1,1,3,5]") << height;
    }
    EXPECT_EQ(convolutions, 1) << height;
  }
}

}  // namespace
}  // namespace gspmd
