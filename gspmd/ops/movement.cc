// Operators that move elements by static maps: broadcast, transpose, reverse, concatenate, slice,
// pad.

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

void verify_broadcast(const Instr& i) {
  Dims dims = i.attrs<DimsAttrs>().dimensions;
  Shape from = i.operand(0)->shape;
  if (!from.is_array() || !i.shape.is_array() || from.type() != i.shape.type()) {
    refuse("broadcast", fmt::format("{} becomes {}", to_string(from), to_string(i.shape)),
           "arrays of one type");
  }
  if (static_cast<int>(dims.size()) != from.rank()) {
    refuse("broadcast",
           fmt::format("dimensions has {} entries for {}", dims.size(), to_string(from)),
           "one for each dimension");
  }
  check_dims(dims, i.shape.rank(), "broadcast", "dimensions");
  for (int d = 0; d < from.rank(); ++d) {
    check_equal(from.dim(d), i.shape.dim(static_cast<int>(dims[d])), "broadcast",
                fmt::format("operand dimension {} and result dimension {}", d, dims[d]));
  }
}

const Rule* broadcast_rule(const Instr& instr, Arena& arena) {
  Dims dims = instr.attrs<DimsAttrs>().dimensions;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.shape.rank(); ++d) r.parallel({dims.index_of(d)}, d);
  return r.build();
}

Shape infer_transpose(const InferArgs& args) {
  Shape s = array_operand(args, 0, "transpose");
  Dims dims = args.attrs.get<DimsAttrs>().dimensions;
  check_dims(dims, s.rank(), "transpose", "dimensions");
  if (static_cast<int>(dims.size()) != s.rank()) {
    refuse("transpose", fmt::format("dimensions has {} entries for rank {}", dims.size(), s.rank()),
           "a permutation of all dimensions");
  }
  Sizes sizes;
  for (int64_t d : dims) sizes.add(s, static_cast<int>(d));
  return sizes.shape(args.context, s.type());
}

const Rule* transpose_rule(const Instr& instr, Arena& arena) {
  Dims dims = instr.attrs<DimsAttrs>().dimensions;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.shape.rank(); ++d) r.parallel({dims[d]}, d);
  return r.build();
}

Shape infer_reverse(const InferArgs& args) {
  Shape s = array_operand(args, 0, "reverse");
  check_dims(args.attrs.get<DimsAttrs>().dimensions, s.rank(), "reverse", "dimensions");
  return s.plain();
}

const Rule* reverse_rule(const Instr& instr, Arena& arena) {
  Dims dims = instr.attrs<DimsAttrs>().dimensions;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.shape.rank(); ++d) {
    if (dims.contains(d)) {
      r.permute({d}, d);
    } else {
      r.parallel({d}, d);
    }
  }
  return r.build();
}

Shape infer_concatenate(const InferArgs& args) {
  Shape first = array_operand(args, 0, "concatenate");
  Dims dims = args.attrs.get<DimsAttrs>().dimensions;
  if (dims.size() != 1)
    refuse("concatenate", fmt::format("dimensions has {} entries, one is needed", dims.size()));
  check_dim(dims[0], first.rank(), "concatenate", "dimensions");
  DimVector sizes(first.dims().begin(), first.dims().end());
  for (size_t k = 1; k < args.operands.size(); ++k) {
    Shape s = array_operand(args, static_cast<int>(k), "concatenate");
    if (s.rank() != first.rank() || s.type() != first.type()) {
      refuse("concatenate", fmt::format("operand 0 is {} and operand {} is {}", to_string(first), k,
                                        to_string(s)));
    }
    for (int d = 0; d < s.rank(); ++d) {
      if (d != dims[0])
        check_equal(first.dim(d), s.dim(d), "concatenate",
                    fmt::format("dimension {} of operands 0 and {}", d, k));
    }
    if (__builtin_add_overflow(sizes[dims[0]], s.dim(static_cast<int>(dims[0])), &sizes[dims[0]])) {
      refuse("concatenate", "the result has too many elements to count");
    }
  }
  return args.context.array(first.type(), sizes);
}

// The concatenated dimension is one window factor of all operands and the result: result index i
// reads operand k at i less the sizes before it. Sizes differ from tensor to tensor; the factor's
// is the result's.
const Rule* concatenate_rule(const Instr& instr, Arena& arena) {
  int64_t joined = instr.attrs<DimsAttrs>().dimensions[0];
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.shape.rank(); ++d) {
    DimVector dims(instr.num_operands(), d);
    if (d == joined) {
      r.window(dims, d, {});
    } else {
      r.parallel(dims, d);
    }
  }
  return r.build();
}

Shape infer_slice(const InferArgs& args) {
  Shape s = array_operand(args, 0, "slice");
  const auto& a = args.attrs.get<SliceAttrs>();
  if (static_cast<int>(a.starts.size()) != s.rank()) {
    refuse("slice", fmt::format("{} ranges for {}", a.starts.size(), to_string(s)),
           "one for each dimension");
  }
  Sizes sizes;
  for (int d = 0; d < s.rank(); ++d) {
    bool fits = 0 <= a.starts[d] && a.starts[d] <= a.limits[d] && a.limits[d] <= s.dim(d) &&
                a.strides[d] > 0;
    if (!fits) {
      refuse("slice",
             fmt::format("[{}:{}:{}] of dimension {} with {} elements", a.starts[d], a.limits[d],
                         a.strides[d], d, s.dim(d)),
             "0 <= start <= limit <= size and a positive stride");
    }
    int64_t extent = a.limits[d] - a.starts[d];
    sizes.add(ceil_div(extent, std::min(a.strides[d], std::max<int64_t>(extent, 1))));
  }
  return sizes.shape(args.context, s.type());
}

const Rule* slice_rule(const Instr& instr, Arena& arena) {
  const auto& a = instr.attrs<SliceAttrs>();
  Shape s = instr.operand(0)->shape;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < s.rank(); ++d) {
    if (instr.shape.dim(d) == s.dim(d)) {
      r.parallel({d}, d);
      continue;
    }
    WindowDim w;
    w.stride = instr.shape.dim(d) > 1 ? a.strides[d] : 1;
    w.pad_low = -a.starts[d];
    r.window({d}, d, w);
  }
  return r.build();
}

Shape infer_pad(const InferArgs& args) {
  Shape s = array_operand(args, 0, "pad");
  const auto& a = args.attrs.get<PadAttrs>();
  if (!args.operands[1].is_scalar())
    refuse("pad", fmt::format("the padding value is {}", to_string(args.operands[1])),
           "a scalar is needed");
  if (static_cast<int>(a.low.size()) != s.rank()) {
    refuse("pad", fmt::format("padding has {} dimensions for {}", a.low.size(), to_string(s)),
           "one for each dimension");
  }
  Sizes sizes;
  for (int d = 0; d < s.rank(); ++d) {
    for (int64_t n : {a.low[d], a.high[d], a.interior[d]}) {
      if (-kMaxWindowNumber <= n && n <= kMaxWindowNumber) continue;
      refuse("pad", fmt::format("dimension {} is padded by {}, which is too large", d, n));
    }
    int64_t n = padded_size(s.dim(d), a.low[d], a.high[d], a.interior[d]);
    if (n < 0 || a.interior[d] < 0) {
      refuse("pad",
             fmt::format("dimension {} of {} elements padded by {}_{}_{}", d, s.dim(d), a.low[d],
                         a.high[d], a.interior[d]),
             "the result's size and the interior padding may not be negative");
    }
    sizes.add(n);
  }
  return sizes.shape(args.context, s.type());
}

const Rule* pad_rule(const Instr& instr, Arena& arena) {
  const auto& a = instr.attrs<PadAttrs>();
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.shape.rank(); ++d) {
    if (a.low[d] == 0 && a.high[d] == 0 && a.interior[d] == 0) {
      r.parallel({d}, d);
      continue;
    }
    WindowDim w;
    w.base_dilation = a.interior[d] + 1;
    w.pad_low = a.low[d];
    w.pad_high = a.high[d];
    r.window({d}, d, w);
  }
  return r.build();
}

constexpr Field dims_field(std::string_view stablehlo) {
  return stablehlo_name(field<&DimsAttrs::dimensions>("dimensions", FieldKind::kDims), stablehlo);
}
constexpr Field kBroadcastFields[] = {always_printed(dims_field("broadcast_dimensions"))};
constexpr Field kTransposeFields[] = {required(dims_field("permutation"))};
constexpr Field kReverseFields[] = {required(dims_field("dimensions"))};
constexpr Field kConcatenateFields[] = {required(dims_field("dimension"))};
constexpr Field kSliceFields[] = {required(whole_field<SliceAttrs>("slice", FieldKind::kSlices))};
constexpr Field kPadFields[] = {required(whole_field<PadAttrs>("padding", FieldKind::kPadding))};
constexpr OpTraits kMove = {
    .shape_inferable = true, .data_movement = true, .sums = PartialSums::kPassInOne};
constexpr OpTraits kMoveAll = {
    .shape_inferable = true, .data_movement = true, .sums = PartialSums::kPassInAll};

// Each part would pad with the value of its own.
bool sums_pass_pad(const Instr& i, int operand) {
  const Instr& value = *i.operand(1);
  return operand == 0 && value.opcode == Opcode::kConstant &&
         is_identity(*value.attrs<ConstantAttrs>().literal, Combiner::kSum);
}

}  // namespace

extern const OpDef kBroadcastDef = {
    .opcode = Opcode::kBroadcast,
    .name = "broadcast",
    .stablehlo = "broadcast_in_dim",
    .attrs = AttrsKind::kDimsAttrs,
    .fields = kBroadcastFields,
    .traits = {.data_movement = true, .sums = PartialSums::kPassInOne},
    .verify = verify_broadcast,
    .rule = broadcast_rule};
extern const OpDef kTransposeDef = {.opcode = Opcode::kTranspose,
                                    .name = "transpose",
                                    .attrs = AttrsKind::kDimsAttrs,
                                    .fields = kTransposeFields,
                                    .traits = kMove,
                                    .infer = infer_transpose,
                                    .rule = transpose_rule};
extern const OpDef kReverseDef = {.opcode = Opcode::kReverse,
                                  .name = "reverse",
                                  .attrs = AttrsKind::kDimsAttrs,
                                  .fields = kReverseFields,
                                  .traits = kMove,
                                  .infer = infer_reverse,
                                  .rule = reverse_rule};
extern const OpDef kConcatenateDef = {.opcode = Opcode::kConcatenate,
                                      .name = "concatenate",
                                      .max_operands = -1,
                                      .attrs = AttrsKind::kDimsAttrs,
                                      .fields = kConcatenateFields,
                                      .traits = kMoveAll,
                                      .infer = infer_concatenate,
                                      .rule = concatenate_rule};
extern const OpDef kSliceDef = {.opcode = Opcode::kSlice,
                                .name = "slice",
                                .attrs = AttrsKind::kSliceAttrs,
                                .fields = kSliceFields,
                                .traits = {.data_movement = true, .sums = PartialSums::kPassInOne},
                                .infer = infer_slice,
                                .rule = slice_rule};
extern const OpDef kPadDef = {.opcode = Opcode::kPad,
                              .name = "pad",
                              .min_operands = 2,
                              .max_operands = 2,
                              .attrs = AttrsKind::kPadAttrs,
                              .fields = kPadFields,
                              .traits = kMove,
                              .infer = infer_pad,
                              .sums_pass = sums_pass_pad,
                              .rule = pad_rule};

}  // namespace gspmd
