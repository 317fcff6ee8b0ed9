// Custom-calls whose target has a rule: the call runs on shards. Padding never enters one that is
// not known to bear it.
#include <string>

#include "gspmd/ops/custom_call.h"
#include "gspmd/partition/handler.h"

namespace gspmd {
namespace {

std::optional<bool> splits_custom_call(const Iteration& it, FactorId f, const AxisList& axes) {
  const bool even = it.rule.factor(f).size % it.mesh->product(axes) == 0;
  if (!even && !bears_padding(it.instr)) return false;
  return std::nullopt;
}

// operand_layout_constraints={f32[8,4]{1,0}, s32[8]{0}} with the operands' local sizes.
std::string_view local_constraints(const LocalOp& op, std::string_view text) {
  std::string out;
  for (Instr* operand : op.operands) {
    size_t open = text.find('['), close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    const Dims& dims = operand->shape.dims();
    out += text.substr(0, open);
    out += '[';
    for (size_t d = 0; d < dims.size(); ++d) out += (d == 0 ? "" : ",") + std::to_string(dims[d]);
    out += ']';
    text.remove_prefix(close + 1);
  }
  out += text;
  return op.e.context().name(out);
}

// A branch: a computation of the operands' tuple.
Computation* branch(LocalOp& op, std::string_view name, Shape state) {
  Context& context = op.e.context();
  Computation* c = op.e.module().add_computation(name);
  op.e.module().add(c, Opcode::kParameter, state, {}, context.attrs(ParameterAttrs{0}), "state");
  op.e.reducers().add(c);
  return c;
}

Computation* calling_branch(LocalOp& op, Shape state) {
  Computation* c = branch(op, "on_one_device", state);
  Emitter e(&op.e.module(), c, &op.e.reducers());
  std::vector<Instr*> operands;
  for (int64_t k = 0; k < static_cast<int64_t>(op.operands.size()); ++k) {
    Shape s = op.operands[k]->shape;
    operands.push_back(e.add(Opcode::kGetTupleElement, s, {c->params()[0]}, IndexAttrs{k}));
  }
  const Instr& source = op.instr();
  Instr* call = e.add(source.opcode, source.shape, operands, source.attributes);
  call->extras = source.extras;
  call->metadata = source.metadata;
  c->set_root(call);
  return c;
}

Instr* zeros(Emitter& e, Shape s) {
  if (s.is_token()) return e.add(Opcode::kAfterAll, s, {});
  if (!s.is_tuple()) return e.broadcast(e.zero(s.type()), s.dims());
  std::vector<Instr*> parts;
  for (Shape element : s.elements()) parts.push_back(zeros(e, element));
  return e.add(Opcode::kTuple, s, parts);
}

Computation* idle_branch(LocalOp& op, Shape state) {
  Computation* c = branch(op, "on_the_others", state);
  Emitter e(&op.e.module(), c, &op.e.reducers());
  c->set_root(zeros(e, op.instr().shape));
  return c;
}

// Tokens stay where they are: they order what their own device does.
Instr* shared(LocalOp& op, Instr* x) {
  Emitter& e = op.e;
  if (x->shape.is_token()) return x;
  if (x->shape.is_tuple()) {
    std::vector<Instr*> parts;
    for (int k = 0; k < static_cast<int>(x->shape.elements().size()); ++k) {
      Instr* part = e.add(Opcode::kGetTupleElement, x->shape.element(k), {x}, IndexAttrs{k});
      parts.push_back(shared(op, part));
    }
    return e.add(Opcode::kTuple, x->shape, parts);
  }
  AxisList all;
  op.it.mesh->all_axes().for_each([&](AxisId a) { all.push_back(a); });
  bool predicate = x->shape.type() == ElementType::kPred;
  return e.all_reduce(x, *op.it.mesh, all, predicate ? Combiner::kOr : Combiner::kSum);
}

// What has an effect happens once: device 0 makes the call, the others hold zeros, and the sum of
// all is the result everywhere.
Instr* call_once(LocalOp& op) {
  Emitter& e = op.e;
  Emitter::Because because(e, Reason::kBroadcastFromOne);
  std::vector<Shape> shapes;
  for (const Instr* o : op.operands) shapes.push_back(o->shape);
  Shape state = e.context().tuple(shapes);
  Instr* id = e.add(Opcode::kPartitionId, e.context().scalar(ElementType::kU32), {});
  Instr* mine = e.compare(Direction::kEq, id, e.integer(ElementType::kU32, 0));
  Instr* operands = e.add(Opcode::kTuple, state, op.operands);
  Instr* made = e.add(Opcode::kConditional, op.instr().shape, {mine, operands, operands});
  Computation* branches[] = {calling_branch(op, state), idle_branch(op, state)};
  made->called = e.module().computation_array(branches);
  return shared(op, made);
}

// What is neither (opaque values) can not be handed to other devices.
bool only_arrays_and_tokens(Shape s) {
  bool all = true;
  for_each_leaf(s, [&](Shape leaf, int) { all &= leaf.is_array() || leaf.is_token(); });
  return all;
}

Instr* localize_custom_call(LocalOp& op) {
  const auto& attrs = op.instr().attrs<CustomCallAttrs>();
  bool opaque = !has_custom_rule(op.instr()) && !is_annotation_target(attrs.target);
  bool once = attrs.has_side_effect && opaque && op.it.manual.empty();
  if (once && only_arrays_and_tokens(op.instr().shape)) return call_once(op);
  Instr* r = localize_by_rule(op);
  CustomCallAttrs a = op.instr().attrs<CustomCallAttrs>();
  if (a.operand_layout_constraints.empty()) return r;
  a.operand_layout_constraints = local_constraints(op, a.operand_layout_constraints);
  r->attributes = op.e.context().attrs(a);
  return r;
}

}  // namespace

extern const Handler kCustomCallHandler = {.can_split = splits_custom_call,
                                           .localize = localize_custom_call};

}  // namespace gspmd
