// sort: n arrays permuted alike along one dimension by a comparator. topk: the k best along the
// last dimension.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

Shape infer_sort(const InferArgs& args) {
  constexpr std::string_view kName = "sort";
  Dims dims = args.attrs.get<SortAttrs>().dimensions;
  int n = static_cast<int>(args.operands.size());
  Shape first = array_operand(args, 0, kName);
  if (dims.size() != 1) {
    refuse(kName, fmt::format("dimensions has {} entries, one is needed", dims.size()));
  }
  check_dims(dims, first.rank(), kName, "dimensions");
  check_same_sizes(args, 0, n, kName);
  if (!args.called.empty() && static_cast<int>(args.called[0]->params().size()) != 2 * n) {
    refuse(kName,
           fmt::format("comparator {} has {} parameters, {} operands need {}",
                       args.called[0]->name(), args.called[0]->params().size(), n, 2 * n),
           "two for each operand");
  }
  return one_or_tuple(args.context, args.operands);
}

const Rule* sort_rule(const Instr& instr, Arena& arena) {
  int64_t sorted = instr.attrs<SortAttrs>().dimensions[0];
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.operand(0)->shape.rank(); ++d) {
    DimVector dims(instr.num_operands(), d);
    if (d == sorted) {
      // Each device sorts all of it, but what comes in and goes out is better kept in parts.
      r.set_propagates(r.whole(dims, d), true);
    } else {
      r.parallel(dims, d);
    }
  }
  return r.build();
}

Shape infer_topk(const InferArgs& args) {
  constexpr std::string_view kName = "topk";
  int64_t k = args.attrs.get<TopKAttrs>().k;
  Shape x = array_operand(args, 0, kName);
  if (x.rank() == 0)
    refuse(kName, "the operand is a scalar", "it needs a dimension to choose from");
  int last = x.rank() - 1;
  if (k < 0 || k > x.dim(last)) {
    refuse(kName, fmt::format("k is {} and the last dimension has {} elements", k, x.dim(last)));
  }
  Sizes sizes;
  for (int d = 0; d < last; ++d) sizes.add(x, d);
  sizes.add(k);
  Shape both[] = {sizes.shape(args.context, x.type()),
                  sizes.shape(args.context, ElementType::kS32)};
  return args.context.tuple(both);
}

const Rule* topk_rule(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  int last = instr.operand(0)->shape.rank() - 1;
  for (int d = 0; d < last; ++d) r.parallel({d}, d);
  r.whole({last}, kNone);
  return r.build();
}

constexpr Field kSortFields[] = {
    stablehlo_name(required(field<&SortAttrs::dimensions>("dimensions", FieldKind::kDims)),
                   "dimension"),
    field<&SortAttrs::is_stable>("is_stable", FieldKind::kBool),
};
constexpr std::string_view kCalled[] = {"to_apply"};

constexpr Field kTopKFields[] = {
    required(field<&TopKAttrs::k>("k", FieldKind::kInt)),
    always_printed(field<&TopKAttrs::largest>("largest", FieldKind::kBool)),
};

}  // namespace

extern const OpDef kSortDef = {
    .opcode = Opcode::kSort,
    .name = "sort",
    .max_operands = -1,
    .attrs = AttrsKind::kSortAttrs,
    .fields = kSortFields,
    .called = kCalled,
    .traits = {.shape_inferable = true},
    .infer = infer_sort,
    .rule = sort_rule,
};

extern const OpDef kTopKDef = {
    .opcode = Opcode::kTopK,
    .name = "topk",
    .stablehlo = "top_k",
    .attrs = AttrsKind::kTopKAttrs,
    .fields = kTopKFields,
    .traits = {.shape_inferable = true},
    .infer = infer_topk,
    .rule = topk_rule,
};

}  // namespace gspmd
