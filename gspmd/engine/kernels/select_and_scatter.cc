// select-and-scatter.

#include <optional>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/lane_program.h"
#include "gspmd/engine/kernels/near_ties.h"
#include "gspmd/engine/kernels/reducer.h"
#include "gspmd/engine/kernels/window_index.h"

namespace gspmd {
namespace {

// select(current, new): whether the current element stays the chosen one.
class Choice {
 public:
  Choice(const Computation& select, const Buffer& x, const KernelContext& context)
      : select_(select),
        context_(context),
        x_(x),
        lane_(lane_of(x.type())),
        lanes_(static_cast<size_t>(x.size() * bytes_of(lane_))),
        program_(LaneProgram::compile(select, context.wide)) {
    load_lanes(x.type(), x.raw(), x.size(), lanes_.data());
    if (program_ && program_->param_type(0) != x.type()) program_.reset();
  }

  bool keeps(int64_t current, int64_t candidate) {
    if (!program_) return call(current, candidate);
    const int width = bytes_of(lane_);
    const void* in[] = {lanes_.data() + current * width, lanes_.data() + candidate * width};
    program_->run(in, 1);
    return *static_cast<const uint8_t*>(program_->result(0)) != 0;
  }

 private:
  bool call(int64_t current, int64_t candidate) {
    std::vector<Buffer> args;
    for (int64_t i : {current, candidate}) {
      Buffer scalar(x_.type(), {});
      const int width = storage_bytes(x_.type());
      std::memcpy(scalar.mutable_raw(), x_.raw() + i * width, static_cast<size_t>(width));
      args.push_back(std::move(scalar));
    }
    return *context_.call(select_, args)[0].data<uint8_t>() != 0;
  }

  const Computation& select_;
  const KernelContext& context_;
  const Buffer& x_;
  Lane lane_;
  std::vector<std::byte> lanes_;
  std::optional<LaneProgram> program_;
};

// Calls f(element) for what the window at `result` holds of the operand.
template <typename F>
void for_each_place(Window window, const DimVector& sizes, const DimVector& result,
                    absl::Span<const int64_t> dims, const DimVector& strides, F&& f) {
  for_each_index(sizes, [&](const DimVector& at) {
    int64_t place = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t i = operand_index(window[d], result[d], at[d], dims[d]);
      if (i < 0) return;
      place += i * strides[d];
    }
    f(place);
  });
}

// The chosen element of the window at `result`, or -1 where it holds padding only.
int64_t chosen(Choice* choice, Window window, const DimVector& sizes, const DimVector& result,
               absl::Span<const int64_t> dims, const DimVector& strides) {
  int64_t best = -1;
  for_each_place(window, sizes, result, dims, strides, [&](int64_t place) {
    if (best < 0 || !choice->keeps(best, place)) best = place;
  });
  return best;
}

}  // namespace

GSPMD_KERNEL(select_and_scatter_kernel) {
  const Buffer &x = operands[0], &source = operands[1];
  const Window window = instr.attrs<WindowAttrs>().window;
  const ElementType type = result_type(instr, context);
  Reducer reducer(*instr.called[1], {type}, context);
  auto acc = reducer.accumulators(operands.subspan(2, 1), x.size());
  std::vector<std::byte> values(static_cast<size_t>(source.size() * bytes_of(reducer.lane(0))));
  load_as(source.type(), source.raw(), source.size(), reducer.lane(0), values.data());
  Choice choice(*instr.called[0], x, context);
  DimVector sizes;
  for (const WindowDim& w : window) sizes.push_back(w.size);
  const DimVector strides = strides_of(x.dims());
  const int width = bytes_of(reducer.lane(0));
  int64_t i = 0;
  for_each_index(source.dims(), [&](const DimVector& at) {
    const int64_t to = chosen(&choice, window, sizes, at, x.dims(), strides);
    const int64_t from = i++;
    if (to < 0) return;
    void* target[] = {acc[0].data() + to * width};
    const void* value[] = {values.data() + from * width};
    reducer.fold(target, value, 1);
  });
  return reducer.results(acc, x.dims());
}

// What of each window nearly equals the chosen element.
std::vector<Nudge> near_ties_of_select_and_scatter(const Instr& i, absl::Span<const Buffer> own,
                                                   absl::Span<const Buffer> reference,
                                                   const KernelContext& wide) {
  std::vector<Nudge> out;
  const RoundedOperand x(0, own[0], reference[0]);
  if (x.exact()) return out;
  const Window window = i.attrs<WindowAttrs>().window;
  Choice choice(*i.called[0], reference[0], wide);
  DimVector sizes;
  for (const WindowDim& w : window) sizes.push_back(w.size);
  const DimVector &dims = reference[0].dims(), strides = strides_of(dims);
  for_each_index(reference[1].dims(), [&](const DimVector& at) {
    const int64_t best = chosen(&choice, window, sizes, at, dims, strides);
    if (best < 0) return;
    for_each_place(window, sizes, at, dims, strides, [&](int64_t place) {
      if (place != best && x.nearly_equal(place, best)) x.add_crossings(place, best, &out);
    });
  });
  return out;
}

}  // namespace gspmd
