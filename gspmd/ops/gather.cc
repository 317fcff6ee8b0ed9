// gather: slices of the operand at run-time places. See formats' semantics for the dimension
// attributes.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "gather";

Shape infer(const InferArgs& args) {
  Shape x = array_operand(args, 0, kName), indices = array_operand(args, 1, kName);
  const auto& a = args.attrs.get<GatherAttrs>();
  if (!is_integer(indices.type()))
    refuse(kName, fmt::format("indices of type {}", name_of(indices.type())),
           "integers are needed");
  if (a.index_vector_dim < 0 || a.index_vector_dim > indices.rank()) {
    refuse(kName, fmt::format("index_vector_dim {} of {}", a.index_vector_dim, to_string(indices)),
           "at most the rank");
  }
  check_sorted(a.offset_dims, kName, "offset_dims");
  check_sorted(a.collapsed_slice_dims, kName, "collapsed_slice_dims");
  check_apart(a.collapsed_slice_dims, a.operand_batching_dims, x.rank(), kName,
              "collapsed_slice_dims and operand_batching_dims");
  check_dims(a.start_index_map, x.rank(), kName, "start_index_map");
  check_batching(x, a.operand_batching_dims, indices, a.start_indices_batching_dims,
                 a.index_vector_dim, kName);
  int64_t numbers =
      a.index_vector_dim == indices.rank() ? 1 : indices.dim(static_cast<int>(a.index_vector_dim));
  check_equal(numbers, static_cast<int64_t>(a.start_index_map.size()), kName,
              "the index vectors' length and start_index_map's");
  check_equal(static_cast<int64_t>(a.slice_sizes.size()), x.rank(), kName,
              "slice_sizes' entries and the operand's rank");
  DimVector offsets;
  for (int d = 0; d < x.rank(); ++d) {
    if (a.slice_sizes[d] < 0 || a.slice_sizes[d] > x.dim(d)) {
      refuse(kName, fmt::format("slices of {} from dimension {} with {} elements", a.slice_sizes[d],
                                d, x.dim(d)));
    }
    bool dropped = a.collapsed_slice_dims.contains(d) || a.operand_batching_dims.contains(d);
    if (dropped && a.slice_sizes[d] > 1) {
      refuse(kName,
             fmt::format("dimension {} is collapsed or batching, and its slice size is {}", d,
                         a.slice_sizes[d]),
             "it must be 1");
    }
    if (!dropped) offsets.push_back(a.slice_sizes[d]);
  }
  check_equal(static_cast<int64_t>(offsets.size()), static_cast<int64_t>(a.offset_dims.size()),
              kName, "slice dimensions that are kept and offset_dims");
  DimVector batch;
  for (int d = 0; d < indices.rank(); ++d) {
    if (d != a.index_vector_dim) batch.push_back(indices.dim(d));
  }
  check_dims(a.offset_dims, static_cast<int>(batch.size() + offsets.size()), kName, "offset_dims");
  DimVector sizes;
  size_t next_offset = 0, next_batch = 0;
  for (size_t d = 0; d < batch.size() + offsets.size(); ++d) {
    sizes.push_back(a.offset_dims.contains(static_cast<int64_t>(d)) ? offsets[next_offset++]
                                                                    : batch[next_batch++]);
  }
  return args.context.array(x.type(), sizes);
}

// Batch dimensions and whole slice dimensions pass. An indexed dimension that is split: each shard
// gives the slices that start in it, and zero for the others; the sum is the result. That needs
// slices of one element there.
const Rule* rule(const Instr& instr, Arena& arena) {
  const auto& a = instr.attrs<GatherAttrs>();
  Shape x = instr.operand(0)->shape, indices = instr.operand(1)->shape;
  RuleBuilder r(instr, arena);
  DimVector batch_of_index(indices.rank(), kNone);  // result dimension of each indices dimension
  int64_t at = 0;
  for (int d = 0; d < indices.rank(); ++d) {
    if (d == a.index_vector_dim) continue;
    while (a.offset_dims.contains(at)) ++at;
    batch_of_index[d] = at++;
  }
  for (int d = 0; d < indices.rank(); ++d) {
    if (batch_of_index[d] == kNone) continue;
    int64_t k = a.start_indices_batching_dims.index_of(d);
    r.parallel({k < 0 ? kNone : a.operand_batching_dims[k], d}, batch_of_index[d]);
  }
  size_t next = 0;
  for (int d = 0; d < x.rank(); ++d) {
    if (a.operand_batching_dims.contains(d)) continue;
    bool kept = !a.collapsed_slice_dims.contains(d);
    int64_t result_dim = kept ? a.offset_dims[next++] : kNone;
    if (kept && a.slice_sizes[d] == x.dim(d)) {
      r.parallel({d, kNone}, result_dim);
      continue;
    }
    // Without an index every slice has the first element, and the shards that do not hold it would
    // have to know.
    if (a.slice_sizes[d] != 1 || !a.start_index_map.contains(d)) continue;
    Factor f;
    f.kind = FactorKind::kIndexed;
    f.propagates = false;
    f.combiner = x.type() == ElementType::kPred ? Combiner::kOr : Combiner::kSum;
    f.size = x.dim(d);
    r.place(r.add(f), 0, d);
  }
  return r.build();
}

constexpr Field kFields[] = {
    required(field<&GatherAttrs::offset_dims>("offset_dims", FieldKind::kDims)),
    required(field<&GatherAttrs::collapsed_slice_dims>("collapsed_slice_dims", FieldKind::kDims)),
    required(field<&GatherAttrs::start_index_map>("start_index_map", FieldKind::kDims)),
    field<&GatherAttrs::operand_batching_dims>("operand_batching_dims", FieldKind::kDims),
    field<&GatherAttrs::start_indices_batching_dims>("start_indices_batching_dims",
                                                     FieldKind::kDims),
    required(field<&GatherAttrs::index_vector_dim>("index_vector_dim", FieldKind::kInt)),
    required(field<&GatherAttrs::slice_sizes>("slice_sizes", FieldKind::kDims)),
    field<&GatherAttrs::indices_are_sorted>("indices_are_sorted", FieldKind::kBool),
};

bool passes(const Instr&, int operand) { return operand == 0; }

}  // namespace

extern const OpDef kGatherDef = {
    .opcode = Opcode::kGather,
    .name = kName,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = AttrsKind::kGatherAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true, .data_movement = true, .sums = PartialSums::kPassInOne},
    .infer = infer,
    .sums_pass = passes,
    .rule = rule};

}  // namespace gspmd
