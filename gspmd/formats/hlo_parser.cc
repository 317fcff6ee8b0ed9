#include "gspmd/formats/hlo_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/formats/hlo_text.h"

namespace gspmd {

HloParser::HloParser(std::shared_ptr<Context> context, std::shared_ptr<const SourceText> source,
                     std::vector<std::string>* warnings)
    : shared_context_(std::move(context)),
      context_(*shared_context_),
      source_(std::move(source)),
      warnings_(warnings),
      lex_(source_->text, source_->file) {}

void HloParser::warn(size_t at, std::string_view message) {
  if (warnings_ == nullptr) return;
  warnings_->push_back(fmt::format("{}: warning: {}", lex_.place_text(at), message));
}

std::unique_ptr<Module> HloParser::parse() {
  if (lex_.at_end()) {
    lex_.fail(lex_.position(), "an empty text", "expected an HLO module: 'HloModule NAME ...'");
  }
  module_ = std::make_unique<Module>(shared_context_, "");
  module_->source = source_;
  bool has_header = lex_.try_word("HloModule");
  if (has_header) {
    header();
    stack_tables();
  }
  if (!has_header && !starts_computation()) {
    lone_instruction();
  } else {
    computations();
  }
  finish_module();
  return std::move(module_);
}

void HloParser::computations() {
  do {
    computation();
  } while (!lex_.at_end());
}

// At the start of a text without header: `ENTRY`, `name {` or `name (x: f32[]) -> f32[] {`?
bool HloParser::starts_computation() {
  size_t begin = lex_.position();
  bool result = lex_.try_word("ENTRY");
  lex_.try_take('%');
  if (!result && !lex_.word().empty()) {
    if (lex_.peek('(')) {
      lex_.balanced();
      result = lex_.try_take("->") || lex_.peek('{');
    } else {
      result = lex_.peek('{');
    }
  }
  lex_.seek(begin);
  return result;
}

std::unique_ptr<HloParser::Scope> HloParser::open_scope(std::string_view name) {
  std::unique_ptr<Scope> scope;
  if (spare_scopes_.empty()) {
    scope = std::make_unique<Scope>();
  } else {
    scope = std::move(spare_scopes_.back());
    spare_scopes_.pop_back();
  }
  scope->computation = module_->add_computation(name);
  return scope;
}

void HloParser::computation() {
  size_t at = lex_.position();
  bool is_entry = lex_.try_word("ENTRY");
  if (is_entry && entry_ != nullptr) {
    lex_.fail(at, fmt::format("a second ENTRY; the first is '{}'", entry_->name()),
              "only one computation is the entry");
  }
  size_t name_at = lex_.position();
  std::string_view name = lex_.name("a computation");
  if (by_name_.contains(name)) {
    lex_.fail(name_at, fmt::format("a second computation '{}'", name), "give it another name");
  }
  if (lex_.peek('(')) {  // the heading repeats what the body says
    lex_.balanced();
    lex_.take("->");
    shape();
  }
  std::unique_ptr<Scope> scope = open_scope(name);
  Computation* c = scope->computation;
  body(*scope);
  finish(std::move(scope), name_at);
  by_name_.emplace(c->name(), c);
  if (lex_.try_take(',')) {
    lex_.take("execution_thread");
    lex_.take('=');
    c->execution_thread = context_.name(lex_.string());
  }
  if (is_entry) {
    entry_ = c;
    entry_at_ = name_at;
  }
}

void HloParser::body(Scope& scope) {
  lex_.take('{');
  do {
    instruction(scope);
  } while (!lex_.try_take('}'));
}

Computation* HloParser::inline_computation() {
  DepthGuard guard(this);
  size_t at = lex_.position();
  std::unique_ptr<Scope> scope = open_scope("_");
  Computation* c = scope->computation;
  body(*scope);
  finish(std::move(scope), at);
  return c;
}

void HloParser::finish(std::unique_ptr<Scope> scope, size_t at) {
  Computation* c = scope->computation;
  name_unnamed(*scope);
  c->set_root(scope->root != nullptr ? scope->root : c->instrs().back());
  for (size_t k = 0; k < c->params().size(); ++k) {
    if (c->params()[k] != nullptr) continue;
    lex_.fail(at,
              fmt::format("computation '{}' has a parameter {} but none with number {}", c->name(),
                          c->params().size() - 1, k),
              "number the parameters 0, 1, 2, ... without gaps");
  }
  done_.push_back(c);
  scope->computation = nullptr;
  scope->root = nullptr;
  scope->names.clear();
  scope->unnamed.clear();
  scope->free_operands = false;
  spare_scopes_.push_back(std::move(scope));
}

void HloParser::name_unnamed(Scope& scope) {
  for (Instr* i : scope.unnamed) {
    std::string name = fmt::format("{}.{}", name_of(i->opcode), i->id);
    while (scope.names.contains(name)) name += ".n";
    i->name = context_.name(name);
    scope.names.emplace(i->name, i);
  }
}

void HloParser::lone_instruction() {
  std::unique_ptr<Scope> scope = open_scope("entry");
  scope->free_operands = true;
  size_t at = lex_.position();
  scope->root = instruction(*scope);
  if (!lex_.at_end()) {
    lex_.fail_here("the end of the text",
                   "several instructions form a computation: NAME { ... }, or ENTRY NAME { ... }");
  }
  entry_ = scope->computation;
  finish(std::move(scope), at);
}

void HloParser::finish_module() {
  if (done_.empty()) {
    lex_.fail(lex_.position(), "a module without computations", "expected ENTRY NAME { ... }");
  }
  if (entry_ == nullptr) entry_ = done_.back();
  bool entry_is_last = entry_ == done_.back();
  std::stable_partition(done_.begin(), done_.end(), [&](Computation* c) { return c != entry_; });
  module_->set_computations(done_);
  module_->set_entry(entry_);
  for (const Computation* c : done_) {
    if (entry_is_last) break;
    for (const Instr* i : c->instrs()) {
      if (std::find(i->called.begin(), i->called.end(), entry_) == i->called.end()) continue;
      lex_.fail(static_cast<size_t>(i->place - 1),
                fmt::format("'{}' calls the entry computation '{}'", i->name, entry_->name()),
                "call a computation of its own");
    }
  }
  if (module_->name().empty()) module_->set_name(fmt::format("module_{}", entry_->name()));
  check_entry_layout();
}

// entry_computation_layout may say other layouts than the entry computation, but not other shapes.
void HloParser::check_entry_layout() {
  const ModuleAttrs& a = module_->attrs;
  if (!a.entry_result_layout) return;
  size_t stated = a.entry_parameter_layouts.size(), actual = entry_->params().size();
  const std::string hint = "make entry_computation_layout and the entry computation agree";
  if (stated != actual) {
    lex_.fail(entry_layout_at_,
              fmt::format("entry_computation_layout has {} parameters, but '{}' has {}", stated,
                          entry_->name(), actual),
              hint);
  }
  auto check = [&](Shape layout, Shape shape, const std::string& what) {
    if (same(layout, shape)) return;
    lex_.fail(entry_layout_at_,
              fmt::format("entry_computation_layout says {} for {} of '{}', which is {}",
                          to_string(layout), what, entry_->name(), to_string(shape)),
              hint);
  };
  for (size_t k = 0; k < actual; ++k) {
    check(a.entry_parameter_layouts[k], entry_->params()[k]->shape, fmt::format("parameter {}", k));
  }
  check(a.entry_result_layout, entry_->root()->shape, "the result");
}

std::unique_ptr<Module> parse_hlo(std::shared_ptr<Context> context, std::string text,
                                  std::string file_name, std::vector<std::string>* warnings) {
  auto source = std::make_shared<SourceText>(std::move(file_name), std::move(text));
  return HloParser(std::move(context), std::move(source), warnings).parse();
}

}  // namespace gspmd
