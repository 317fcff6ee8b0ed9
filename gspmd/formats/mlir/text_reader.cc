#include "gspmd/formats/mlir/text_reader.h"

#include <fmt/format.h>

#include "gspmd/formats/mlir/reader.h"

namespace gspmd::mlir {
namespace {
constexpr int kMaxDepth = 200;
}

Program read_text(Context& context, std::string text, std::string file_name) {
  auto source = std::make_shared<const SourceText>(std::move(file_name), std::move(text));
  return TextReader(context, source).run();
}

void TextReader::enter() {
  if (++depth_ > kMaxDepth) cursor_.fail_here(fmt::format("nested more than {} deep", kMaxDepth));
}

Program TextReader::run() {
  program_.source = cursor_.source();
  find_aliases();
  program_.module.name = "builtin.module";
  program_.module.regions.emplace_back();
  top_level();
  return std::move(program_);
}

// Lines `#name = ...` and `!name = ...`.
void TextReader::find_aliases() {
  std::string_view text = cursor_.text();
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.starts_with('#') || line.starts_with('!')) {
      size_t equals = line.find(" = ");
      if (equals != std::string_view::npos)
        aliases_[std::string(line.substr(0, equals))] = at + equals + 3;
    }
    at = end + 1;
  }
}

void TextReader::skip_alias() {
  bool of_type = cursor_.try_take("!");
  if (!of_type) cursor_.take("#");
  cursor_.name_or_string();
  cursor_.take("=");
  if (of_type) {
    type();
  } else {
    attribute();
  }
}

// One module, or the operations of one.
void TextReader::top_level() {
  Region& body = program_.module.regions[0];
  while (!cursor_.at_end()) {
    if (cursor_.peek("#") || cursor_.peek("!")) {
      skip_alias();
    } else if (cursor_.peek("{-#")) {
      resources();
    } else {
      Op op = operation();
      if (op.name == "builtin.module" && body.ops.empty()) {
        program_.module = std::move(op);
      } else {
        program_.module.regions[0].ops.push_back(std::move(op));
      }
    }
  }
}

std::string TextReader::value_name() {
  cursor_.take("%");
  return cursor_.name_or_string();
}

ValueId TextReader::define(const std::string& name, Shape type) {
  ValueId v = static_cast<ValueId>(program_.types.size());
  program_.types.push_back(type);
  bind(name, {v, 1});
  return v;
}

void TextReader::bind(const std::string& name, Bound to) {
  Bound& now = values_.try_emplace(name, 0, 0).first->second;
  shadowed_.emplace_back(name, now);
  now = to;
}

// %name or %name#2.
ValueId TextReader::value(size_t at, const std::string& name) {
  int64_t number = cursor_.end() < cursor_.text().size() && cursor_.text()[cursor_.end()] == '#' &&
                           cursor_.try_take("#")
                       ? cursor_.integer()
                       : 0;
  auto known = values_.find(name);
  if (known == values_.end() || known->second.second == 0)
    cursor_.fail(at, fmt::format("%{} is not defined here", name));
  if (number < 0 || number >= known->second.second) {
    cursor_.fail(at, fmt::format("%{} has {} results", name, known->second.second));
  }
  return known->second.first + static_cast<ValueId>(number);
}

ValueId TextReader::operand(Op* op) {
  size_t at = cursor_.position();
  std::string name = value_name();
  op->operands.push_back(value(at, name));
  return op->operands.back();
}

void TextReader::operands(Op* op) {
  do {
    operand(op);
  } while (cursor_.try_take(","));
}

void TextReader::maybe_operands(Op* op) {
  if (cursor_.peek("%")) operands(op);
}

void TextReader::function_type_tail(Op*) {
  cursor_.take("(");
  types_until(")");
  cursor_.take("->");
  if (cursor_.try_take("(")) {
    results(types_until(")"));
  } else {
    results({type()});
  }
}

void TextReader::type_tail(Op* op) {
  cursor_.take(":");
  if (cursor_.peek("(")) return function_type_tail(op);
  std::vector<Shape> types{type()};
  while (cursor_.try_take(",")) types.push_back(type());
  results(types);
}

std::vector<std::pair<std::string, Shape>> TextReader::arguments(std::vector<Attr>* attrs) {
  std::vector<std::pair<std::string, Shape>> out;
  cursor_.list("(", ")", [&] {
    std::string name = value_name();
    cursor_.take(":");
    out.emplace_back(std::move(name), type());
    Attr a;
    a.kind = Attr::Kind::kDict;
    if (cursor_.peek("{")) attribute_dict(&a.entries);
    if (attrs != nullptr) attrs->push_back(std::move(a));
    maybe_location(nullptr);
  });
  return out;
}

void TextReader::region(Op* op, const std::vector<std::pair<std::string, Shape>>& given) {
  DepthGuard guard(this);
  size_t outer = shadowed_.size();  // names inside end with the region
  std::vector<Shape> types = result_types_;
  Region r;
  for (const auto& [name, type] : given) r.arguments.push_back(define(name, type));
  cursor_.take("{");
  if (cursor_.peek("^")) {
    cursor_.take("^");
    cursor_.name_or_string();
    if (cursor_.peek("(")) {
      for (const auto& [name, type] : arguments(nullptr)) r.arguments.push_back(define(name, type));
    }
    cursor_.take(":");
  }
  while (!cursor_.try_take("}")) {
    if (cursor_.at_end()) cursor_.fail_here("the region is not closed", "a '}' is missing");
    if (cursor_.peek("^")) cursor_.fail_here("regions of several blocks are not supported");
    r.ops.push_back(operation());
  }
  for (; shadowed_.size() > outer; shadowed_.pop_back())
    values_[shadowed_.back().first] = shadowed_.back().second;
  result_types_ = std::move(types);
  op->regions.push_back(std::move(r));
}

// %a, %b:2 = "dialect.op"(...) or dialect.op ...
Op TextReader::operation() {
  DepthGuard guard(this);
  std::vector<std::pair<std::string, int64_t>> names;
  if (cursor_.peek("%")) {
    do {
      std::string name = value_name();
      int64_t n = cursor_.try_take(":") ? cursor_.integer() : 1;
      names.emplace_back(std::move(name), n);
    } while (cursor_.try_take(","));
    cursor_.take("=");
  }
  Op op;
  op.place = cursor_.position() + 1;
  result_types_.clear();
  if (cursor_.peek("\"")) {
    op.name = cursor_.string();
    generic_form(&op);
  } else {
    op.name = std::string(cursor_.word());
    pretty_form(&op);
  }
  define_results(&op, names);
  maybe_location(&op);
  for (Region& r : op.regions) {  // `applies stablehlo.add` stands where the reduction does
    for (Op& inner : r.ops) {
      if (inner.place == op.place) inner.location = op.location;
    }
  }
  return op;
}

void TextReader::generic_form(Op* op) {
  cursor_.take("(");
  if (!cursor_.try_take(")")) {
    operands(op);
    cursor_.take(")");
  }
  if (cursor_.try_take("<{")) {
    cursor_.seek(cursor_.end() - 1);
    attribute_dict(&op->attrs);
    cursor_.take(">");
  }
  if (cursor_.try_take("(")) {
    do {
      region(op, {});
    } while (cursor_.try_take(","));
    cursor_.take(")");
  }
  if (cursor_.peek("{")) attribute_dict(&op->attrs);
  cursor_.take(":");
  function_type_tail(op);
}

void TextReader::pretty_form(Op* op) {
  size_t at = op->place - 1;
  if (op->name.empty()) {
    cursor_.fail(at, fmt::format("expected an operation, not {}", cursor_.found()));
  }
  if (!read_pretty_form(*this, op) && !read_stablehlo_form(*this, op)) {
    cursor_.fail(at, fmt::format("the operation {} has no short form that is known here", op->name),
                 "print the program with generic operation forms");
  }
}

void TextReader::define_results(Op* op, const std::vector<std::pair<std::string, int64_t>>& names) {
  size_t at = op->place - 1;
  int64_t declared = 0;
  for (const auto& [name, n] : names) {
    if (n < 1 || n > static_cast<int64_t>(result_types_.size())) declared = -1;
    if (declared >= 0) declared += n;
  }
  size_t wanted = names.empty() ? result_types_.size() : static_cast<size_t>(declared);
  if (declared < 0 || wanted != result_types_.size()) {
    cursor_.fail(at, fmt::format("{} has {} results", op->name, result_types_.size()));
  }
  ValueId next = static_cast<ValueId>(program_.types.size());
  for (Shape s : result_types_) {
    op->results.push_back(static_cast<ValueId>(program_.types.size()));
    program_.types.push_back(s);
  }
  for (const auto& [name, n] : names) {
    bind(name, {next, n});
    next += static_cast<ValueId>(n);
  }
}

}  // namespace gspmd::mlir
