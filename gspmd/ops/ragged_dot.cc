// ragged-dot(lhs, rhs, group_sizes): along lhs's ragged dimension, consecutive ranges of the given
// sizes form groups.

#include <fmt/format.h>

#include "gspmd/ops/dot_dims.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "ragged-dot";

enum class Mode {
  kRows,  // the ragged dimension is free: each row uses the rhs of its group (rhs has a group
          // dimension)
  kContracting,  // each group sums its own range: the result has a leading group dimension
  kBatch,        // a plain dot
};

Mode mode_of(const DotAttrs& a) {
  int64_t ragged = a.lhs_ragged[0];
  if (a.lhs_contract.contains(ragged)) return Mode::kContracting;
  return a.lhs_batch.contains(ragged) ? Mode::kBatch : Mode::kRows;
}

void check_groups(const DotAttrs& a, Shape lhs, Shape rhs) {
  if (a.lhs_ragged.size() != 1) {
    refuse(kName,
           fmt::format("lhs_ragged_dims has {} entries, one is needed", a.lhs_ragged.size()));
  }
  check_dims(a.lhs_ragged, lhs.rank(), kName, "lhs_ragged_dims");
  check_dims(a.rhs_group, rhs.rank(), kName, "rhs_group_dims");
  size_t needed = mode_of(a) == Mode::kRows ? 1 : 0;
  if (a.rhs_group.size() != needed) {
    refuse(kName,
           fmt::format("rhs_group_dims has {} entries, {} are needed", a.rhs_group.size(), needed),
           "rhs has a group dimension exactly where the ragged dimension of lhs is a free one");
  }
}

Shape infer(const InferArgs& args) {
  Shape lhs = array_operand(args, 0, kName), rhs = array_operand(args, 1, kName);
  Shape groups = array_operand(args, 2, kName);
  const auto& a = args.attrs.get<DotAttrs>();
  check_dot_dims(a, lhs, rhs, kName);
  check_groups(a, lhs, rhs);
  if (groups.rank() == 0 || !is_integer(groups.type())) {
    refuse(kName,
           fmt::format("group sizes are {}, an array of integers is needed", to_string(groups)));
  }
  int64_t num_groups = groups.dim(groups.rank() - 1);
  Sizes sizes;
  if (mode_of(a) == Mode::kContracting) sizes.add(num_groups);
  if (mode_of(a) == Mode::kRows) {
    check_equal(num_groups, rhs.dim(static_cast<int>(a.rhs_group[0])), kName,
                "groups and rhs_group_dims");
  }
  for (int64_t d : a.lhs_batch) sizes.add(lhs, static_cast<int>(d));
  for (int64_t d : free_dims(lhs.rank(), {a.lhs_batch, a.lhs_contract}))
    sizes.add(lhs, static_cast<int>(d));
  for (int64_t d : free_dims(rhs.rank(), {a.rhs_batch, a.rhs_contract, a.rhs_group})) {
    sizes.add(rhs, static_cast<int>(d));
  }
  return sizes.shape(args.context, product_type(args, lhs, rhs));
}

// The ragged dimension and the groups are needed whole: which group a row belongs to depends on all
// group sizes. Where group sizes differ by batch (rank above 1), batches and lhs's free dimensions
// are whole too.
const Rule* rule(const Instr& dot, Arena& arena) {
  const auto& a = dot.attrs<DotAttrs>();
  int64_t ragged = a.lhs_ragged[0];
  bool one_list = dot.operand(2)->shape.rank() == 1;
  RuleBuilder r(dot, arena);
  int64_t next = mode_of(a) == Mode::kContracting ? 1 : 0;  // no factor for the result's groups
  auto parallel_or_whole = [&](int64_t l, int64_t s) {
    bool splits = l == kNone || (l != ragged && one_list);
    if (splits) {
      r.parallel({l, s}, next++);
    } else {
      r.whole({l, s}, next++);
    }
  };
  for (size_t i = 0; i < a.lhs_batch.size(); ++i) parallel_or_whole(a.lhs_batch[i], a.rhs_batch[i]);
  for (int64_t d : free_dims(dot.operand(0)->shape.rank(), {a.lhs_batch, a.lhs_contract}))
    parallel_or_whole(d, kNone);
  for (int64_t d :
       free_dims(dot.operand(1)->shape.rank(), {a.rhs_batch, a.rhs_contract, a.rhs_group})) {
    parallel_or_whole(kNone, d);
  }
  for (size_t i = 0; i < a.lhs_contract.size(); ++i) {
    DimVector dims = {a.lhs_contract[i], a.rhs_contract[i]};
    if (a.lhs_contract[i] == ragged || !one_list) {
      r.whole(dims, kNone);
    } else {
      r.reduce(dims, Combiner::kSum);
    }
  }
  return r.build();
}

constexpr Field kFields[] = {
    GSPMD_DOT_DIMS_FIELDS,
    stablehlo_name(required(field<&DotAttrs::lhs_ragged>("lhs_ragged_dims", FieldKind::kDims)),
                   "lhs_ragged_dimensions"),
    stablehlo_name(always_printed(field<&DotAttrs::rhs_group>("rhs_group_dims", FieldKind::kDims)),
                   "rhs_group_dimensions"),
    GSPMD_DOT_PRECISION_FIELDS,
};

}  // namespace

extern const OpDef kRaggedDotDef = {
    .opcode = Opcode::kRaggedDot,
    .name = kName,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = AttrsKind::kDotAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true},
    .infer = infer,
    .rule = rule,
    .flops_per_point = 2,
};

}  // namespace gspmd
