// map: a scalar computation at each element.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

// Old programs may leave them out.
void check_dimensions(Dims dims, Shape s) {
  bool all = static_cast<int>(dims.size()) == s.rank();
  for (size_t d = 0; all && d < dims.size(); ++d) all = dims[d] == static_cast<int64_t>(d);
  if (all || dims.empty()) return;
  refuse("map", fmt::format("dimensions do not list those of {}", to_string(s)), "all, in order");
}

void check_function(const Computation& f, absl::Span<const Shape> operands) {
  if (f.params().size() != operands.size()) {
    refuse("map", fmt::format("{} has {} parameters and gets {} operands", f.name(),
                              f.params().size(), operands.size()));
  }
  for (size_t k = 0; k < operands.size(); ++k) {
    Shape wanted = f.params()[k]->shape;
    if (wanted.is_scalar() && wanted.type() == operands[k].type()) continue;
    refuse("map", fmt::format("parameter {} of {} is {} and gets elements of {}", k, f.name(),
                              to_string(wanted), to_string(operands[k])));
  }
  if (f.root()->shape.is_scalar()) return;
  refuse("map", fmt::format("{} gives {}", f.name(), to_string(f.root()->shape)),
         "a scalar is needed");
}

Shape infer(const InferArgs& args) {
  Shape s = array_operand(args, 0, "map");
  check_same_sizes(args, 0, static_cast<int>(args.operands.size()), "map");
  check_dimensions(args.attrs.get<DimsAttrs>().dimensions, s);
  if (args.called.empty() || args.called[0]->root() == nullptr) return s.plain();
  check_function(*args.called[0], args.operands);
  return args.context.with_type(s, args.called[0]->root()->shape.type()).plain();
}

const Rule* rule(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  r.pointwise();
  return r.build();
}

constexpr Field kFields[] = {field<&DimsAttrs::dimensions>("dimensions", FieldKind::kDims)};
constexpr std::string_view kCalled[] = {"to_apply"};

}  // namespace

extern const OpDef kMapDef = {.opcode = Opcode::kMap,
                              .name = "map",
                              .max_operands = -1,
                              .attrs = AttrsKind::kDimsAttrs,
                              .fields = kFields,
                              .called = kCalled,
                              .traits = {.elementwise = true, .shape_inferable = true},
                              .infer = infer,
                              .rule = rule,
                              .flops_per_point = 1};

}  // namespace gspmd
