#include "gspmd/engine/kernels/lane_program.h"

#include <absl/container/flat_hash_map.h>

#include <cstring>

#include "gspmd/engine/kernels/kernels.h"

namespace gspmd {

std::optional<LaneProgram> LaneProgram::compile(const Computation& computation, bool wide,
                                                const Instr* root) {
  LaneProgram p;
  p.wide_ = wide;
  std::vector<Leaves> args;
  for (const Instr* param : computation.params()) {
    if (!param->shape.is_scalar()) return std::nullopt;
    const int value = static_cast<int>(p.values_.size());
    p.values_.push_back({p.type_of(*param), static_cast<int>(p.params_.size()), 0});
    p.params_.push_back(value);
    args.push_back({value});
  }
  if (root == nullptr) root = computation.root();
  if (!p.add(computation, std::move(args), root, &p.results_)) return std::nullopt;
  for (int& result : p.results_) {  // a parameter's memory may be overwritten by its reader
    if (p.values_[result].param < 0) continue;
    Step copy;
    copy.in[0] = result;
    copy.out = result = p.add_value(p.values_[result].type);
    p.steps_.push_back(copy);
  }
  return p;
}

ElementType LaneProgram::type_of(const Instr& instr) const {
  return wide_ ? widened(instr.shape.type()) : instr.shape.type();
}

int LaneProgram::add_value(ElementType type) {
  values_.push_back({type, -1, memory_.size()});
  memory_.resize(memory_.size() + static_cast<size_t>(kChunk * bytes_of(lane_of(type))));
  return static_cast<int>(values_.size()) - 1;
}

int LaneProgram::add_constant(const Literal& literal) {
  Buffer scalar = Buffer::from_literal(literal);
  if (wide_) scalar = converted(scalar, widened(scalar.type()));
  const int value = add_value(scalar.type());
  const auto width = static_cast<size_t>(bytes_of(lane_of(scalar.type())));
  std::byte* lanes = memory_.data() + values_[value].memory;
  load_lanes(scalar.type(), scalar.raw(), 1, lanes);
  for (size_t i = 1; i < kChunk; ++i) std::memcpy(lanes + i * width, lanes, width);
  return value;
}

bool LaneProgram::add(const Computation& computation, std::vector<Leaves> args, const Instr* root,
                      Leaves* results) {
  absl::flat_hash_map<const Instr*, Leaves> values;
  for (size_t i = 0; i < args.size(); ++i) values[computation.params()[i]] = std::move(args[i]);
  for (const Instr* instr : computation.instrs()) {
    if (instr->opcode == Opcode::kParameter) continue;
    std::vector<Leaves> operands;
    for (const Instr* o : instr->operands) operands.push_back(values.at(o));
    Leaves out;
    if (!add_instr(*instr, operands, &out)) return false;
    values[instr] = std::move(out);
    if (instr == root) break;
  }
  *results = values.at(root);
  return true;
}

bool LaneProgram::add_instr(const Instr& instr, const std::vector<Leaves>& operands, Leaves* out) {
  switch (instr.opcode) {
    case Opcode::kConstant:
      if (!instr.shape.is_scalar()) return false;
      *out = {add_constant(*instr.attrs<ConstantAttrs>().literal)};
      return true;
    case Opcode::kTuple:
      for (const Leaves& o : operands) out->insert(out->end(), o.begin(), o.end());
      return true;
    case Opcode::kGetTupleElement:
      if (instr.operand(0)->opcode != Opcode::kTuple || !instr.shape.is_scalar()) return false;
      *out = {operands[0][static_cast<size_t>(instr.attrs<IndexAttrs>().index)]};
      return true;
    case Opcode::kCall:
    case Opcode::kFusion:
      return add(*instr.called[0], operands, instr.called[0]->root(), out);
    default:
      return instr.shape.is_scalar() && add_operator(instr, operands, out);
  }
}

bool LaneProgram::add_operator(const Instr& instr, const std::vector<Leaves>& operands,
                               Leaves* out) {
  if (operands.empty() || operands.size() > 3) return false;
  for (const Instr* o : instr.operands) {
    if (!o->shape.is_scalar()) return false;
  }
  if (instr.opcode == Opcode::kCopy || instr.opcode == Opcode::kReshape ||
      (instr.opcode == Opcode::kBroadcast)) {
    *out = operands[0];
    return true;
  }
  Step step;
  for (size_t k = 0; k < operands.size(); ++k) step.in[k] = operands[k][0];
  const size_t first = instr.opcode == Opcode::kSelect ? 1 : 0;
  const ElementType type = values_[operands[first][0]].type;
  for (size_t k = first; k < operands.size(); ++k) {
    if (values_[operands[k][0]].type != type) return false;  // old programs mix float types
  }
  step.bits = bits_of(type);
  const Lane lane = lane_of(type);
  if (instr.opcode != Opcode::kConvert) {
    step.fn = instr.opcode == Opcode::kCompare ? compare_fn(instr.attrs<CompareAttrs>(), lane)
                                               : lane_fn(instr.opcode, lane);
    if (step.fn == nullptr) return false;
    if (result_lane(instr.opcode, lane) != lane_of(type_of(instr))) return false;
  }
  step.out = add_value(type_of(instr));
  steps_.push_back(step);
  *out = {step.out};
  return true;
}

const void* LaneProgram::pointer(int value) const {
  const Value& v = values_[value];
  return v.param >= 0 ? inputs_[static_cast<size_t>(v.param)] : memory_.data() + v.memory;
}

void LaneProgram::round(int value, int64_t n) {
  const Value& v = values_[value];
  if (is_native(v.type)) return;
  std::byte stored[kChunk * kMaxLaneBytes];
  std::byte* lanes = memory_.data() + v.memory;
  store_lanes(v.type, lanes, n, stored);
  load_lanes(v.type, stored, n, lanes);
}

void LaneProgram::run_convert(const Step& step, int64_t n) {
  std::byte from[kChunk * kMaxLaneBytes], to[kChunk * kMaxLaneBytes];
  const Value &x = values_[step.in[0]], &y = values_[step.out];
  store_lanes(x.type, pointer(step.in[0]), n, from);
  convert_elements(x.type, from, n, y.type, to);
  load_lanes(y.type, to, n, memory_.data() + y.memory);
}

void LaneProgram::run(absl::Span<const void* const> in, int64_t n) {
  inputs_.assign(in.begin(), in.end());
  for (const Step& step : steps_) {
    if (step.fn == nullptr) {
      run_convert(step, n);
      continue;
    }
    LaneArgs args;
    for (int k = 0; k < 3 && step.in[k] >= 0; ++k) args.in[k] = pointer(step.in[k]);
    args.out = memory_.data() + values_[step.out].memory;
    args.n = n;
    args.bits = step.bits;
    step.fn(args);
    round(step.out, n);
  }
}

}  // namespace gspmd
