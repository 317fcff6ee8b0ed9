// map: a computation on scalars applied to every element.

#include <cstring>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/lane_program.h"

namespace gspmd {
namespace {

std::vector<ElementType> result_types(const Computation& computation, bool wide) {
  std::vector<ElementType> types;
  for_each_leaf(computation.root()->shape,
                [&](Shape s, int) { types.push_back(wide ? widened(s.type()) : s.type()); });
  return types;
}

void run_program(LaneProgram* program, absl::Span<const Buffer> operands,
                 std::vector<Buffer>* results) {
  std::vector<std::vector<std::byte>> lanes(
      operands.size(), std::vector<std::byte>(static_cast<size_t>(kChunk * kMaxLaneBytes)));
  std::vector<const void*> in;
  for (const auto& l : lanes) in.push_back(l.data());
  const int64_t size = operands[0].size();
  for (int64_t begin = 0; begin < size; begin += kChunk) {
    const int64_t n = std::min(kChunk, size - begin);
    for (size_t k = 0; k < operands.size(); ++k) {
      const Buffer& b = operands[k];
      load_as(b.type(), b.raw() + begin * storage_bytes(b.type()), n,
              lane_of(program->param_type(static_cast<int>(k))), lanes[k].data());
    }
    program->run(in, n);
    for (size_t k = 0; k < results->size(); ++k) {
      Buffer& b = (*results)[k];
      store_lanes(b.type(), program->result(static_cast<int>(k)), n,
                  b.mutable_raw() + begin * storage_bytes(b.type()));
    }
  }
}

void run_calls(const Computation& computation, absl::Span<const Buffer> operands,
               const KernelContext& context, std::vector<Buffer>* results) {
  for (int64_t i = 0; i < operands[0].size(); ++i) {
    std::vector<Buffer> args;
    for (const Buffer& b : operands) {
      Buffer scalar(b.type(), {});
      const int width = storage_bytes(b.type());
      std::memcpy(scalar.mutable_raw(), b.raw() + i * width, static_cast<size_t>(width));
      args.push_back(std::move(scalar));
    }
    std::vector<Buffer> values = context.call(computation, args);
    for (size_t k = 0; k < results->size(); ++k) {
      const int width = storage_bytes(values[k].type());
      std::memcpy((*results)[k].mutable_raw() + i * width, values[k].raw(),
                  static_cast<size_t>(width));
    }
  }
}

}  // namespace

std::vector<Buffer> map_elements(const Computation& computation, absl::Span<const Buffer> operands,
                                 const KernelContext& context) {
  std::vector<Buffer> results;
  for (ElementType t : result_types(computation, context.wide)) {
    results.emplace_back(t, operands[0].dims());
  }
  if (auto program = LaneProgram::compile(computation, context.wide)) {
    run_program(&*program, operands, &results);
  } else {
    run_calls(computation, operands, context, &results);
  }
  return results;
}

GSPMD_KERNEL(map_kernel) { return map_elements(*instr.called[0], operands, context); }

}  // namespace gspmd
