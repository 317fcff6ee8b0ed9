// Random numbers: rng (implementation-defined), rng-bit-generator (counter-based),
// rng-get-and-update-state.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

// Generated whole (so that replicas and shards agree), then sliced: every dimension is needed whole
// by every device.
const Rule* whole_results(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  for_each_leaf(instr.shape, [&](Shape leaf, int index) {
    for (int d = 0; d < leaf.rank(); ++d) {
      r.place(r.add({.kind = FactorKind::kWhole, .size = leaf.dim(d)}), r.result(index), d);
    }
  });
  return r.build();
}

Shape infer_rng(const InferArgs& args) {
  constexpr std::string_view kName = "rng";
  for (int i = 0; i < 2; ++i) {
    Shape s = array_operand(args, i, kName);
    if (!s.is_scalar())
      refuse(kName, fmt::format("operand {} is {}, not a scalar", i, to_string(s)));
  }
  if (args.stated && !args.stated.is_array()) {
    refuse(kName, fmt::format("the result is {}, not an array", to_string(args.stated)));
  }
  return args.stated;
}

// The state is u64[2] (key, counter) or u64[3]; the stated result is (state, bits).
Shape infer_bit_generator(const InferArgs& args) {
  constexpr std::string_view kName = "rng-bit-generator";
  Shape state = array_operand(args, 0, kName), stated = args.stated;
  if (!stated) return stated;
  if (!stated.is_tuple() || stated.elements().size() != 2 || !same(stated.element(0), state) ||
      !stated.element(1).is_array()) {
    refuse(kName,
           fmt::format("the state is {} and the result {}", to_string(state), to_string(stated)),
           "the result is a tuple of the new state and an array of bits");
  }
  if (!is_integer(stated.element(1).type()) && !is_float(stated.element(1).type())) {
    refuse(kName, fmt::format("bits of type {}", name_of(stated.element(1).type())));
  }
  return stated;
}

constexpr std::string_view kDistributions[] = {"rng_uniform", "rng_normal"};
constexpr Field kRngFields[] = {required(stablehlo_name(
    enum_names(field<&RngAttrs::distribution>("distribution", FieldKind::kEnum), kDistributions),
    "rng_distribution"))};

constexpr std::string_view kAlgorithms[] = {"rng_default", "rng_three_fry", "rng_philox"};
constexpr Field kBitGeneratorFields[] = {required(stablehlo_name(
    enum_names(field<&RngBitGeneratorAttrs::algorithm>("algorithm", FieldKind::kEnum), kAlgorithms),
    "rng_algorithm"))};

constexpr Field kStateFields[] = {required(field<&RngStateAttrs::delta>("delta", FieldKind::kInt))};

}  // namespace

extern const OpDef kRngDef = {
    .opcode = Opcode::kRng,
    .name = "rng",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = AttrsKind::kRngAttrs,
    .fields = kRngFields,
    .traits = {.side_effect = true},  // two equal ones give different numbers
    .infer = infer_rng,
    .rule = whole_results,
};

extern const OpDef kRngBitGeneratorDef = {
    .opcode = Opcode::kRngBitGenerator,
    .name = "rng-bit-generator",
    .attrs = AttrsKind::kRngBitGeneratorAttrs,
    .fields = kBitGeneratorFields,
    .infer = infer_bit_generator,
    .rule = whole_results,
};

extern const OpDef kRngGetAndUpdateStateDef = {
    .opcode = Opcode::kRngGetAndUpdateState,
    .name = "rng-get-and-update-state",
    .min_operands = 0,
    .max_operands = 0,
    .attrs = AttrsKind::kRngStateAttrs,
    .fields = kStateFields,
    .traits = {.side_effect = true},
    .rule = whole_results,
};

}  // namespace gspmd
