// scan: a computation applied along one dimension, from (slices of the inputs, carries) to (slices
// of the outputs, carries).

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "scan";

int64_t num_inputs(const ScanAttrs& a, size_t operands) {
  return static_cast<int64_t>(operands) - std::max<int64_t>(a.num_carries, 0);
}

void check_operands(const InferArgs& args, const ScanAttrs& a) {
  int64_t operands = static_cast<int64_t>(args.operands.size());
  int64_t inputs = num_inputs(a, args.operands.size());
  if (a.num_carries < 0 || a.num_carries >= operands) {
    refuse(kName, fmt::format("{} operands with num_carries {}: at least one input is needed",
                              args.operands.size(), a.num_carries));
  }
  if (a.dimensions.size() != 1) {
    refuse(kName, fmt::format("dimensions has {} entries, one is needed", a.dimensions.size()));
  }
  int64_t scanned = a.dimensions[0];
  for (int i = 0; i < inputs; ++i) {
    Shape s = array_operand(args, i, kName);
    check_dim(scanned, s.rank(), kName, "dimensions");
    check_equal(args.operands[0].dim(static_cast<int>(scanned)), s.dim(static_cast<int>(scanned)),
                kName, fmt::format("scanned dimension of operands 0 and {}", i));
  }
}

// s is `whole` without dimension d.
bool is_slice(Shape s, Shape whole, int64_t d) {
  if (!s.is_array() || s.type() != whole.type() || s.rank() + 1 != whole.rank()) return false;
  for (int k = 0; k < s.rank(); ++k) {
    if (s.dim(k) != whole.dim(k < d ? k : k + 1)) return false;
  }
  return true;
}

// Parameters are slices of the inputs, then the carries; results are slices of the outputs, then
// the carries again.
void check_body(const InferArgs& args, const ScanAttrs& a, absl::Span<const Shape> results) {
  const Computation& body = *args.called[0];
  if (body.params().size() != args.operands.size()) {
    refuse(kName, fmt::format("{} has {} parameters and gets {} operands", body.name(),
                              body.params().size(), args.operands.size()));
  }
  int64_t inputs = num_inputs(a, args.operands.size());
  for (size_t k = 0; k < args.operands.size(); ++k) {
    Shape p = body.params()[k]->shape, operand = args.operands[k];
    bool is_input = static_cast<int64_t>(k) < inputs;
    if (is_input ? is_slice(p, operand, a.dimensions[0]) : same(p, operand)) continue;
    refuse(kName,
           fmt::format("parameter {} of {} is {} and gets {} {}", k, body.name(), to_string(p),
                       is_input ? "slices of" : "the carry", to_string(operand)));
  }
  for (int64_t k = 0; k < a.num_carries; ++k) {
    Shape carry = args.operands[static_cast<size_t>(inputs + k)];
    Shape next = results[results.size() - static_cast<size_t>(a.num_carries - k)];
    if (same(carry, next)) continue;
    refuse(kName, fmt::format("{} gives {} for the carry {}", body.name(), to_string(next),
                              to_string(carry)));
  }
}

// Outputs are the computation's results with the scanned dimension put back; carries keep their
// shapes.
Shape infer(const InferArgs& args) {
  const auto& a = args.attrs.get<ScanAttrs>();
  check_operands(args, a);
  if (args.called.empty() || args.called[0]->root() == nullptr) return args.stated;
  Shape body = args.called[0]->root()->shape;
  absl::Span<const Shape> leaves =
      body.is_tuple() ? body.elements() : absl::MakeConstSpan(&body, 1);
  int64_t outputs = static_cast<int64_t>(leaves.size()) - a.num_carries;
  if (outputs < 0) {
    refuse(kName, fmt::format("{} returns {} values, fewer than num_carries {}",
                              args.called[0]->name(), leaves.size(), a.num_carries));
  }
  check_body(args, a, leaves);
  int64_t length = args.operands[0].dim(static_cast<int>(a.dimensions[0]));
  absl::InlinedVector<Shape, 4> results;
  for (int64_t i = 0; i < static_cast<int64_t>(leaves.size()); ++i) {
    if (i >= outputs) {
      results.push_back(leaves[i]);
      continue;
    }
    if (!leaves[i].is_array() || a.dimensions[0] > leaves[i].rank()) {
      refuse(kName, fmt::format("output {} is {}: it has no place for dimension {}", i,
                                to_string(leaves[i]), a.dimensions[0]));
    }
    Sizes sizes;
    for (int d = 0; d < leaves[i].rank(); ++d) sizes.add(leaves[i], d);
    sizes.insert(a.dimensions[0], length);
    results.push_back(sizes.shape(args.context, leaves[i].type()));
  }
  return args.context.tuple(results);
}

// Whether all of the body's results have the sizes of its first parameter.
bool has_full_results(const Computation& body) {
  bool full = true;
  for_each_leaf(body.root()->shape, [&](Shape leaf, int) {
    full = full && leaf.is_array() && leaf.dims() == body.params()[0]->shape.dims();
  });
  return full;
}

// Whether each element of the body's results depends on the same element of its parameters only:
// all arrays have the sizes of the first parameter, or are scalars known to be constant, and all
// operators are element-wise.
bool is_elementwise(const Computation& body) {
  if (body.params().empty() || !body.params()[0]->shape.is_array()) return false;
  if (!has_full_results(body)) return false;
  Dims sizes = body.params()[0]->shape.dims();
  for (const Instr* i : body.instrs()) {
    bool same_sizes = i->shape.is_array() && i->shape.dims() == sizes;
    switch (i->opcode) {
      case Opcode::kParameter:
        if (!same_sizes) return false;
        continue;
      case Opcode::kConstant:
        if (!i->shape.is_scalar()) return false;
        continue;
      case Opcode::kBroadcast:
        if (!same_sizes || !i->operand(0)->shape.is_scalar()) return false;
        continue;
      case Opcode::kTuple:
        continue;
      default:
        if (!def(*i).traits.elementwise || !(same_sizes || i->shape.is_scalar())) return false;
    }
  }
  return true;
}

const Rule* rule(const Instr& instr, Arena& arena) {
  const auto& a = instr.attrs<ScanAttrs>();
  RuleBuilder r(instr, arena);
  if (!is_elementwise(*instr.called[0])) return r.build();
  int64_t scanned = a.dimensions[0];
  int inputs = static_cast<int>(num_inputs(a, instr.operands.size()));
  int results = instr.shape.num_leaves();
  int outputs = results - static_cast<int>(a.num_carries);
  Shape x = instr.operand(0)->shape;
  for (int d = 0; d < x.rank(); ++d) {
    FactorKind kind = d == scanned ? FactorKind::kWhole : FactorKind::kParallel;
    FactorId f = r.add({.kind = kind, .size = x.dim(d)});
    auto place = [&](int tensor, bool is_carry) {
      if (!is_carry) {
        r.place(f, tensor, d);
      } else if (d != scanned) {
        r.place(f, tensor, d < scanned ? d : d - 1);
      }
    };
    for (int i = 0; i < instr.num_operands(); ++i) place(i, /*is_carry=*/i >= inputs);
    for (int i = 0; i < results; ++i) place(r.result(i), /*is_carry=*/i >= outputs);
  }
  return r.build();
}

constexpr Field kFields[] = {
    required(field<&ScanAttrs::dimensions>("dimensions", FieldKind::kDims)),
    required(field<&ScanAttrs::num_carries>("num_carries", FieldKind::kInt)),
    field<&ScanAttrs::is_reverse>("is_reverse", FieldKind::kBool),
    field<&ScanAttrs::is_associative>("is_associative", FieldKind::kBool),
};
constexpr std::string_view kCalled[] = {"to_apply"};

}  // namespace

extern const OpDef kScanDef = {
    .opcode = Opcode::kScan,
    .name = kName,
    .max_operands = -1,
    .attrs = AttrsKind::kScanAttrs,
    .fields = kFields,
    .called = kCalled,
    .traits = {.shape_inferable = true},
    .infer = infer,
    .rule = rule,
    .flops_per_point = 1,
};

}  // namespace gspmd
