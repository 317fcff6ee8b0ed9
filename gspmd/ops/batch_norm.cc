// batch-norm-training, -inference, -grad. Statistics run over all dimensions but the feature's.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

// Operands that have one element for each feature; training (x, scale, offset), inference (x,
// scale, offset, mean, variance), grad (x, scale, mean, variance, g).
void check_features(const InferArgs& args, int begin, int end, int64_t features,
                    std::string_view op) {
  for (int i = begin; i < end; ++i) {
    Shape s = array_operand(args, i, op);
    if (s.rank() == 1 && s.dim(0) == features) continue;
    refuse(op, fmt::format("operand {} is {}: one element for each of the {} features is needed", i,
                           to_string(s), features));
  }
}

int64_t num_features(const InferArgs& args, std::string_view op) {
  int64_t feature = args.attrs.get<BatchNormAttrs>().feature_index;
  Shape x = array_operand(args, 0, op);
  check_dim(feature, x.rank(), op, "feature_index");
  return x.dim(static_cast<int>(feature));
}

Shape with_statistics(const InferArgs& args, int64_t features) {
  Shape per_feature = args.context.array(args.operands[0].type(), {features});
  Shape all[] = {args.operands[0], per_feature, per_feature};
  return args.context.tuple(all);
}

Shape infer_training(const InferArgs& args) {
  int64_t features = num_features(args, "batch-norm-training");
  check_features(args, 1, 3, features, "batch-norm-training");
  return with_statistics(args, features);
}

Shape infer_inference(const InferArgs& args) {
  int64_t features = num_features(args, "batch-norm-inference");
  check_features(args, 1, 5, features, "batch-norm-inference");
  return args.operands[0];
}

Shape infer_grad(const InferArgs& args) {
  int64_t features = num_features(args, "batch-norm-grad");
  check_features(args, 1, 4, features, "batch-norm-grad");
  array_operand(args, 4, "batch-norm-grad");
  if (args.operands[4].dims() != args.operands[0].dims()) {
    refuse("batch-norm-grad",
           fmt::format("operand 4 is {} and operand 0 {}: their sizes must be equal",
                       to_string(args.operands[4]), to_string(args.operands[0])));
  }
  return with_statistics(args, features);
}

// One factor for each dimension of x, placed on that dimension of every tensor of x's rank and, for
// the feature, on the only dimension of every other. `others`: the kind of the dimensions that the
// statistics run over.
const Rule* make_rule(const Instr& instr, Arena& arena, FactorKind others) {
  int64_t feature = instr.attrs<BatchNormAttrs>().feature_index;
  Shape x = instr.operand(0)->shape;
  RuleBuilder r(instr, arena);
  for (int d = 0; d < x.rank(); ++d) {
    FactorKind kind = d == feature ? FactorKind::kParallel : others;
    FactorId f = r.add({.kind = kind, .size = x.dim(d)});
    auto place = [&](int tensor, bool per_feature) {
      if (!per_feature) {
        r.place(f, tensor, d);
      } else if (d == feature) {
        r.place(f, tensor, 0);
      }
    };
    for (int i = 0; i < instr.num_operands(); ++i) {
      place(i, /*per_feature=*/i != 0 && !(i == 4 && instr.opcode == Opcode::kBatchNormGrad));
    }
    int results = instr.shape.num_leaves();
    for (int i = 0; i < results; ++i) place(r.result(i), /*per_feature=*/i != 0);
  }
  return r.build();
}

const Rule* whole_rule(const Instr& instr, Arena& arena) {
  return make_rule(instr, arena, FactorKind::kWhole);
}
const Rule* parallel_rule(const Instr& instr, Arena& arena) {
  return make_rule(instr, arena, FactorKind::kParallel);
}

constexpr Field kFields[] = {
    required(field<&BatchNormAttrs::epsilon>("epsilon", FieldKind::kDouble)),
    required(field<&BatchNormAttrs::feature_index>("feature_index", FieldKind::kInt)),
};

}  // namespace

extern const OpDef kBatchNormTrainingDef = {
    .opcode = Opcode::kBatchNormTraining,
    .name = "batch-norm-training",
    .min_operands = 3,
    .max_operands = 3,
    .attrs = AttrsKind::kBatchNormAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true},
    .infer = infer_training,
    .rule = whole_rule,
    .flops_per_point = 1,
};

extern const OpDef kBatchNormInferenceDef = {
    .opcode = Opcode::kBatchNormInference,
    .name = "batch-norm-inference",
    .min_operands = 5,
    .max_operands = 5,
    .attrs = AttrsKind::kBatchNormAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true},
    .infer = infer_inference,
    .rule = parallel_rule,
    .flops_per_point = 1,
};

extern const OpDef kBatchNormGradDef = {
    .opcode = Opcode::kBatchNormGrad,
    .name = "batch-norm-grad",
    .min_operands = 5,
    .max_operands = 5,
    .attrs = AttrsKind::kBatchNormAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true},
    .infer = infer_grad,
    .rule = whole_rule,
    .flops_per_point = 1,
};

}  // namespace gspmd
