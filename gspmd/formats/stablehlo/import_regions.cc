#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include "gspmd/formats/stablehlo/importer.h"

namespace gspmd::stablehlo {
namespace {

void collect(absl::Span<const mlir::Region> regions,
             const absl::flat_hash_map<mlir::ValueId, const mlir::Op*>& constants,
             absl::flat_hash_set<mlir::ValueId>* inside, std::vector<mlir::ValueId>* out) {
  for (const mlir::Region& r : regions) {
    inside->insert(r.arguments.begin(), r.arguments.end());
    for (const mlir::Op& op : r.ops) {
      for (mlir::ValueId v : op.operands) {
        if (!inside->contains(v) && !constants.contains(v)) {
          out->push_back(v);
          inside->insert(v);
        }
      }
      collect(op.regions, constants, inside, out);
      inside->insert(op.results.begin(), op.results.end());
    }
  }
}

}  // namespace

std::vector<mlir::ValueId> Importer::captured_by(const mlir::Op&,
                                                 absl::Span<const mlir::Region> regions) {
  absl::flat_hash_set<mlir::ValueId> inside;
  std::vector<mlir::ValueId> out;
  collect(regions, constants_, &inside, &out);
  return out;
}

void Importer::move_last(Computation* c) {
  std::vector<Computation*> order;
  for (const auto& other : module_->computations()) {
    if (other.get() != c) order.push_back(other.get());
  }
  order.push_back(c);
  module_->set_computations(order);
}

Computation* Importer::function_of_region(const mlir::Op& op, const mlir::Region& region) {
  Frame frame;
  frame.computation = module_->add_computation("region");
  Frame* outer = std::exchange(frame_, &frame);
  int64_t number = 0;
  for (mlir::ValueId v : region.arguments) {
    if (!type(v)) fail(op, "an argument of a region has no tensor type");
    frame.values[v] = add(op, Opcode::kParameter, type(v), {}, ParameterAttrs{number++});
  }
  const mlir::Op& end = body_or_fail(op, region);
  std::vector<Instr*> all = operands(end);
  frame.computation->set_root(all.size() == 1 ? all[0] : tuple(end, all));
  frame_ = outer;
  move_last(frame.computation);
  return frame.computation;
}

Computation* Importer::body_of_region(const mlir::Op& op, const mlir::Region& region,
                                      absl::Span<const mlir::ValueId> captured,
                                      bool returns_captured) {
  std::vector<mlir::ValueId> state = region.arguments;
  state.insert(state.end(), captured.begin(), captured.end());
  std::vector<Shape> shapes;
  for (mlir::ValueId v : state) {
    if (!type(v)) fail(op, "an argument of a region has no tensor type");
    shapes.push_back(type(v));
  }
  Frame frame;
  frame.computation = module_->add_computation("region");
  Frame* outer = std::exchange(frame_, &frame);
  Instr* p = add(op, Opcode::kParameter, context_->tuple(shapes), {}, ParameterAttrs{0});
  for (size_t k = 0; k < state.size(); ++k)
    frame.values[state[k]] = element(op, p, static_cast<int64_t>(k));
  const mlir::Op& end = body_or_fail(op, region);
  std::vector<Instr*> all = operands(end);
  for (mlir::ValueId v : captured) {
    if (returns_captured) all.push_back(value(op, v));
  }
  frame.computation->set_root(all.size() == 1 && !returns_captured ? all[0] : tuple(end, all));
  frame_ = outer;
  move_last(frame.computation);
  return frame.computation;
}

}  // namespace gspmd::stablehlo
