// Operators without array operands: constants, iota, parameters, device numbers.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

// Every element can be made anywhere.
const Rule* all_parallel(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  for (int d = 0; d < (instr.shape.is_array() ? instr.shape.rank() : 0); ++d) r.parallel({}, d);
  return r.build();
}

// Each part of a constant that is not the same everywhere holds other numbers.
const Rule* constant_rule(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  bool alike = instr.shape.is_array() && instr.attrs<ConstantAttrs>().literal->splat;
  for (int d = 0; d < (instr.shape.is_array() ? instr.shape.rank() : 0); ++d) {
    FactorId f = r.parallel({}, d);
    if (!alike) r.set_needs_handler(f);
  }
  return r.build();
}

const Rule* iota_rule(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  for (int d = 0; d < instr.shape.rank(); ++d) {
    FactorId f = r.parallel({}, d);
    if (d == instr.attrs<IotaAttrs>().dimension) r.set_needs_handler(f);  // counts on
  }
  return r.build();
}

Shape infer_constant(const InferArgs& args) {
  return args.attrs.get<ConstantAttrs>().literal->shape;
}

void verify_iota(const Instr& i) {
  if (!i.shape.is_array()) refuse("iota", "the result is no array");
  if (i.shape.type() == ElementType::kPred) refuse("iota", "pred has no numbers", "convert it");
  check_dim(i.attrs<IotaAttrs>().dimension, i.shape.rank(), "iota", "iota_dimension");
}

Shape infer_id(const InferArgs& args) { return args.context.scalar(ElementType::kU32); }

constexpr Field kIotaFields[] = {
    required(field<&IotaAttrs::dimension>("iota_dimension", FieldKind::kInt))};

}  // namespace

// The literal and the parameter number stand in the parentheses: the readers and printers know
// these two forms.
extern const OpDef kConstantDef = {.opcode = Opcode::kConstant,
                                   .name = "constant",
                                   .min_operands = 0,
                                   .max_operands = 0,
                                   .attrs = AttrsKind::kConstantAttrs,
                                   .traits = {.data_movement = true},
                                   .infer = infer_constant,
                                   .rule = constant_rule};
extern const OpDef kIotaDef = {.opcode = Opcode::kIota,
                               .name = "iota",
                               .min_operands = 0,
                               .max_operands = 0,
                               .attrs = AttrsKind::kIotaAttrs,
                               .fields = kIotaFields,
                               .traits = {.data_movement = true},
                               .verify = verify_iota,
                               .rule = iota_rule};
extern const OpDef kParameterDef = {.opcode = Opcode::kParameter,
                                    .name = "parameter",
                                    .min_operands = 0,
                                    .max_operands = 0,
                                    .attrs = AttrsKind::kParameterAttrs,
                                    .traits = {.structural = true}};
extern const OpDef kPartitionIdDef = {.opcode = Opcode::kPartitionId,
                                      .name = "partition-id",
                                      .min_operands = 0,
                                      .max_operands = 0,
                                      .traits = {.shape_inferable = true},
                                      .infer = infer_id,
                                      .rule = all_parallel};
extern const OpDef kReplicaIdDef = {.opcode = Opcode::kReplicaId,
                                    .name = "replica-id",
                                    .min_operands = 0,
                                    .max_operands = 0,
                                    .traits = {.shape_inferable = true},
                                    .infer = infer_id,
                                    .rule = all_parallel};

}  // namespace gspmd
