#include "tests/unit/ops/op_bench.h"

#include <fmt/format.h>

#include <charconv>

namespace gspmd {

OpBench::OpBench()
    : context_(std::make_shared<Context>()), module_(std::make_unique<Module>(context_, "test")) {
  main_ = module_->add_computation("main");
  module_->set_entry(main_);
}

Shape OpBench::read(std::string_view* text) {
  auto skip = [&](char c) {
    if (text->empty() || text->front() != c) return false;
    text->remove_prefix(1);
    return true;
  };
  if (skip('(')) {
    std::vector<Shape> elements;
    while (!skip(')')) {
      elements.push_back(read(text));
      skip(',');
      skip(' ');
    }
    return context_->tuple(elements);
  }
  size_t bracket = text->find('[');
  ElementType type = *parse_element_type(text->substr(0, bracket));
  text->remove_prefix(bracket + 1);
  if (type == ElementType::kToken) {
    skip(']');
    return context_->token();
  }
  DimVector sizes;
  while (!skip(']')) {
    int64_t n = 0;
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), n);
    text->remove_prefix(end - text->data());
    sizes.push_back(n);
    skip(',');
  }
  return context_->array(type, sizes);
}

Shape OpBench::shape(std::string_view text) { return text.empty() ? Shape() : read(&text); }

Window OpBench::window(std::initializer_list<WindowDim> w) {
  return context_->arena().copy(absl::Span<const WindowDim>(w.begin(), w.size()));
}

const DeviceGroups* OpBench::groups(int64_t n, int64_t size) {
  groups_.push_back(std::make_unique<DeviceGroups>(
      DeviceGroups{.num_groups = n, .group_size = size, .ids = {}, .mesh_form = ""}));
  return groups_.back().get();
}

Computation* OpBench::reducer(Opcode op, std::string_view scalar) {
  Computation* c = module_->add_computation(name_of(op));
  std::vector<Instr*> params;
  for (int64_t i = 0; i < 2; ++i) {
    params.push_back(
        module_->add(c, Opcode::kParameter, shape(scalar), {}, attrs(ParameterAttrs{i})));
  }
  Attrs a =
      op == Opcode::kCompare ? attrs(CompareAttrs{Direction::kGe, CompareType::kDefault}) : Attrs();
  Shape s = op == Opcode::kCompare ? shape("pred[]") : shape(scalar);
  c->set_root(module_->add(c, op, s, params, a));
  return c;
}

Computation* OpBench::opaque(std::initializer_list<std::string_view> params,
                             std::string_view result) {
  Computation* c = module_->add_computation("opaque");
  int64_t n = 0;
  for (std::string_view p : params) {
    module_->add(c, Opcode::kParameter, shape(p), {}, attrs(ParameterAttrs{n++}));
  }
  c->set_root(
      module_->add(c, Opcode::kCustomCall, shape(result), c->params(), attrs(CustomCallAttrs{})));
  return c;
}

Shape OpBench::infer_shape(Opcode op, absl::Span<const Shape> operands, Attrs attrs,
                           absl::Span<Computation* const> called, Shape stated) {
  const OpDef& d = def(op);
  if (attrs.kind() == AttrsKind::kNone && d.attrs != AttrsKind::kNone) {
    attrs = Attrs(d.attrs, make_attrs(d.attrs, arena_));
  }
  if (d.infer == nullptr) return stated;
  return d.infer({*context_, operands, attrs, called, stated});
}

std::string OpBench::infer(Opcode op, std::initializer_list<std::string_view> operands, Attrs attrs,
                           std::initializer_list<Computation*> called, std::string_view stated) {
  std::vector<Shape> shapes;
  for (std::string_view o : operands) shapes.push_back(shape(o));
  try {
    return to_string(
        infer_shape(op, shapes, attrs, std::vector<Computation*>(called), shape(stated)));
  } catch (const Error& e) {
    return fmt::format("error: {}{}", e.message(),
                       e.hint().empty() ? "" : fmt::format(" ({})", e.hint()));
  }
}

Instr* OpBench::make(Opcode op, std::initializer_list<std::string_view> operands, Attrs attrs,
                     std::initializer_list<Computation*> called, std::string_view stated) {
  std::vector<Instr*> params;
  std::vector<Shape> shapes;
  for (std::string_view o : operands) {
    int64_t number = static_cast<int64_t>(main_->params().size());
    params.push_back(module_->add(main_, Opcode::kParameter, shape(o), {},
                                  context_->attrs(ParameterAttrs{number})));
    shapes.push_back(params.back()->shape);
  }
  std::vector<Computation*> callees(called);
  const OpDef& d = def(op);
  if (attrs.kind() == AttrsKind::kNone && d.attrs != AttrsKind::kNone) {
    attrs = Attrs(d.attrs, make_attrs(d.attrs, context_->arena()));
  }
  Instr* i = module_->add(main_, op, infer_shape(op, shapes, attrs, callees, shape(stated)), params,
                          attrs);
  i->called = module_->computation_array(callees);
  return i;
}

const Rule& OpBench::rule_of(const Instr& i) { return *def(i).rule(i, arena_); }

std::string OpBench::rule(Opcode op, std::initializer_list<std::string_view> operands, Attrs attrs,
                          std::initializer_list<Computation*> called, std::string_view stated) {
  return rule_of(*make(op, operands, attrs, called, stated)).to_string();
}

}  // namespace gspmd
