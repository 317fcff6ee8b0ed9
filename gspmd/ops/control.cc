// Tuples, control flow and calls: structural operators, whose values pass leaf by leaf.

#include <fmt/format.h>

#include <vector>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

Shape infer_tuple(const InferArgs& args) { return args.context.tuple(args.operands); }

Shape infer_element(const InferArgs& args) {
  Shape tuple = args.operands[0];
  int64_t k = args.attrs.get<IndexAttrs>().index;
  if (!tuple.is_tuple())
    refuse("get-tuple-element", fmt::format("the operand is {}", to_string(tuple)),
           "a tuple is needed");
  if (k < 0 || k >= static_cast<int64_t>(tuple.elements().size())) {
    refuse("get-tuple-element",
           fmt::format("element {} of a tuple of {}", k, tuple.elements().size()));
  }
  return tuple.element(static_cast<int>(k));
}

Shape infer_first(const InferArgs& args) { return args.operands[0]; }
Shape infer_token(const InferArgs& args) { return args.context.token(); }

Shape root_shape(const Computation& c) { return c.root()->shape; }

void check_parameters(std::string_view op, const Computation& c, absl::Span<const Shape> operands) {
  if (c.params().size() != operands.size()) {
    refuse(op, fmt::format("{} has {} parameters and gets {} operands", c.name(), c.params().size(),
                           operands.size()));
  }
  for (size_t k = 0; k < operands.size(); ++k) {
    if (same(c.params()[k]->shape, operands[k])) continue;
    refuse(op, fmt::format("parameter {} of {} is {} and gets {}", k, c.name(),
                           to_string(c.params()[k]->shape), to_string(operands[k])));
  }
}

template <Opcode kOp>
Shape infer_call(const InferArgs& args) {
  if (args.called.size() != 1) {
    refuse(name_of(kOp), fmt::format("{} computations are called", args.called.size()),
           "one is needed");
  }
  check_parameters(name_of(kOp), *args.called[0], args.operands);
  return root_shape(*args.called[0]);
}

// An operation under way: ((operands), result, what its runtime keeps).
void check_under_way(std::string_view op, Shape s) {
  if (s.is_tuple() && s.elements().size() >= 2 && s.element(0).is_tuple()) return;
  refuse(op, fmt::format("{} is no operation under way", to_string(s)),
         "it is a tuple of the operands' tuple, the result and more");
}

void verify_async_start(const Instr& i) {
  check_under_way("async-start", i.shape);
  std::vector<Shape> operands;
  for (const Instr* o : i.operands) operands.push_back(o->shape);
  bool fits = operands.size() == i.shape.element(0).elements().size();
  for (size_t k = 0; fits && k < operands.size(); ++k) {
    fits = same(operands[k], i.shape.element(0).element(static_cast<int>(k)));
  }
  if (!fits) {
    refuse("async-start",
           fmt::format("element 0 of {} is not the tuple of the operands", to_string(i.shape)));
  }
  if (i.called.empty()) return;
  check_parameters("async-start", *i.called[0], operands);
  if (same(root_shape(*i.called[0]), i.shape.element(1))) return;
  refuse("async-start",
         fmt::format("{} gives {} for a result {}", i.called[0]->name(),
                     to_string(root_shape(*i.called[0])), to_string(i.shape.element(1))));
}

void verify_async_update(const Instr& i) {
  check_under_way("async-update", i.operand(0)->shape);
  if (same(i.operand(0)->shape, i.shape)) return;
  refuse("async-update",
         fmt::format("{} becomes {}", to_string(i.operand(0)->shape), to_string(i.shape)),
         "the shape stays the same");
}

void verify_async_done(const Instr& i) {
  check_under_way("async-done", i.operand(0)->shape);
  if (same(i.operand(0)->shape.element(1), i.shape)) return;
  refuse("async-done",
         fmt::format("{} gives {}", to_string(i.operand(0)->shape), to_string(i.shape)),
         "element 1 is the result");
}

Shape infer_while(const InferArgs& args) {
  Shape state = args.operands[0];
  if (args.called.size() != 2) refuse("while", "condition and body are needed");
  check_parameters("while", *args.called[0], args.operands);
  check_parameters("while", *args.called[1], args.operands);
  if (!same(root_shape(*args.called[1]), state)) {
    refuse("while", fmt::format("the body gives {} for a state {}",
                                to_string(root_shape(*args.called[1])), to_string(state)));
  }
  Shape cond = root_shape(*args.called[0]);
  if (!cond.is_scalar() || cond.type() != ElementType::kPred) {
    refuse("while", fmt::format("the condition gives {}", to_string(cond)), "it must give pred[]");
  }
  return state;
}

Shape infer_conditional(const InferArgs& args) {
  if (args.called.empty() || args.operands.size() != args.called.size() + 1) {
    refuse("conditional",
           fmt::format("{} branches and {} operands", args.called.size(), args.operands.size()),
           "a predicate or index, then one operand for each branch");
  }
  Shape chooser = args.operands[0];
  bool fits = chooser.is_scalar() &&
              (chooser.type() == ElementType::kPred || chooser.type() == ElementType::kS32);
  if (!fits)
    refuse("conditional", fmt::format("the chooser is {}", to_string(chooser)), "pred[] or s32[]");
  if (chooser.type() == ElementType::kPred && args.called.size() != 2) {
    refuse("conditional", fmt::format("{} branches for a pred[] chooser", args.called.size()),
           "two are needed");
  }
  Shape result = root_shape(*args.called[0]);
  for (size_t k = 0; k < args.called.size(); ++k) {
    check_parameters("conditional", *args.called[k], args.operands.subspan(k + 1, 1));
    if (same(root_shape(*args.called[k]), result)) continue;
    refuse("conditional", fmt::format("branch 0 gives {} and branch {} gives {}", to_string(result),
                                      k, to_string(root_shape(*args.called[k]))));
  }
  return result;
}

constexpr OpTraits kStructural = {.structural = true};
constexpr OpTraits kInferable = {.shape_inferable = true, .structural = true};
constexpr Field kIndexFields[] = {required(field<&IndexAttrs::index>("index", FieldKind::kInt))};
constexpr Field kCallFields[] = {field<&CallAttrs::is_composite>("is_composite", FieldKind::kBool)};
constexpr Field kAsyncFields[] = {
    field<&AsyncAttrs::execution_thread>("async_execution_thread", FieldKind::kString)};
constexpr Field kDomainFields[] = {required(field<&DomainAttrs::raw>("domain", FieldKind::kRaw))};
constexpr Field kFusionFields[] = {
    required(field<&FusionAttrs::kind>("kind", FieldKind::kRaw)),
    field<&FusionAttrs::output_to_operand_aliasing>("output_to_operand_aliasing", FieldKind::kRaw),
};
constexpr std::string_view kToApply[] = {"to_apply"};
constexpr std::string_view kCalls[] = {"calls"};
constexpr std::string_view kWhileCalled[] = {"condition", "body"};
constexpr std::string_view kBranches[] = {"true_computation", "false_computation"};

}  // namespace

extern const OpDef kTupleDef = {.opcode = Opcode::kTuple,
                                .name = "tuple",
                                .min_operands = 0,
                                .max_operands = -1,
                                .traits = kInferable,
                                .infer = infer_tuple};
extern const OpDef kGetTupleElementDef = {.opcode = Opcode::kGetTupleElement,
                                          .name = "get-tuple-element",
                                          .attrs = AttrsKind::kIndexAttrs,
                                          .fields = kIndexFields,
                                          .traits = kInferable,
                                          .infer = infer_element};
extern const OpDef kAddDependencyDef = {.opcode = Opcode::kAddDependency,
                                        .name = "add-dependency",
                                        .min_operands = 2,
                                        .max_operands = 2,
                                        .traits = kInferable,
                                        .infer = infer_first};
extern const OpDef kAfterAllDef = {.opcode = Opcode::kAfterAll,
                                   .name = "after-all",
                                   .min_operands = 0,
                                   .max_operands = -1,
                                   .traits = kInferable,
                                   .infer = infer_token};
extern const OpDef kOptimizationBarrierDef = {.opcode = Opcode::kOptimizationBarrier,
                                              .name = "opt-barrier",
                                              .stablehlo = "optimization_barrier",
                                              .traits = kInferable,
                                              .infer = infer_first};
extern const OpDef kDomainDef = {.opcode = Opcode::kDomain,
                                 .name = "domain",
                                 .attrs = AttrsKind::kDomainAttrs,
                                 .fields = kDomainFields,
                                 .traits = kInferable,
                                 .infer = infer_first};
extern const OpDef kCallDef = {.opcode = Opcode::kCall,
                               .name = "call",
                               .min_operands = 0,
                               .max_operands = -1,
                               .attrs = AttrsKind::kCallAttrs,
                               .fields = kCallFields,
                               .called = kToApply,
                               .traits = kInferable,
                               .infer = infer_call<Opcode::kCall>};
extern const OpDef kFusionDef = {.opcode = Opcode::kFusion,
                                 .name = "fusion",
                                 .min_operands = 0,
                                 .max_operands = -1,
                                 .attrs = AttrsKind::kFusionAttrs,
                                 .fields = kFusionFields,
                                 .called = kCalls,
                                 .traits = kStructural,
                                 .infer = infer_call<Opcode::kFusion>};
extern const OpDef kWhileDef = {.opcode = Opcode::kWhile,
                                .name = "while",
                                .called = kWhileCalled,
                                .traits = kInferable,
                                .infer = infer_while};
extern const OpDef kConditionalDef = {.opcode = Opcode::kConditional,
                                      .name = "conditional",
                                      .stablehlo = "case",
                                      .min_operands = 2,
                                      .max_operands = -1,
                                      .called = kBranches,
                                      .called_list = "branch_computations",
                                      .traits = kInferable,
                                      .infer = infer_conditional};
extern const OpDef kAsyncStartDef = {.opcode = Opcode::kAsyncStart,
                                     .name = "async-start",
                                     .min_operands = 0,
                                     .max_operands = -1,
                                     .attrs = AttrsKind::kAsyncAttrs,
                                     .fields = kAsyncFields,
                                     .called = kCalls,
                                     .traits = kStructural,
                                     .verify = verify_async_start};
extern const OpDef kAsyncUpdateDef = {.opcode = Opcode::kAsyncUpdate,
                                      .name = "async-update",
                                      .max_operands = -1,
                                      .traits = kStructural,
                                      .verify = verify_async_update};
extern const OpDef kAsyncDoneDef = {.opcode = Opcode::kAsyncDone,
                                    .name = "async-done",
                                    .traits = kStructural,
                                    .verify = verify_async_done};

}  // namespace gspmd
