// The short forms of builtin, func and sdy operations.

#include <fmt/format.h>

#include "gspmd/formats/mlir/text_reader.h"

namespace gspmd::mlir {
namespace {

Attr text_attr(Attr::Kind kind, std::string text) {
  Attr a;
  a.kind = kind;
  a.text = std::move(text);
  return a;
}

void symbol_name(TextReader& r, Op* op) {
  r.cursor().take("@");
  r.set(op, "sym_name", text_attr(Attr::Kind::kString, r.cursor().name_or_string()));
}

void module(TextReader& r, Op* op) {
  op->name = "builtin.module";
  if (r.cursor().peek("@")) symbol_name(r, op);
  if (r.cursor().try_word("attributes")) r.attribute_dict(&op->attrs);
  r.region(op, {});
}

// func.func public @main(%a: T {...}) -> (T {...}) attributes {...} {...}
void function(TextReader& r, Op* op) {
  Cursor& c = r.cursor();
  for (std::string_view v : {"public", "private", "nested"}) {
    if (c.try_word(v)) r.set(op, "sym_visibility", text_attr(Attr::Kind::kString, std::string(v)));
  }
  symbol_name(r, op);
  Attr arg_attrs = text_attr(Attr::Kind::kArray, ""), res_attrs = arg_attrs, types = arg_attrs;
  auto arguments = r.arguments(&arg_attrs.elements);
  const auto result = [&] {
    Attr type = text_attr(Attr::Kind::kType, ""), attrs = text_attr(Attr::Kind::kDict, "");
    type.type = r.type();
    if (c.peek("{")) r.attribute_dict(&attrs.entries);
    types.elements.push_back(std::move(type));
    res_attrs.elements.push_back(std::move(attrs));
  };
  if (c.try_take("->")) {
    if (c.peek("(")) {
      c.list("(", ")", result);
    } else {
      Attr type = text_attr(Attr::Kind::kType, "");
      type.type = r.type();
      types.elements.push_back(std::move(type));
      res_attrs.elements.push_back(text_attr(Attr::Kind::kDict, ""));
    }
  }
  r.set(op, "arg_attrs", std::move(arg_attrs));
  r.set(op, "res_attrs", std::move(res_attrs));
  r.set(op, "result_types", std::move(types));
  if (c.try_word("attributes")) r.attribute_dict(&op->attrs);
  if (!c.peek("{")) c.fail_here("a function without a body", "only whole programs can be read");
  r.region(op, arguments);
}

// call @g(%a, %b) {attrs} : (T) -> T
void call(TextReader& r, Op* op) {
  op->name = "func.call";
  r.cursor().take("@");
  r.set(op, "callee", text_attr(Attr::Kind::kSymbol, r.cursor().name_or_string()));
  r.cursor().take("(");
  r.maybe_operands(op);
  r.cursor().take(")");
  if (r.cursor().peek("{")) r.attribute_dict(&op->attrs);
  r.cursor().take(":");
  r.function_type_tail(op);
}

void terminator(TextReader& r, Op* op) {
  if (op->name == "return") op->name = "func.return";
  r.maybe_operands(op);
  if (r.cursor().peek("{")) r.attribute_dict(&op->attrs);
  if (!op->operands.empty()) {
    r.cursor().take(":");
    do {
      r.type();
    } while (r.cursor().try_take(","));
  }
  r.results({});
}

// name=[...] or name={...} or name=<...>, kept as text.
void keyed_text(TextReader& r, Op* op, std::string_view key, std::string_view open) {
  r.cursor().take_word(key);
  r.cursor().take("=");
  r.set(op, std::string(key),
        text_attr(Attr::Kind::kOpaque, std::string(r.cursor().balanced(open))));
}

void mesh(TextReader& r, Op* op) {
  symbol_name(r, op);
  r.cursor().take("=");
  r.set(op, "mesh",
        text_attr(Attr::Kind::kOpaque, "#sdy.mesh" + std::string(r.cursor().balanced())));
  if (r.cursor().peek("{")) r.attribute_dict(&op->attrs);
}

// (%a) in_shardings=[..] out_shardings=[..] manual_axes={..} (%b: T) {...} : (T) -> T
void computation(TextReader& r, Op* op) {
  Cursor& c = r.cursor();
  if (c.try_take("<")) {  // sdy.named_computation<"name">
    r.set(op, "name", text_attr(Attr::Kind::kString, c.string()));
    c.take(">");
  }
  c.take("(");
  r.maybe_operands(op);
  c.take(")");
  for (std::string_view key : {"in_shardings", "out_shardings"}) {
    if (c.peek_word() == key) keyed_text(r, op, key, "[");
  }
  if (c.peek_word() == "manual_axes") keyed_text(r, op, "manual_axes", "{");
  r.region(op, r.arguments(nullptr));
  if (c.peek("{")) r.attribute_dict(&op->attrs);
  c.take(":");
  r.function_type_tail(op);
}

// The rest of an operation on one value that keeps its type.
void one_value(TextReader& r, Op* op) {
  if (r.cursor().peek("{")) r.attribute_dict(&op->attrs);
  r.type_tail(op);
}

void constraint(TextReader& r, Op* op) {
  r.operand(op);
  r.set(op, "sharding", text_attr(Attr::Kind::kOpaque, std::string(r.cursor().balanced())));
  one_value(r, op);
}

void group(TextReader& r, Op* op) {
  r.operand(op);
  r.cursor().take_word("group_id");
  r.cursor().take("=");
  Attr id = text_attr(Attr::Kind::kInt, "");
  id.integer = r.cursor().integer();
  r.set(op, "group_id", std::move(id));
  one_value(r, op);
  r.results({});
}

void barrier(TextReader& r, Op* op) {
  r.operand(op);
  r.cursor().take_word("allowed_direction");
  r.cursor().take("=");
  r.set(op, "allowed_direction", text_attr(Attr::Kind::kSymbol, std::string(r.cursor().word())));
  one_value(r, op);
}

void data_flow_edge(TextReader& r, Op* op) {
  r.operand(op);
  if (r.cursor().peek_word() == "sharding") keyed_text(r, op, "sharding", "<");
  one_value(r, op);
}

// sdy.all_gather [{"x"}, {}] %0 out_sharding=<@mesh, [{}, {}]> : T. They change where the parts of
// a value are and not the value, so that the sharding says all.
void collective(TextReader& r, Op* op) {
  for (std::string_view open : {"[", "{"}) {
    if (r.cursor().peek(open)) r.cursor().balanced(open);
  }
  r.operand(op);
  keyed_text(r, op, "out_sharding", "<");
  one_value(r, op);
}

struct Form {
  std::string_view name;
  void (*read)(TextReader&, Op*);
};
constexpr Form kForms[] = {
    {"module", module},
    {"builtin.module", module},
    {"func.func", function},
    {"func.call", call},
    {"call", call},
    {"func.return", terminator},
    {"return", terminator},
    {"stablehlo.return", terminator},
    {"sdy.return", terminator},
    {"sdy.mesh", mesh},
    {"sdy.sharding_constraint", constraint},
    {"sdy.reshard", constraint},
    {"sdy.manual_computation", computation},
    {"sdy.named_computation", computation},
    {"sdy.sharding_group", group},
    {"sdy.propagation_barrier", barrier},
    {"sdy.data_flow_edge", data_flow_edge},
    {"sdy.all_gather", collective},
    {"sdy.all_slice", collective},
    {"sdy.all_to_all", collective},
    {"sdy.all_reduce", collective},
    {"sdy.reduce_scatter", collective},
    {"sdy.collective_permute", collective},
};

}  // namespace

bool read_pretty_form(TextReader& reader, Op* op) {
  for (const Form& f : kForms) {
    if (f.name != op->name) continue;
    f.read(reader, op);
    return true;
  }
  return false;
}

}  // namespace gspmd::mlir
