// cholesky and triangular-solve, on batches of matrices in the last two dimensions.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

// Operand 0: [..., n, n] of a float or complex type.
Shape square_operand(const InferArgs& args, std::string_view op) {
  Shape a = array_operand(args, 0, op);
  if (a.rank() < 2 || a.dim(a.rank() - 1) != a.dim(a.rank() - 2)) {
    refuse(op, fmt::format("operand 0 is {}: its last two dimensions must be equal", to_string(a)));
  }
  if (!is_float(a.type()) && !is_complex(a.type())) {
    refuse(op, fmt::format("operand 0 is {}: a float or complex type is needed", to_string(a)));
  }
  return a;
}

Shape infer_cholesky(const InferArgs& args) { return square_operand(args, "cholesky"); }

const Rule* cholesky_rule(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  int batch = instr.shape.rank() - 2;
  for (int d = 0; d < batch; ++d) r.parallel({d}, d);
  for (int d = batch; d < batch + 2; ++d) r.whole({d}, d);
  return r.build();
}

Shape infer_triangular_solve(const InferArgs& args) {
  constexpr std::string_view kName = "triangular-solve";
  const auto& attrs = args.attrs.get<TriangularSolveAttrs>();
  Shape a = square_operand(args, kName), b = array_operand(args, 1, kName);
  if (a.rank() != b.rank() || a.type() != b.type()) {
    refuse(kName, fmt::format("operands are {} and {}: rank and type must be equal", to_string(a),
                              to_string(b)));
  }
  int batch = a.rank() - 2;
  for (int d = 0; d < batch; ++d)
    check_equal(a.dim(d), b.dim(d), kName, fmt::format("batch dimension {}", d));
  int solved = attrs.left_side ? batch : batch + 1;
  check_equal(a.dim(batch), b.dim(solved), kName,
              fmt::format("the matrix and dimension {} of operand 1 (left_side={})", solved,
                          attrs.left_side));
  return b;
}

// Batches, and the right-hand sides of one matrix: columns of b for a*x = b, rows for x*a = b.
const Rule* triangular_solve_rule(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  int batch = instr.shape.rank() - 2;
  int solved = instr.attrs<TriangularSolveAttrs>().left_side ? batch : batch + 1;
  int sides = 2 * batch + 1 - solved;
  for (int d = 0; d < batch; ++d) r.parallel({d, d}, d);
  r.parallel({kNone, sides}, sides);
  r.whole({kNone, solved}, solved);
  r.whole({batch}, kNone);
  r.whole({batch + 1}, kNone);
  return r.build();
}

constexpr Field kCholeskyFields[] = {field<&CholeskyAttrs::lower>("lower", FieldKind::kBool)};
constexpr std::string_view kTransposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
constexpr Field kSolveFields[] = {
    field<&TriangularSolveAttrs::left_side>("left_side", FieldKind::kBool),
    field<&TriangularSolveAttrs::lower>("lower", FieldKind::kBool),
    field<&TriangularSolveAttrs::unit_diagonal>("unit_diagonal", FieldKind::kBool),
    enum_names(field<&TriangularSolveAttrs::transpose_a>("transpose_a", FieldKind::kEnum),
               kTransposes),
};

}  // namespace

extern const OpDef kCholeskyDef = {
    .opcode = Opcode::kCholesky,
    .name = "cholesky",
    .attrs = AttrsKind::kCholeskyAttrs,
    .fields = kCholeskyFields,
    .traits = {.shape_inferable = true},
    .infer = infer_cholesky,
    .rule = cholesky_rule,
    .flops_per_point = 1,
};

extern const OpDef kTriangularSolveDef = {
    .opcode = Opcode::kTriangularSolve,
    .name = "triangular-solve",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = AttrsKind::kTriangularSolveAttrs,
    .fields = kSolveFields,
    .traits = {.shape_inferable = true},
    .infer = infer_triangular_solve,
    .rule = triangular_solve_rule,
    .flops_per_point = 1,
};

}  // namespace gspmd
