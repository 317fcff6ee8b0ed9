// Annotations: mhlo.sharding strings, sdy attributes and sdy operations. They become what JAX's own
// lowering to HLO makes of them: `sharding={...}`, frontend attributes xla.sdy.*, and the custom
// calls Sharding and xla.sdy.*.

#include <fmt/format.h>

#include "gspmd/formats/stablehlo/importer.h"
#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd::stablehlo {
namespace {

constexpr std::string_view kSharding = "xla.sdy.sharding";

ShardingSpelling parse_or_fail(const Importer& in, const mlir::Op& op, std::string_view text) {
  try {
    size_t position = 0;
    ShardingSpelling s = parse_hlo_sharding(text, &position);
    if (position != text.size()) throw SpellingError{position, "text after the sharding", ""};
    return s;
  } catch (const SpellingError& e) {
    in.fail(op, fmt::format("mhlo.sharding = \"{}\": {}", text, e.message), e.hint);
  }
}

}  // namespace

void Importer::read_mesh(const mlir::Op& op) {
  meshes_.emplace_back(text_of(op, "sym_name"), text_of(op, "mesh"));
}

std::optional<ShardingSpelling> Importer::spelling(const mlir::Op& op, const mlir::Attrs& attrs) {
  if (const mlir::Attr* a = mlir::find(attrs, "mhlo.sharding"))
    return parse_or_fail(*this, op, a->text);
  const mlir::Attr* a = mlir::find(attrs, "sdy.sharding");
  if (a == nullptr) return std::nullopt;
  try {
    size_t position = 0;
    ShardingSpelling s = parse_sdy_sharding(a->text, &position);
    bool known = s.mesh_name.empty();
    for (const auto& [name, mesh] : meshes_) {
      if (name != s.mesh_name) continue;
      position = 0;
      s.mesh = parse_sdy_mesh(mesh, &position);
      known = true;
    }
    if (!known) fail(op, fmt::format("{}: there is no mesh @{}", a->text, s.mesh_name));
    if (s.mesh.axes.empty() && !s.mesh.maximal_device) return std::nullopt;  // it says nothing
    return s;
  } catch (const SpellingError& e) {
    fail(op, fmt::format("{}: {}", a->text, e.message), e.hint);
  }
}

// mhlo.sharding, sdy.sharding and mhlo.frontend_attributes of an operation, argument or result.
void Importer::annotate(const mlir::Op& op, Instr* instr, const mlir::Attrs& attrs) {
  for (const auto& [key, a] : attrs) {
    if (key == "mhlo.sharding") {
      instr->annotation = context_->spelling(parse_or_fail(*this, op, a.text));
    } else if (key == "sdy.sharding") {
      set_frontend_attribute(instr, kSharding, a.text);
    } else if (key == "mhlo.frontend_attributes") {
      for (const auto& [name, value] : a.entries) set_frontend_attribute(instr, name, value.text);
    } else if (key == "sdy.sharding_rule") {
      set_frontend_attribute(instr, "xla.sdy.sharding_rule", a.text);
    }
  }
}

bool Importer::sdy_operation(const mlir::Op& op) {
  if (op.name == "sdy.sharding_constraint" || op.name == "sdy.reshard") {
    constrain(op, "Sharding", "sharding");
  } else if (op.name == "sdy.data_flow_edge") {
    constrain(op, "Sharding", op.attr("sharding") == nullptr ? "" : "sharding");
  } else if (op.attr("out_sharding") != nullptr) {
    constrain(op, "Sharding", "out_sharding");
  } else if (op.name == "sdy.propagation_barrier") {
    constrain(op, "xla.sdy.PropagationBarrier", "");
    Instr* i = value(op, op.results[0]);
    static constexpr std::string_view kDirections[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
    std::string_view direction = text_of(op, "allowed_direction");
    if (direction.empty()) {  // bytecode numbers them
      int64_t k = integer_or(op, "allowed_direction", -1);
      if (k < 0 || k >= std::ssize(kDirections)) fail(op, "allowed_direction is wrong");
      direction = kDirections[k];
    }
    set_frontend_attribute(i, "xla.sdy.allowed_direction", direction);
  } else if (op.name == "sdy.sharding_group") {
    CustomCallAttrs a;
    a.target = "xla.sdy.ShardingGroup";
    a.has_side_effect = true;
    Instr* i = add(op, Opcode::kCustomCall, context_->tuple({}), {operand(op, 0)}, a);
    set_frontend_attribute(i, "xla.sdy.sharding_group_id",
                           fmt::format("{} : i64", integer_or(op, "group_id", 0)));
  } else if (op.name == "sdy.manual_computation") {
    border(op);
  } else if (op.name == "sdy.named_computation") {
    named_computation(op);
  } else {
    return false;
  }
  return true;
}

// One value through a custom call, with the sharding that stands under `key`, if any.
void Importer::constrain(const mlir::Op& op, std::string_view target, std::string_view key) {
  if (op.results.size() != 1) fail(op, fmt::format("has {} results, needs 1", op.results.size()));
  CustomCallAttrs a;
  a.target = target;
  Instr* x = operand(op, 0);
  Instr* i = key.empty() && target == "Sharding" ? add(op, Opcode::kCopy, x->shape, {x})
                                                 : add(op, Opcode::kCustomCall, x->shape, {x}, a);
  if (!key.empty()) {
    set_frontend_attribute(i, kSharding,
                           fmt::format("#sdy.sharding_per_value<[{}]>", text_of(op, key)));
  }
  define(op, i);
}

namespace {

// [<...>, <...>] as it stands in the text, or generic: #sdy.sharding_per_value<[...]>.
std::string per_value(std::string_view text) {
  return text.starts_with("#") ? std::string(text)
                               : fmt::format("#sdy.sharding_per_value<{}>", text);
}
std::string axes(std::string_view text) {
  return text.starts_with("#") ? std::string(text) : fmt::format("#sdy<manual_axes{}>", text);
}

}  // namespace

// A manual computation: GlobalToLocalShape, the body as a call, LocalToGlobalShape.
void Importer::border(const mlir::Op& op) {
  if (op.regions.size() != 1 || op.regions[0].arguments.size() != op.operands.size())
    fail(op, "the body's arguments do not fit the operands");
  std::string manual = axes(text_of(op, "manual_axes"));
  std::vector<Instr*> operands;
  std::vector<Shape> local;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    operands.push_back(operand(op, k));
    local.push_back(type(op.regions[0].arguments[k]));
    if (!local.back()) fail(op, fmt::format("argument {} has no tensor type", k));
  }
  std::vector<mlir::ValueId> captured = captured_by(op, op.regions);
  if (!captured.empty()) fail(op, "the body uses values from outside", "hand them in as operands");
  const auto call = [&](std::string_view target, Shape shape, absl::Span<Instr* const> of,
                        std::string_view key, std::string_view shardings) {
    CustomCallAttrs a;
    a.target = target;
    a.has_side_effect = true;
    Instr* i = add(op, Opcode::kCustomCall, shape, of, Attrs(context_->attrs(a)));
    set_frontend_attribute(i, fmt::format("xla.sdy.{}", key), per_value(text_of(op, shardings)));
    set_frontend_attribute(i, "xla.sdy.manual_axes", manual);
    return i;
  };
  std::vector<Instr*> inside;
  if (!operands.empty()) {
    Shape shape = local.size() == 1 ? local[0] : context_->tuple(local);
    Instr* in = call("xla.sdy.GlobalToLocalShape", shape, operands, "in_shardings", "in_shardings");
    if (local.size() == 1) inside.push_back(in);
    for (size_t k = 0; k < local.size() && local.size() > 1; ++k)
      inside.push_back(element(op, in, static_cast<int64_t>(k)));
  }
  Computation* body = function_of_region(op, op.regions[0]);
  Instr* run =
      add(op, Opcode::kCall, body->root()->shape, inside, Attrs(context_->attrs(CallAttrs{})));
  run->called = module_->computation_array({&body, 1});
  set_frontend_attribute(run, "inlineable", "false");
  if (op.results.empty()) return;
  std::vector<Instr*> out;
  if (op.results.size() == 1) out.push_back(run);
  for (size_t k = 0; k < op.results.size() && op.results.size() > 1; ++k)
    out.push_back(element(op, run, static_cast<int64_t>(k)));
  define(op, call("xla.sdy.LocalToGlobalShape", result_type(op), out, "out_shardings",
                  "out_shardings"));
}

// Its body in place, with the constraints of its border.
void Importer::named_computation(const mlir::Op& op) {
  if (op.regions.size() != 1 || op.regions[0].arguments.size() != op.operands.size())
    fail(op, "the body's arguments do not fit the operands");
  const auto constrained = [&](Instr* x, std::string_view key, size_t k) {
    std::string text = op.attr(key) == nullptr ? "" : per_value(text_of(op, key));
    if (text.empty()) return x;
    size_t position = 0;
    ShardingSpelling all;
    try {
      all = parse_sdy_sharding(text, &position);
    } catch (const SpellingError& e) {
      fail(op, e.message, e.hint);
    }
    if (k >= all.elements.size()) fail(op, fmt::format("{} has too few shardings", key));
    CustomCallAttrs a;
    a.target = "Sharding";
    Instr* i = add(op, Opcode::kCustomCall, x->shape, {x}, a);
    set_frontend_attribute(i, kSharding, print_sdy_sharding(all.elements[k]));
    return i;
  };
  for (size_t k = 0; k < op.operands.size(); ++k)
    alias(op.regions[0].arguments[k], constrained(operand(op, k), "in_shardings", k));
  const mlir::Op& end = body_or_fail(op, op.regions[0]);
  if (end.operands.size() != op.results.size()) fail(op, "the results do not fit the body");
  for (size_t k = 0; k < op.results.size(); ++k)
    alias(op.results[k], constrained(operand(end, k), "out_shardings", k));
}

}  // namespace gspmd::stablehlo
