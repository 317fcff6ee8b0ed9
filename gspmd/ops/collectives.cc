// Communication between devices in programs that are per device already (manual regions,
// partitioned programs). Operands are local there, so no dimension has a factor. The forms -start
// and -done are structural: they carry tuples.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

const Rule* no_factors(const Instr& instr, Arena& arena) {
  return RuleBuilder(instr, arena).build();
}

int count(const InferArgs& args) { return static_cast<int>(args.operands.size()); }

// Results equal to the operands.
Shape same_as_operands(const InferArgs& args, std::string_view op) {
  for (int i = 0; i < std::max(1, count(args)); ++i) array_operand(args, i, op);
  return one_or_tuple(args.context, args.operands);
}

Shape infer_all_reduce(const InferArgs& args) { return same_as_operands(args, "all-reduce"); }
Shape infer_all_reduce_start(const InferArgs& args) {
  return same_as_operands(args, "all-reduce-start");
}
Shape infer_broadcast(const InferArgs& args) {
  return same_as_operands(args, "collective-broadcast");
}

int64_t group_size(const CollectiveAttrs& a) {
  return a.groups == nullptr ? 0 : a.groups->group_size;
}

// The one dimension of all-gather and reduce-scatter.
int dimension(const InferArgs& args, std::string_view op) {
  const auto& a = args.attrs.get<CollectiveAttrs>();
  if (a.dimensions.size() != 1) {
    refuse(op, fmt::format("dimensions has {} entries, one is needed", a.dimensions.size()));
  }
  return static_cast<int>(a.dimensions[0]);
}

// The size along the dimension that each operand gets, `f(size, devices in a group)`. Where the
// groups do not say how many devices they have (`{}` = all), the stated shape is taken.
template <typename F>
Shape resized(const InferArgs& args, std::string_view op, F f) {
  int d = dimension(args, op);
  int64_t group = group_size(args.attrs.get<CollectiveAttrs>());
  absl::InlinedVector<Shape, 4> results;
  for (int i = 0; i < std::max(1, count(args)); ++i) {
    Shape x = array_operand(args, i, op);
    check_dim(d, x.rank(), op, "dimensions");
    if (group == 0) continue;
    DimVector sizes(x.dims().begin(), x.dims().end());
    sizes[d] = f(x.dim(d), group);
    results.push_back(args.context.with_dims(x, sizes));
  }
  if (group == 0) return args.stated;
  return one_or_tuple(args.context, results);
}

Shape infer_all_gather(const InferArgs& args) {
  return resized(args, "all-gather", [](int64_t size, int64_t group) {
    int64_t all = 0;
    if (!__builtin_mul_overflow(size, group, &all)) return all;
    refuse("all-gather", fmt::format("{} devices give {} elements each", group, size));
  });
}

Shape infer_reduce_scatter(const InferArgs& args) {
  return resized(args, "reduce-scatter", [&](int64_t size, int64_t group) {
    if (size % group != 0) {
      refuse("reduce-scatter",
             fmt::format("{} elements do not divide among the {} devices of a group", size, group),
             "pad the dimension");
    }
    return size / group;
  });
}

// With `dimensions`: one array, that dimension cut in as many parts as a group has devices.
// Without: a tuple of one operand for each device of a group.
Shape infer_all_to_all(const InferArgs& args) {
  constexpr std::string_view kName = "all-to-all";
  const auto& a = args.attrs.get<CollectiveAttrs>();
  int64_t group = group_size(a);
  if (a.dimensions.empty()) {
    if (group != 0 && group != count(args)) {
      refuse(kName, fmt::format("{} operands for groups of {} devices", count(args), group),
             "one for each device");
    }
    check_same_sizes(args, 0, count(args), kName);
    return args.context.tuple(args.operands);
  }
  int d = dimension(args, kName);
  for (int i = 0; i < count(args); ++i) {
    Shape x = array_operand(args, i, kName);
    check_dim(d, x.rank(), kName, "dimensions");
    if (group == 0 || x.dim(d) % group == 0) continue;
    refuse(
        kName,
        fmt::format(
            "dimension {} of operand {} has {} elements: not a multiple of the group's {} devices",
            d, i, x.dim(d), group),
        "pad the dimension");
  }
  return same_as_operands(args, kName);
}

// One operand, or several as a tuple; with four operands also the form that updates operand 1 in
// place.
Shape infer_permute(const InferArgs& args) {
  if (count(args) == 4 && args.stated && args.stated.is_array()) return args.stated;
  return same_as_operands(args, "collective-permute");
}

Shape infer_ragged(const InferArgs& args) {
  constexpr std::string_view kName = "ragged-all-to-all";
  Shape input = array_operand(args, 0, kName), output = array_operand(args, 1, kName);
  if (input.type() != output.type() || input.rank() != output.rank()) {
    refuse(kName, fmt::format("input is {} and output {}: type and rank must be equal",
                              to_string(input), to_string(output)));
  }
  check_same_sizes(args, 2, 6, kName);
  return output;
}

Shape element(const InferArgs& args, std::string_view op, int index) {
  Shape s = args.operands.empty() ? Shape() : args.operands[0];
  if (s && s.is_tuple() && static_cast<int>(s.elements().size()) > index) return s.element(index);
  refuse(op, fmt::format("the operand is {}", s ? to_string(s) : "missing"),
         "it is what the matching -start gives");
}

Shape infer_all_gather_done(const InferArgs& args) { return element(args, "all-gather-done", 1); }
Shape infer_permute_done(const InferArgs& args) {
  return element(args, "collective-permute-done", 1);
}
Shape infer_all_reduce_done(const InferArgs& args) {
  return args.operands.empty() ? Shape() : args.operands[0];
}

#define GROUPS_FIELD field<&CollectiveAttrs::groups>("replica_groups", FieldKind::kDeviceGroups)
#define CHANNEL_FIELD                                                                \
  stablehlo_name(field<&CollectiveAttrs::channel_id>("channel_id", FieldKind::kInt), \
                 "channel_handle")
#define CONSTRAIN_FIELD                                                                           \
  stablehlo_name(field<&CollectiveAttrs::constrain_layout>("constrain_layout", FieldKind::kBool), \
                 "-")
#define GLOBAL_IDS_FIELD \
  field<&CollectiveAttrs::use_global_device_ids>("use_global_device_ids", FieldKind::kBool)
#define DIM_FIELD(stablehlo) \
  stablehlo_name(field<&CollectiveAttrs::dimensions>("dimensions", FieldKind::kDims), stablehlo)

constexpr Field kAllGatherFields[] = {CHANNEL_FIELD, always_printed(GROUPS_FIELD), CONSTRAIN_FIELD,
                                      required(DIM_FIELD("all_gather_dim")), GLOBAL_IDS_FIELD};
constexpr Field kAllReduceFields[] = {CHANNEL_FIELD, always_printed(GROUPS_FIELD), CONSTRAIN_FIELD,
                                      GLOBAL_IDS_FIELD};
constexpr Field kReduceScatterFields[] = {CHANNEL_FIELD, always_printed(GROUPS_FIELD),
                                          CONSTRAIN_FIELD, GLOBAL_IDS_FIELD,
                                          required(DIM_FIELD("scatter_dimension"))};
constexpr Field kAllToAllFields[] = {CHANNEL_FIELD, always_printed(GROUPS_FIELD), CONSTRAIN_FIELD,
                                     DIM_FIELD("split_dimension")};
constexpr Field kGroupFields[] = {CHANNEL_FIELD, always_printed(GROUPS_FIELD)};
constexpr Field kPermuteFields[] = {
    stablehlo_name(field<&PermuteAttrs::channel_id>("channel_id", FieldKind::kInt),
                   "channel_handle"),
    required(whole_field<PermuteAttrs>("source_target_pairs", FieldKind::kPairs))};
constexpr std::string_view kReducer[] = {"to_apply"};

constexpr OpTraits kSync = {.collective = true};
constexpr OpTraits kAsync = {.structural = true, .collective = true};

// A collective on arrays, or (`start`, `done`: no rule) one half of it.
constexpr OpDef collective(Opcode opcode, std::string_view name, absl::Span<const Field> fields,
                           Shape (*infer)(const InferArgs&)) {
  return {.opcode = opcode,
          .name = name,
          .max_operands = -1,
          .attrs = AttrsKind::kCollectiveAttrs,
          .fields = fields,
          .traits = kSync,
          .infer = infer,
          .rule = no_factors};
}

constexpr OpDef reducing(OpDef d) {
  d.called = kReducer;
  return d;
}
constexpr OpDef start(OpDef d) {
  d.traits = kAsync;
  d.rule = nullptr;
  return d;
}
constexpr OpDef permute(Opcode opcode, std::string_view name, Shape (*infer)(const InferArgs&)) {
  OpDef d = collective(opcode, name, kPermuteFields, infer);
  d.attrs = AttrsKind::kPermuteAttrs;
  return d;
}
constexpr OpDef ragged(Opcode opcode, std::string_view name) {
  OpDef d = collective(opcode, name, kGroupFields, infer_ragged);
  d.min_operands = d.max_operands = 6;
  return d;
}
constexpr OpDef done(Opcode opcode, std::string_view name, Shape (*infer)(const InferArgs&)) {
  return {.opcode = opcode, .name = name, .traits = kAsync, .infer = infer};
}

}  // namespace

extern const OpDef kAllGatherDef =
    collective(Opcode::kAllGather, "all-gather", kAllGatherFields, infer_all_gather);
extern const OpDef kAllGatherStartDef =
    start(collective(Opcode::kAllGatherStart, "all-gather-start", kAllGatherFields, nullptr));
extern const OpDef kAllGatherDoneDef =
    done(Opcode::kAllGatherDone, "all-gather-done", infer_all_gather_done);

extern const OpDef kAllReduceDef =
    reducing(collective(Opcode::kAllReduce, "all-reduce", kAllReduceFields, infer_all_reduce));
extern const OpDef kAllReduceStartDef = start(reducing(collective(
    Opcode::kAllReduceStart, "all-reduce-start", kAllReduceFields, infer_all_reduce_start)));
extern const OpDef kAllReduceDoneDef =
    done(Opcode::kAllReduceDone, "all-reduce-done", infer_all_reduce_done);

extern const OpDef kReduceScatterDef = reducing(collective(
    Opcode::kReduceScatter, "reduce-scatter", kReduceScatterFields, infer_reduce_scatter));
extern const OpDef kAllToAllDef =
    collective(Opcode::kAllToAll, "all-to-all", kAllToAllFields, infer_all_to_all);
extern const OpDef kCollectiveBroadcastDef =
    collective(Opcode::kCollectiveBroadcast, "collective-broadcast", kGroupFields, infer_broadcast);
extern const OpDef kRaggedAllToAllDef = ragged(Opcode::kRaggedAllToAll, "ragged-all-to-all");

extern const OpDef kCollectivePermuteDef =
    permute(Opcode::kCollectivePermute, "collective-permute", infer_permute);
extern const OpDef kCollectivePermuteStartDef =
    start(permute(Opcode::kCollectivePermuteStart, "collective-permute-start", nullptr));
extern const OpDef kCollectivePermuteDoneDef =
    done(Opcode::kCollectivePermuteDone, "collective-permute-done", infer_permute_done);

}  // namespace gspmd
