#include "gspmd/engine/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/base/check.h"
#include "gspmd/base/error.h"
#include "gspmd/engine/choices.h"
#include "gspmd/engine/wide.h"
#include "gspmd/ops/custom_call.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/ops/trip_count.h"

namespace gspmd {
namespace {

bool is_identity_call(const Instr& i) {
  if (i.opcode != Opcode::kCustomCall) return false;
  std::string_view t = i.attrs<CustomCallAttrs>().target;
  return is_annotation_target(t) || t == "SPMDFullToShardShape" || t == "SPMDShardToFullShape" ||
         t == "annotate_device_placement" || t == "MoveToHost" || t == "MoveToDevice" ||
         t == "xla.sdy.PropagationBarrier" || t == "LayoutConstraint";
}

bool is_token_operator(Opcode op) {
  return op == Opcode::kAfterAll || op == Opcode::kAddDependency;
}

Buffer scalar_u32(uint32_t v) {
  Buffer b(ElementType::kU32, {});
  *b.mutable_data<uint32_t>() = v;
  return b;
}

}  // namespace

Program::Program(const Module& module) : module_(module), positions_(module.num_ids()) {
  for (const auto& c : module.computations()) {
    auto code = std::make_unique<Code>();
    code->computation = c.get();
    const auto& instrs = c->instrs();
    std::vector<uint32_t> last(instrs.size());
    for (uint32_t k = 0; k < instrs.size(); ++k) {
      positions_[instrs[k]->id] = k;
      last[k] = k;
      for (const Instr* o : instrs[k]->operands) last[positions_[o->id]] = k;
      if (instrs[k]->opcode == Opcode::kConstant && instrs[k]->shape.is_array()) {
        const Literal& literal = *instrs[k]->attrs<ConstantAttrs>().literal;
        if (literal.elided) {
          throw error_at(module, *instrs[k],
                         "the constant's values are elided ({...}): the program can not be run",
                         "print the program with large constants");
        }
        constants_.emplace(instrs[k], Buffer::from_literal(literal));
      }
    }
    last[positions_[c->root()->id]] = static_cast<uint32_t>(instrs.size());
    code->last_uses.resize(instrs.size());
    for (uint32_t k = 0; k < instrs.size(); ++k) {
      if (last[k] < instrs.size()) code->last_uses[last[k]].push_back(k);
    }
    codes_.emplace(c.get(), std::move(code));
  }
}

bool communicates(const Instr& i, const Program& program) {
  if (def(i).traits.collective) return true;
  auto it = program.boundaries.find(&i);
  return it != program.boundaries.end() &&
         i.attrs<CustomCallAttrs>().target == "SPMDShardToFullShape";
}

Value evaluate(const Program& program, const Computation& c, std::vector<Value> arguments,
               bool wide) {
  Device d(program, c, std::move(arguments), wide);
  GSPMD_CHECK(d.run() == Device::State::kDone, "a collective in a scalar function");
  return d.result();
}

Device::Device(const Program& program, int64_t id, std::vector<Value> arguments, bool wide)
    : Device(program, *program.module().entry(), std::move(arguments), wide) {
  id_ = id;
}

Device::Device(const Program& program, const Computation& c, std::vector<Value> arguments,
               bool wide)
    : program_(program), id_(0) {
  context_.wide = wide;
  context_.backend = program.backend();
  context_.call = [this](const Computation& f, absl::Span<const Buffer> scalars) {
    Value v = evaluate(program_, f, {scalars.begin(), scalars.end()}, context_.wide);
    if (!v.is_tuple) return std::vector<Buffer>{v.array};
    std::vector<Buffer> out;
    for (const Value& e : v.elements) out.push_back(e.array);
    return out;
  };
  push(c, std::move(arguments));
}

void Device::push(const Computation& c, std::vector<Value> arguments) {
  Frame f;
  f.code = &program_.code(c);
  f.values.resize(c.instrs().size());
  f.arguments = std::move(arguments);
  frames_.push_back(std::move(f));
}

Device::State Device::run() {
  while (!frames_.empty()) {
    Frame& f = frames_.back();
    const auto& instrs = f.code->computation->instrs();
    if (f.next == instrs.size()) {
      finish_frame();
      continue;
    }
    const Instr& i = *instrs[f.next];
    if (communicates(i, program_)) {
      outgoing_.clear();
      for (const Instr* o : i.operands) outgoing_.push_back(value(f, *o));
      waiting_ = &i;
      occurrence_ = occurrences_[&i]++;
      return State::kWaiting;
    }
    try {
      step(f, i);
    } catch (Error& e) {
      if (e.place().line > 0 || e.message().rfind(describe(i), 0) == 0) throw;
      throw error_at(program_.module(), i, e.message(), e.hint(), e.code());
    }
  }
  return State::kDone;
}

void Device::resume(Value result) {
  set(frames_.back(), *waiting_, std::move(result));
  waiting_ = nullptr;
}

// Stores a result, goes on, and lets go of what nothing reads any more.
void Device::set(Frame& f, const Instr& i, Value v) {
  size_t at = program_.position(i);
  f.values[at] = std::move(v);
  for (uint32_t dead : f.code->last_uses[at]) f.values[dead] = Value();
  f.next = at + 1;
}

Value Device::value(Frame& f, const Instr& operand) const {
  return f.values[program_.position(operand)];
}

void Device::finish_frame() {
  Frame& f = frames_.back();
  Value v = std::move(f.values[program_.position(*f.code->computation->root())]);
  frames_.pop_back();
  if (frames_.empty()) {
    result_ = std::move(v);
  } else {
    returned(std::move(v));
  }
}

// A called computation gave `v` to the instruction at which the caller stands.
void Device::returned(Value v) {
  Frame& f = frames_.back();
  const Instr& i = *f.code->computation->instrs()[f.next];
  if (i.opcode != Opcode::kWhile) return set(f, i, std::move(v));
  if (!f.in_condition) {  // the body
    f.state = std::move(v);
    f.in_condition = true;
    std::vector<Value> state{f.state};
    return push(*i.called[0], std::move(state));
  }
  f.in_condition = false;
  bool goes_on = *v.array.data<uint8_t>() != 0;
  Value state = std::move(f.state);
  f.state = Value();
  if (!goes_on) {
    f.trips = 0;
    return set(f, i, std::move(state));
  }
  if (++f.trips > std::max(max_trips_, trip_count(i).value_or(0))) {
    throw error_at(
        program_.module(), i, fmt::format("the loop has not ended after {} trips", f.trips - 1),
        "with made-up inputs it may never: give inputs, another --scale, or a higher --max-trips");
  }
  std::vector<Value> arguments;
  arguments.push_back(std::move(state));
  push(*i.called[1], std::move(arguments));
}

bool Device::step(Frame& f, const Instr& i) {
  switch (i.opcode) {
    case Opcode::kParameter:
      set(f, i, f.arguments[i.attrs<ParameterAttrs>().number]);
      return true;
    case Opcode::kConstant: {
      const Buffer& b = program_.constant(i);
      set(f, i, context_.wide ? widen(b) : b);
      return true;
    }
    case Opcode::kTuple: {
      std::vector<Value> parts;
      for (const Instr* o : i.operands) parts.push_back(value(f, *o));
      set(f, i, Value::tuple(std::move(parts)));
      return true;
    }
    case Opcode::kGetTupleElement: {
      const Value& tuple = f.values[program_.position(*i.operand(0))];
      set(f, i, tuple.elements[i.attrs<IndexAttrs>().index]);
      return true;
    }
    case Opcode::kPartitionId:
      set(f, i, scalar_u32(static_cast<uint32_t>(id_)));
      return true;
    case Opcode::kReplicaId:
      set(f, i, scalar_u32(0));
      return true;
    default:
      break;
  }
  if (is_token_operator(i.opcode)) {
    set(f, i, i.operands.empty() ? Value() : value(f, *i.operand(0)));
    return true;
  }
  if (!i.called.empty() && def(i).traits.structural) return call_out(f, i);
  return compute(f, i);
}

bool Device::call_out(Frame& f, const Instr& i) {
  if (i.opcode == Opcode::kWhile) {
    f.state = value(f, *i.operand(0));
    f.in_condition = true;
    std::vector<Value> state{f.state};
    push(*i.called[0], std::move(state));
    return false;
  }
  std::vector<Value> arguments;
  size_t callee = 0;
  if (i.opcode == Opcode::kConditional) {
    Value chooser = value(f, *i.operand(0));
    int64_t n = static_cast<int64_t>(i.called.size());
    if (chooser.array.type() == ElementType::kPred) {
      callee = *chooser.array.data<uint8_t>() != 0 ? 0 : 1;
    } else {
      int64_t k = *chooser.array.data<int32_t>();
      callee = static_cast<size_t>(k < 0 || k >= n ? n - 1 : k);
    }
    arguments.push_back(value(f, *i.operand(static_cast<int>(callee) + 1)));
  } else {
    for (const Instr* o : i.operands) arguments.push_back(value(f, *o));
  }
  push(*i.called[callee], std::move(arguments));
  return false;
}

// The block of a whole value that this device has inside a manual region.
Value Device::boundary(Frame& f, const Instr& i) {
  auto it = program_.boundaries.find(&i);
  Value v = value(f, *i.operand(0));
  if (it == program_.boundaries.end()) return v;
  return block_of_device(v.array, it->second, id_);
}

bool Device::compute(Frame& f, const Instr& i) {
  if (is_identity_call(i)) {
    set(f, i, boundary(f, i));
    return true;
  }
  if (i.opcode == Opcode::kOptimizationBarrier || i.opcode == Opcode::kDomain ||
      i.opcode == Opcode::kAsyncDone || i.opcode == Opcode::kAsyncUpdate ||
      i.opcode == Opcode::kCopyDone) {
    set(f, i, value(f, *i.operand(0)));
    return true;
  }
  Kernel kernel = kernel_of(i.opcode);
  if (kernel == nullptr) {
    std::string what(name_of(i.opcode));
    if (i.opcode == Opcode::kCustomCall)
      what = "custom-call to " + std::string(i.attrs<CustomCallAttrs>().target);
    throw Error(what + " can not be run here", "the evaluator knows no meaning of it");
  }
  std::vector<Buffer> operands;
  for (const Instr* o : i.operands) operands.push_back(f.values[program_.position(*o)].array);
  // Values that end here are handed over: a kernel may write into their memory.
  for (uint32_t dead : f.code->last_uses[program_.position(i)]) f.values[dead] = Value();
  if (observer_ != nullptr) observer_->before(id_, i, absl::MakeSpan(operands), context_);
  std::vector<Buffer> results = kernel(i, absl::MakeSpan(operands), context_);
  if (!i.shape.is_tuple()) {
    set(f, i, std::move(results[0]));
    return true;
  }
  std::vector<Value> parts(std::make_move_iterator(results.begin()),
                           std::make_move_iterator(results.end()));
  set(f, i, Value::tuple(std::move(parts)));
  return true;
}

}  // namespace gspmd
