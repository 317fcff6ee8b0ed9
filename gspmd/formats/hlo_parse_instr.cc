#include <fmt/format.h>

#include <algorithm>

#include "gspmd/formats/hlo_parser.h"

namespace gspmd {

Instr* HloParser::instruction(Scope& scope) {
  size_t at = lex_.position();
  bool is_root = lex_.try_word("ROOT");
  Draft d;
  d.at = lex_.position();
  std::string_view name;
  bool may_be_unnamed = scope.free_operands && (starts_shape() || !lex_.peek('%'));
  if (may_be_unnamed && !starts_shape()) {  // `x = ...` or `add(...)`
    lex_.word();
    may_be_unnamed = lex_.peek('(');
    lex_.seek(d.at);
  }
  if (!may_be_unnamed) {
    name = lex_.name("an instruction, NAME = SHAPE OPCODE(...)");
    lex_.take('=');
  }
  shape_and_opcode(&d);
  operands(scope, &d);
  attributes(scope, &d);
  Instr* i = make(scope, &d, name);
  if (!is_root) return i;
  if (scope.root != nullptr) {
    lex_.fail(at, fmt::format("a second ROOT; the first is '{}'", scope.root->name),
              "a computation has one result: make a tuple of several");
  }
  scope.root = i;
  return i;
}

void HloParser::shape_and_opcode(Draft* d) {
  if (starts_shape()) d->shape = shape();
  opcode(d);
}

namespace {

// How many single-letter changes lead from a to b, at most `limit` + 1.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

std::string similar_opcode(std::string_view name) {
  if (name.size() > 40) return "";
  size_t best = 3;
  std::string_view found;
  for (int k = 0; k < kNumOpcodes; ++k) {
    std::string_view candidate = name_of(static_cast<Opcode>(k));
    size_t distance = edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found.empty() ? "" : fmt::format("did you mean '{}'?", found);
}

// Ends of the opcodes of asynchronous instructions written in short: `negate-start`.
struct AsyncSuffix {
  std::string_view suffix;
  Opcode opcode;
};
constexpr AsyncSuffix kAsyncSuffixes[] = {{"-start", Opcode::kAsyncStart},
                                          {"-update", Opcode::kAsyncUpdate},
                                          {"-done", Opcode::kAsyncDone}};

}  // namespace

void HloParser::opcode(Draft* d) {
  d->opcode_at = lex_.position();
  std::string_view name = lex_.word();
  if (name.empty()) lex_.fail_here("an opcode");
  std::optional<Opcode> op = parse_opcode(name);
  if (name == "cross-replica-sum") op = Opcode::kAllReduce;
  for (const AsyncSuffix& s : kAsyncSuffixes) {
    if (op || !name.ends_with(s.suffix)) continue;
    std::string_view wrapped = name.substr(0, name.size() - s.suffix.size());
    if (!parse_opcode(wrapped)) continue;
    op = s.opcode;
    d->async_of = wrapped;
  }
  if (!op) {
    lex_.fail(d->opcode_at, fmt::format("'{}' is no opcode", name), similar_opcode(name));
  }
  d->def = &def(*op);
  if (!d->async_of.empty() && *op == Opcode::kAsyncStart) {
    d->def = &def(*parse_opcode(d->async_of));
    d->wraps_async = true;
  }
  d->attrs = make_attrs(d->def->attrs, context_.arena());
}

void HloParser::operands(Scope& scope, Draft* d) {
  if (d->def->attrs == AttrsKind::kConstantAttrs) {
    lex_.take('(');
    if (!d->shape) {
      lex_.fail(d->opcode_at, "a constant without shape", "write it, as in s32[] constant(1)");
    }
    static_cast<ConstantAttrs*>(d->attrs)->literal = literal(d->shape);
    lex_.take(')');
    return;
  }
  if (d->def->attrs == AttrsKind::kParameterAttrs) return parameter_number(scope, d);
  lex_.list('(', ')', [&] { d->operands.push_back(operand(scope)); });
}

void HloParser::parameter_number(Scope& scope, Draft* d) {
  lex_.take('(');
  size_t at = lex_.position();
  int64_t number = lex_.integer();
  lex_.take(')');
  const auto& params = scope.computation->params();
  // A text has no more parameters than characters.
  if (number < 0 || number >= static_cast<int64_t>(lex_.text().size())) {
    lex_.fail(at, fmt::format("parameter number {}", number),
              "number the parameters 0, 1, 2, ... without gaps");
  }
  size_t n = static_cast<size_t>(number);
  if (n < params.size() && params[n] != nullptr) {
    lex_.fail(at, fmt::format("a second parameter {}; the first is '{}'", number, params[n]->name),
              "number the parameters 0, 1, 2, ... without gaps");
  }
  static_cast<ParameterAttrs*>(d->attrs)->number = number;
}

Instr* HloParser::operand(Scope& scope) {
  Shape stated;
  size_t at = lex_.position();
  if (!lex_.peek('%')) {
    std::string_view w = lex_.word();
    char next = lex_.here();
    if (!w.empty() && (next == ',' || next == ')')) return lookup(scope, w, at, stated);
    lex_.seek(at);
    if (starts_shape()) {
      stated = shape();
      at = lex_.position();
    }
  }
  if (stated && scope.free_operands && (lex_.peek(',') || lex_.peek(')'))) {
    return free_parameter(scope, "", stated, at);
  }
  bool percent = lex_.peek('%');
  std::string_view name = lex_.name("an operand");
  if (!percent && lex_.peek('(')) return nested(scope, at, stated);
  Instr* found = lookup(scope, name, at, stated);
  return lex_.peek('#') ? tuple_elements(scope, found, at) : found;
}

// `add(a, b)` in place of an operand's name; has no attributes.
Instr* HloParser::nested(Scope& scope, size_t at, Shape stated) {
  DepthGuard guard(this);
  lex_.seek(at);
  Draft d;
  d.at = at;
  d.shape = stated;
  opcode(&d);
  operands(scope, &d);
  return make(scope, &d, "");
}

Instr* HloParser::lookup(Scope& scope, std::string_view name, size_t at, Shape stated) {
  auto it = scope.names.find(name);
  if (it == scope.names.end()) {
    if (scope.free_operands && stated) return free_parameter(scope, name, stated, at);
    lex_.fail(at, fmt::format("'{}' is not defined in '{}'", name, scope.computation->name()),
              "an instruction must be defined above its uses, in the same computation");
  }
  Instr* i = it->second;
  if (stated && !same(stated, i->shape)) {
    lex_.fail(at,
              fmt::format("operand '{}' is written as {}, but is {}", name, to_string(stated),
                          to_string(i->shape)),
              "correct the operand's shape or leave it out");
  }
  return i;
}

Instr* HloParser::free_parameter(Scope& scope, std::string_view name, Shape shape, size_t at) {
  ParameterAttrs a{static_cast<int64_t>(scope.computation->params().size())};
  Instr* p = module_->add(scope.computation, Opcode::kParameter, shape, {}, context_.attrs(a),
                          context_.name(name));
  p->place = static_cast<int64_t>(at) + 1;
  if (name.empty()) {
    scope.unnamed.push_back(p);
  } else {
    scope.names.emplace(p->name, p);
  }
  return p;
}

// `t#1#0`: element 0 of element 1 of a tuple.
Instr* HloParser::tuple_elements(Scope& scope, Instr* tuple, size_t at) {
  while (lex_.try_take('#')) {
    size_t index_at = lex_.position();
    int64_t index = lex_.integer();
    Shape s = tuple->shape;
    if (!s.is_tuple() || index < 0 || index >= static_cast<int64_t>(s.elements().size())) {
      lex_.fail(index_at,
                fmt::format("'{}' is {} and has no element {}", tuple->name, to_string(s), index));
    }
    tuple = module_->add(scope.computation, Opcode::kGetTupleElement,
                         s.element(static_cast<int>(index)), absl::MakeConstSpan(&tuple, 1),
                         context_.attrs(IndexAttrs{index}));
    tuple->place = static_cast<int64_t>(at) + 1;
    scope.unnamed.push_back(tuple);
  }
  return tuple;
}

// Counts and what is required; infers the shape if it is not written.
void HloParser::check_draft(Draft* d) {
  const OpDef& op = *d->def;
  int n = static_cast<int>(d->operands.size());
  if (n < op.min_operands || (op.max_operands >= 0 && n > op.max_operands)) {
    std::string wanted = op.max_operands == op.min_operands ? fmt::format("{}", op.min_operands)
                         : op.max_operands < 0
                             ? fmt::format("at least {}", op.min_operands)
                             : fmt::format("{} to {}", op.min_operands, op.max_operands);
    lex_.fail(d->opcode_at, fmt::format("'{}' has {} operands, but takes {}", op.name, n, wanted));
  }
  for (size_t k = 0; k < op.fields.size(); ++k) {
    if (!op.fields[k].required || (d->fields_seen >> k & 1)) continue;
    lex_.fail(d->opcode_at, fmt::format("'{}' without {}=", op.name, op.fields[k].name),
              fmt::format("'{}' needs the attribute {}", op.name, op.fields[k].name));
  }
  for (size_t k = 0; k < op.called.size() && op.called_list.empty(); ++k) {
    if (k < d->called.size() && d->called[k] != nullptr) continue;
    lex_.fail(d->opcode_at, fmt::format("'{}' without {}=", op.name, op.called[k]),
              fmt::format("'{}' needs the attribute {}, a computation", op.name, op.called[k]));
  }
  if (d->called_list.empty()) d->called_list.swap(d->called);
  d->called_list.erase(std::remove(d->called_list.begin(), d->called_list.end(), nullptr),
                       d->called_list.end());
  if (d->shape) return;
  if (!op.traits.shape_inferable || op.infer == nullptr) {
    lex_.fail(d->opcode_at, fmt::format("'{}' without result shape", op.name),
              fmt::format("write the shape before the opcode, as in f32[8,4] {}(...)", op.name));
  }
  absl::InlinedVector<Shape, 6> shapes;
  for (const Instr* o : d->operands) shapes.push_back(o->shape);
  try {
    d->shape = op.infer({context_, shapes, Attrs(op.attrs, d->attrs), d->called_list, Shape()});
  } catch (const Error& e) {
    lex_.fail(d->at, e.message(), e.hint());
  }
}

Instr* HloParser::make(Scope& scope, Draft* d, std::string_view name) {
  if (d->wraps_async) make_async_start(d);
  check_draft(d);
  Instr* i = module_->add(scope.computation, d->def->opcode, d->shape, d->operands,
                          Attrs(d->def->attrs, d->attrs));
  i->place = static_cast<int64_t>(d->at) + 1;
  i->called = module_->computation_array(d->called_list);
  i->annotation = d->annotation;
  i->metadata = d->metadata;
  Extras& x = d->extras;
  x.unknown = context_.arena().text(d->unknown);
  if (!d->predecessors.empty()) {
    x.control_predecessors = module_->instr_array(d->predecessors);
  }
  bool any = !x.frontend_attributes.empty() || !x.backend_config.empty() || !x.statistics.empty() ||
             !x.origin.empty() || !x.parameter_replication.empty() || !x.result_accuracy.empty() ||
             !x.unknown.empty() || !x.control_predecessors.empty();
  if (any) i->extras = context_.arena().make<Extras>(x);
  if (name.empty()) {
    scope.unnamed.push_back(i);
    return i;
  }
  i->name = context_.name(name);
  if (!scope.names.emplace(i->name, i).second) {
    lex_.fail(d->at, fmt::format("a second '{}' in '{}'", name, scope.computation->name()),
              "names of instructions are unique in their computation");
  }
  return i;
}

// `s = ((f32[4]), f32[4]) negate-start(x)` is async-start of a computation that negates its
// parameter.
void HloParser::make_async_start(Draft* d) {
  Draft inner;
  inner.at = d->at;
  inner.opcode_at = d->opcode_at;
  inner.def = d->def;
  inner.attrs = d->attrs;
  inner.fields_seen = d->fields_seen;
  inner.called.swap(d->called);
  inner.called_list.swap(d->called_list);
  bool is_start = d->shape && d->shape.is_tuple() && d->shape.elements().size() >= 2;
  if (!is_start) {
    lex_.fail(d->at,
              fmt::format("'{}-start' without a shape ((operands), result, ...)", d->async_of),
              "write it, as in ((f32[4]), f32[4], u32[]) negate-start(x)");
  }
  inner.shape = d->shape.element(1);
  std::unique_ptr<Scope> scope = open_scope(fmt::format("async_{}", d->async_of));
  scope->free_operands = true;
  for (const Instr* o : d->operands) {
    inner.operands.push_back(free_parameter(*scope, "", o->shape, d->at));
  }
  make(*scope, &inner, "");
  Computation* wrapped = scope->computation;
  wrapped->execution_thread = d->async.execution_thread;
  finish(std::move(scope), d->at);
  d->def = &def(Opcode::kAsyncStart);
  d->attrs = context_.arena().make<AsyncAttrs>(d->async);
  d->called.push_back(wrapped);
}

}  // namespace gspmd
