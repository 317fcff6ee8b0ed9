// Operators whose place or size is known at run time: dynamic-slice, dynamic-update-slice,
// dimension sizes.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

void check_starts(absl::Span<const Shape> starts, int rank, std::string_view op) {
  if (static_cast<int>(starts.size()) != rank) {
    refuse(op, fmt::format("{} start indices for rank {}", starts.size(), rank),
           "one scalar for each dimension");
  }
  for (Shape s : starts) {
    if (!s.is_scalar() || !is_integer(s.type()))
      refuse(op, fmt::format("a start index is {}", to_string(s)), "integer scalars are needed");
  }
}

Shape infer_dynamic_slice(const InferArgs& args) {
  constexpr std::string_view kName = "dynamic-slice";
  Shape s = array_operand(args, 0, kName);
  Dims sizes = args.attrs.get<DynamicSliceAttrs>().sizes;
  check_starts(args.operands.subspan(1), s.rank(), kName);
  if (static_cast<int>(sizes.size()) != s.rank()) {
    refuse(kName,
           fmt::format("dynamic_slice_sizes has {} entries for {}", sizes.size(), to_string(s)),
           "one for each dimension");
  }
  for (int d = 0; d < s.rank(); ++d) {
    if (sizes[d] < 0 || sizes[d] > s.dim(d)) {
      refuse(kName, fmt::format("a slice of {} from dimension {} with {} elements", sizes[d], d,
                                s.dim(d)));
    }
  }
  return args.context.array(s.type(), sizes);
}

// Dimensions taken whole pass; in the others each shard gives what it has of the window: the sum of
// all is the slice.
const Rule* dynamic_slice_rule(const Instr& instr, Arena& arena) {
  Shape s = instr.operand(0)->shape;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < s.rank(); ++d) {
    if (instr.shape.dim(d) == s.dim(d)) {
      r.parallel({d}, d);
      continue;
    }
    Factor f;
    f.kind = FactorKind::kIndexed;
    f.propagates = false;
    f.combiner = s.type() == ElementType::kPred ? Combiner::kOr : Combiner::kSum;
    f.size = s.dim(d);
    r.place(r.add(f), 0, d);
  }
  return r.build();
}

Shape infer_dynamic_update_slice(const InferArgs& args) {
  constexpr std::string_view kName = "dynamic-update-slice";
  Shape s = array_operand(args, 0, kName), u = array_operand(args, 1, kName);
  check_starts(args.operands.subspan(2), s.rank(), kName);
  if (u.rank() != s.rank() || u.type() != s.type()) {
    refuse(kName, fmt::format("an update {} of {}", to_string(u), to_string(s)),
           "rank and type must be the same");
  }
  for (int d = 0; d < s.rank(); ++d) {
    if (u.dim(d) > s.dim(d))
      refuse(kName, fmt::format("an update of {} in dimension {} with {} elements", u.dim(d), d,
                                s.dim(d)));
  }
  return s.plain();
}

// The operand stays where it is. An update that is shorter than its dimension is needed whole by
// every shard.
const Rule* dynamic_update_slice_rule(const Instr& instr, Arena& arena) {
  Shape s = instr.operand(0)->shape, u = instr.operand(1)->shape;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < s.rank(); ++d) {
    if (u.dim(d) == s.dim(d)) {
      r.parallel({d, d}, d);
      continue;
    }
    FactorId f = r.parallel({d}, d);
    r.set_needs_handler(f);
  }
  return r.build();
}

Shape infer_get_dimension_size(const InferArgs& args) {
  Shape s = array_operand(args, 0, "get-dimension-size");
  Dims dims = args.attrs.get<DimsAttrs>().dimensions;
  check_dims(dims, s.rank(), "get-dimension-size", "dimensions");
  if (dims.size() != 1)
    refuse("get-dimension-size",
           fmt::format("dimensions has {} entries, one is needed", dims.size()));
  return args.context.scalar(ElementType::kS32);
}

Shape infer_set_dimension_size(const InferArgs& args) {
  Shape s = array_operand(args, 0, "set-dimension-size");
  Dims dims = args.attrs.get<DimsAttrs>().dimensions;
  check_dims(dims, s.rank(), "set-dimension-size", "dimensions");
  if (dims.size() != 1)
    refuse("set-dimension-size",
           fmt::format("dimensions has {} entries, one is needed", dims.size()));
  uint64_t dynamic = uint64_t{1} << dims[0];
  for (int d = 0; d < s.rank(); ++d) dynamic |= s.is_dynamic(d) ? uint64_t{1} << d : 0;
  return args.context.array(s.type(), s.dims(), nullptr, dynamic);
}

const Rule* no_factors(const Instr& instr, Arena& arena) {
  return RuleBuilder(instr, arena).build();
}

constexpr Field kSizesFields[] = {stablehlo_name(
    required(field<&DynamicSliceAttrs::sizes>("dynamic_slice_sizes", FieldKind::kDims)),
    "slice_sizes")};
constexpr Field kDimsFields[] = {stablehlo_name(
    required(field<&DimsAttrs::dimensions>("dimensions", FieldKind::kDims)), "dimension")};

// Not through indices.
bool sums_pass_slice(const Instr&, int operand) { return operand == 0; }
bool sums_pass_update(const Instr&, int operand) { return operand < 2; }

}  // namespace

extern const OpDef kDynamicSliceDef = {
    .opcode = Opcode::kDynamicSlice,
    .name = "dynamic-slice",
    .max_operands = -1,
    .attrs = AttrsKind::kDynamicSliceAttrs,
    .fields = kSizesFields,
    .traits = {.data_movement = true, .sums = PartialSums::kPassInOne},
    .infer = infer_dynamic_slice,
    .sums_pass = sums_pass_slice,
    .rule = dynamic_slice_rule};
extern const OpDef kDynamicUpdateSliceDef = {
    .opcode = Opcode::kDynamicUpdateSlice,
    .name = "dynamic-update-slice",
    .min_operands = 2,
    .max_operands = -1,
    .traits = {.data_movement = true, .sums = PartialSums::kPassInAll},
    .infer = infer_dynamic_update_slice,
    .sums_pass = sums_pass_update,
    .rule = dynamic_update_slice_rule};
extern const OpDef kGetDimensionSizeDef = {.opcode = Opcode::kGetDimensionSize,
                                           .name = "get-dimension-size",
                                           .attrs = AttrsKind::kDimsAttrs,
                                           .fields = kDimsFields,
                                           .traits = {.shape_inferable = true},
                                           .infer = infer_get_dimension_size,
                                           .rule = no_factors};
extern const OpDef kSetDimensionSizeDef = {.opcode = Opcode::kSetDimensionSize,
                                           .name = "set-dimension-size",
                                           .min_operands = 2,
                                           .max_operands = 2,
                                           .attrs = AttrsKind::kDimsAttrs,
                                           .fields = kDimsFields,
                                           .traits = {.shape_inferable = true},
                                           .infer = infer_set_dimension_size,
                                           .rule = no_factors};

}  // namespace gspmd
