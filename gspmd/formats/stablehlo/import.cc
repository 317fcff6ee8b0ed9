#include "gspmd/formats/stablehlo/import.h"

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/formats/mlir/reader.h"
#include "gspmd/formats/stablehlo/importer.h"
#include "gspmd/ir/float_format.h"

namespace gspmd {

std::unique_ptr<Module> import_stablehlo(std::shared_ptr<Context> context,
                                         const mlir::Program& program) {
  return stablehlo::Importer(std::move(context), program).run();
}

std::unique_ptr<Module> parse_stablehlo(std::shared_ptr<Context> context, std::string text,
                                        std::string file_name) {
  mlir::Program program = mlir::is_bytecode(text)
                              ? mlir::read_bytecode(*context, text, file_name)
                              : mlir::read_text(*context, std::move(text), std::move(file_name));
  return import_stablehlo(std::move(context), program);
}

namespace stablehlo {
namespace {

std::string_view sym_name(const mlir::Op& op) {
  const mlir::Attr* a = op.attr("sym_name");
  return a == nullptr ? std::string_view() : a->text;
}

bool is_terminator(const mlir::Op& op) {
  return op.name == "func.return" || op.name == "stablehlo.return" || op.name == "sdy.return" ||
         op.name == "mhlo.return";
}

// Operators by their StableHLO names.
const OpDef* def_named(std::string_view name) {
  static const auto* by_name = [] {
    auto* all = new absl::flat_hash_map<std::string, const OpDef*>();
    for (int k = 0; k < kNumOpcodes; ++k) {
      const OpDef& d = def(static_cast<Opcode>(k));
      std::string spelled(d.stablehlo.empty() ? d.name : d.stablehlo);
      std::replace(spelled.begin(), spelled.end(), '-', '_');
      all->try_emplace(std::move(spelled), &d);
    }
    return all;
  }();
  auto it = by_name->find(std::string(name));
  return it == by_name->end() ? nullptr : it->second;
}

}  // namespace

Importer::Importer(std::shared_ptr<Context> context, const mlir::Program& program)
    : context_(std::move(context)), program_(program) {}

void Importer::fail(const mlir::Op& op, std::string message, std::string hint) const {
  Error e(op.name + ": " + std::move(message), std::move(hint));
  const std::string& text = program_.source->text;
  size_t at = op.place == 0 ? 0 : std::min(op.place - 1, text.size());
  size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1);
  begin = at == 0 || begin == std::string::npos ? 0 : begin + 1;
  Place place;
  place.file = program_.source->file;
  if (op.place > 0) {
    place.line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    place.column = static_cast<int64_t>(at - begin) + 1;
  }
  e.at(place, text.substr(begin, std::min(text.find('\n', at), text.size()) - begin));
  if (op.location >= 0) {
    const mlir::Location& l = program_.locations[static_cast<size_t>(op.location)];
    if (!l.file.empty()) e.in_model(fmt::format("{}:{}", l.file, l.line));
  }
  throw e;
}

std::unique_ptr<Module> Importer::run() {
  std::string_view name = sym_name(program_.module);
  module_ = std::make_unique<Module>(context_, context_->name(name.empty() ? "main" : name));
  module_->source = program_.source;
  const mlir::Op* main = nullptr;
  if (program_.module.regions.empty()) fail(program_.module, "an empty module");
  for (const mlir::Op& op : program_.module.regions[0].ops) {
    if (op.name == "sdy.mesh") {
      read_mesh(op);
    } else if (op.name == "func.func") {
      if (!functions_.try_emplace(std::string(sym_name(op)), &op).second)
        fail(op, fmt::format("a second function @{}", sym_name(op)));
      if (main == nullptr || sym_name(op) == "main") main = &op;
    } else if (op.name != "sdy.return" && !is_terminator(op)) {
      fail(op, "not expected at the top level of a module");
    }
  }
  if (main == nullptr)
    fail(program_.module, "there is no function", "a program has a func.func @main");
  read_header();
  entry(*main);
  return std::move(module_);
}

void Importer::read_header() {
  const mlir::Op& m = program_.module;
  module_->attrs.num_partitions = integer_or(m, "mhlo.num_partitions", 1);
  module_->attrs.replica_count = integer_or(m, "mhlo.num_replicas", 1);
  if (!meshes_.empty()) {
    std::string all;
    for (const auto& [name, mesh] : meshes_)
      all += fmt::format("{}{} = {}", all.empty() ? "" : ", ", name, mesh);
    module_->attrs.frontend_attributes = fmt::format("{{xla.sdy.meshes={{{}}}}}", all);
  }
}

void Importer::entry(const mlir::Op& function) {
  if (function.regions.empty()) fail(function, "a function without a body");
  note_constants(function.regions[0]);
  computations_[std::string(sym_name(function))] = nullptr;
  Frame frame;
  // The entry comes last, behind what it calls: made here, moved there at the end.
  frame.computation = module_->add_computation("main");
  frame_ = &frame;
  arguments(function);
  frame.computation->set_root(results(function, body_or_fail(function, function.regions[0])));
  move_last(frame.computation);
  module_->set_entry(frame.computation);
}

void Importer::arguments(const mlir::Op& function) {
  const mlir::Region& region = function.regions[0];
  const mlir::Attr* attrs = function.attr("arg_attrs");
  const mlir::Attr* types = function.attr("result_types");
  int64_t number = 0;
  for (mlir::ValueId v : region.arguments) {
    if (!type(v)) fail(function, fmt::format("argument {} has no tensor type", number));
    Instr* p = module_->add(frame_->computation, Opcode::kParameter, type(v), {},
                            Attrs(context_->attrs(ParameterAttrs{number})),
                            context_->name(fmt::format("arg{}", number)));
    p->place = static_cast<int64_t>(function.place);
    frame_->values[v] = p;
    if (attrs != nullptr && static_cast<size_t>(number) < attrs->elements.size()) {
      const mlir::Attrs& of_this = attrs->elements[static_cast<size_t>(number)].entries;
      annotate(function, p, of_this);
      int64_t outputs = types == nullptr ? 0 : static_cast<int64_t>(types->elements.size());
      donations(function, of_this, number, outputs);
    }
    ++number;
  }
}

void Importer::donations(const mlir::Op& op, const mlir::Attrs& attrs, int64_t parameter,
                         int64_t outputs) {
  if (const mlir::Attr* a = mlir::find(attrs, "tf.aliasing_output")) {
    if (a->integer < 0 || a->integer >= outputs)
      fail(op, fmt::format("argument {} aliases result {} of {}", parameter, a->integer, outputs));
    Alias alias;
    alias.parameter = parameter;
    if (outputs > 1) alias.output_index = {a->integer};
    module_->attrs.aliases.push_back(alias);
  }
  const mlir::Attr* donor = mlir::find(attrs, "jax.buffer_donor");
  if (donor != nullptr && donor->integer != 0) module_->attrs.donors.push_back({parameter, {}});
}

// The root: the one result, or a tuple, with the annotations of the results. A result without one
// is left to completion, as JAX's header says for the same program in HLO.
Instr* Importer::results(const mlir::Op& function, const mlir::Op& terminator) {
  const mlir::Attr* attrs = function.attr("res_attrs");
  std::vector<Instr*> all;
  ShardingSpelling annotation;
  annotation.kind = ShardingSpelling::Kind::kTuple;
  bool any = false;
  for (size_t k = 0; k < terminator.operands.size(); ++k) {
    all.push_back(operand(terminator, k));
    std::optional<ShardingSpelling> given;
    if (attrs != nullptr && k < attrs->elements.size())
      given = spelling(function, attrs->elements[k].entries);
    any |= given.has_value();
    module_->attrs.propagate_to_output.push_back(!given);
    ShardingSpelling unknown;
    unknown.kind = ShardingSpelling::Kind::kUnknown;
    annotation.elements.push_back(given ? *given : unknown);
  }
  if (all.size() == 1) {
    Instr* r = all[0];
    if (any || r->opcode == Opcode::kParameter) r = add(terminator, Opcode::kCopy, r->shape, {r});
    if (any) r->annotation = context_->spelling(annotation.elements[0]);
    return r;
  }
  Instr* root = tuple(terminator, all);
  if (any) root->annotation = context_->spelling(annotation);
  return root;
}

// Small constants may be used by regions; they are made again in each.
void Importer::note_constants(const mlir::Region& region) {
  for (const mlir::Op& op : region.ops) {
    if (op.name == "stablehlo.constant" || op.name == "mhlo.constant" ||
        op.name == "sdy.constant") {
      if (op.results.size() == 1) constants_[op.results[0]] = &op;
    }
    for (const mlir::Region& inner : op.regions) note_constants(inner);
  }
}

const mlir::Op& Importer::body_or_fail(const mlir::Op& op, const mlir::Region& region) {
  const mlir::Op* end = body(region);
  if (end == nullptr) fail(op, "a region or function returns nothing", "end it with `return`");
  return *end;
}

const mlir::Op* Importer::body(const mlir::Region& region) {
  for (const mlir::Op& op : region.ops) {
    if (is_terminator(op)) return &op;
    translate(op);
  }
  return nullptr;
}

Instr* Importer::value(const mlir::Op& op, mlir::ValueId v) {
  auto it = frame_->values.find(v);
  if (it != frame_->values.end()) return it->second;
  if (auto c = constants_.find(v); c != constants_.end()) {
    translate(*c->second);
    return frame_->values.at(v);
  }
  fail(op, "uses a value of an enclosing computation that it can not reach",
       "hand it in as an operand");
}

Instr* Importer::operand(const mlir::Op& op, size_t k) {
  if (k >= op.operands.size())
    fail(op, fmt::format("has {} operands, needs {}", op.operands.size(), k + 1));
  return value(op, op.operands[k]);
}

std::vector<Instr*> Importer::operands(const mlir::Op& op, size_t first) {
  std::vector<Instr*> all;
  for (size_t k = first; k < op.operands.size(); ++k) all.push_back(operand(op, k));
  return all;
}

Shape Importer::result_type(const mlir::Op& op) const {
  std::vector<Shape> all;
  for (mlir::ValueId v : op.results) {
    if (!type(v)) fail(op, "a result of no tensor type");
    all.push_back(type(v));
  }
  return all.size() == 1 ? all[0] : context_->tuple(all);
}

Instr* Importer::add(const mlir::Op& op, Opcode opcode, Shape shape,
                     absl::Span<Instr* const> operands, Attrs attrs) {
  Instr* i = module_->add(frame_->computation, opcode, shape, operands, attrs);
  i->place = static_cast<int64_t>(op.place);
  i->metadata = metadata(op);
  return i;
}

const Metadata* Importer::metadata(const mlir::Op& op) {
  if (op.location < 0) return nullptr;
  const Metadata*& known = metadata_[op.location];
  if (known == nullptr) {
    const mlir::Location& l = program_.locations[static_cast<size_t>(op.location)];
    Metadata m;
    m.op_name = context_->name(l.name);
    m.source_file = context_->name(l.file);
    m.source_line = static_cast<int32_t>(l.line);
    known = context_->arena().make<Metadata>(m);
  }
  return known;
}

Instr* Importer::tuple(const mlir::Op& op, absl::Span<Instr* const> elements) {
  std::vector<Shape> shapes;
  for (const Instr* e : elements) shapes.push_back(e->shape);
  return add(op, Opcode::kTuple, context_->tuple(shapes), elements);
}

Instr* Importer::element(const mlir::Op& op, Instr* tuple, int64_t index) {
  return add(op, Opcode::kGetTupleElement, tuple->shape.element(static_cast<int>(index)), {tuple},
             IndexAttrs{index});
}

void Importer::define(const mlir::Op& op, Instr* instr) {
  if (op.results.size() == 1) {
    alias(op.results[0], instr);
    return;
  }
  for (size_t k = 0; k < op.results.size(); ++k)
    alias(op.results[k], element(op, instr, static_cast<int64_t>(k)));
}

Instr* Importer::number(const mlir::Op& op, ElementType type, double value) {
  Literal l = integer_literal(*context_, type, static_cast<int64_t>(value));
  if (is_float(type)) {
    uint64_t bits = float_bits(type, value);
    std::byte bytes[8];
    for (int k = 0; k < 8; ++k) bytes[k] = static_cast<std::byte>(bits >> (8 * k));
    size_t size = static_cast<size_t>(storage_bytes(type));
    l.data = context_->arena().copy(absl::MakeConstSpan(bytes, size));
  }
  return add(op, Opcode::kConstant, context_->scalar(type), {},
             ConstantAttrs{context_->arena().make<Literal>(l)});
}

Instr* Importer::splat(const mlir::Op& op, Instr* scalar, Shape shape) {
  if (shape.rank() == 0) return scalar;
  return add(op, Opcode::kBroadcast, shape, {scalar}, DimsAttrs{});
}

// Dimensions of size 1 that grow are dropped first: HLO's broadcast only adds dimensions.
Instr* Importer::stretch(const mlir::Op& op, Instr* x, Shape shape,
                         absl::Span<const int64_t> dims) {
  DimVector kept_sizes, kept;
  for (int d = 0; d < x->shape.rank(); ++d) {
    int64_t to = dims[static_cast<size_t>(d)];
    if (x->shape.dim(d) == 1 && shape.dim(static_cast<int>(to)) != 1) continue;
    kept_sizes.push_back(x->shape.dim(d));
    kept.push_back(to);
  }
  if (kept.size() != dims.size())
    x = add(op, Opcode::kReshape, context_->array(x->shape.type(), kept_sizes), {x},
            ReshapeAttrs{});
  return add(op, Opcode::kBroadcast, shape, {x}, DimsAttrs{context_->dims(kept)});
}

void Importer::translate(const mlir::Op& op) {
  size_t dot = op.name.find('.');
  std::string_view dialect = std::string_view(op.name).substr(0, dot);
  std::string_view name = dot == std::string::npos ? "" : std::string_view(op.name).substr(dot + 1);
  if (dialect == "func" && name == "call") {
    const mlir::Attr* callee = op.attr("callee");
    if (callee == nullptr) fail(op, "calls nothing");
    std::vector<Instr*> given = operands(op);
    Computation* c = computation_of(op, callee->text);
    Instr* call =
        add(op, Opcode::kCall, result_type(op), given, Attrs(context_->attrs(CallAttrs{})));
    call->called = module_->computation_array({&c, 1});
    return finish(op, call);
  }
  if (dialect == "sdy" && sdy_operation(op)) return;
  bool hlo = dialect == "stablehlo" || dialect == "mhlo" || dialect == "sdy";
  Translation special = hlo                 ? translation_of(name)
                        : dialect == "chlo" ? chlo_translation_of(name)
                                            : nullptr;
  if (special != nullptr) return special(*this, op);
  const OpDef* d = hlo || dialect == "chlo" ? def_named(name) : nullptr;
  if (d == nullptr || d->opcode == Opcode::kParameter) {
    fail(op, "there is no such operation here",
         "programs consist of func, stablehlo, chlo and sdy operations");
  }
  generic(op, *d);
}

bool Importer::can_translate(std::string_view name) const {
  size_t dot = name.find('.');
  std::string_view dialect = name.substr(0, dot);
  name.remove_prefix(std::min(dot + 1, name.size()));
  return (dialect == "chlo" ? chlo_translation_of(name) : translation_of(name)) != nullptr ||
         def_named(name) != nullptr;
}

void Importer::generic(const mlir::Op& op, const OpDef& def) {
  std::vector<Instr*> given = operands(op);
  Attrs attrs(def.attrs, fields(op, def));
  std::vector<Computation*> called;
  for (const mlir::Region& r : op.regions) called.push_back(function_of_region(op, r));
  if (called.size() != def.called.size())
    fail(op, fmt::format("has {} regions, needs {}", called.size(), def.called.size()));
  Instr* i = add(op, def.opcode, result_type(op), given, attrs);
  i->called = module_->computation_array(called);
  finish(op, i);
}

Computation* Importer::computation_of(const mlir::Op& at, const std::string& function) {
  auto known = computations_.find(function);
  if (known != computations_.end()) {
    if (known->second == nullptr) fail(at, fmt::format("@{} calls itself", function));
    return known->second;
  }
  auto found = functions_.find(function);
  if (found == functions_.end()) fail(at, fmt::format("there is no function @{}", function));
  computations_[function] = nullptr;
  const mlir::Op& f = *found->second;
  if (f.regions.empty()) fail(f, "a function without a body");
  note_constants(f.regions[0]);
  Computation* c = module_->add_computation(context_->name(function));
  Frame frame;
  frame.computation = c;
  Frame* outer = std::exchange(frame_, &frame);
  int64_t number = 0;
  for (mlir::ValueId v : f.regions[0].arguments) {
    if (!type(v)) fail(f, fmt::format("argument {} has no tensor type", number));
    frame.values[v] = add(f, Opcode::kParameter, type(v), {}, ParameterAttrs{number++});
  }
  const mlir::Op& end = body_or_fail(f, f.regions[0]);
  std::vector<Instr*> all;
  for (size_t k = 0; k < end.operands.size(); ++k) all.push_back(operand(end, k));
  c->set_root(all.size() == 1 ? all[0] : tuple(end, all));
  frame_ = outer;
  move_last(c);
  computations_[function] = c;
  return c;
}

}  // namespace stablehlo
}  // namespace gspmd
