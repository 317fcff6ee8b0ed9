// Operations, regions and values of bytecode.

#include <fmt/format.h>

#include "gspmd/formats/mlir/bytecode_reader.h"

namespace gspmd::mlir {
namespace {

enum Mask : uint8_t {
  kHasAttrs = 0x01,
  kHasResults = 0x02,
  kHasOperands = 0x04,
  kHasSuccessors = 0x08,
  kHasRegions = 0x10,
  kHasUseLists = 0x20,
  kHasProperties = 0x40,
};
constexpr ValueId kUndefined = ~ValueId{0};
constexpr int kIrSection = 4;

}  // namespace

ValueId BytecodeReader::new_value(Bytes* b, uint64_t type_index) {
  program_.types.push_back(type(b, type_index).shape);
  return static_cast<ValueId>(program_.types.size() - 1);
}

void BytecodeReader::define(Bytes* b, Scope* scope, ValueId v) {
  if (scope->next >= scope->numbers.size()) b->fail("more values than the region says");
  scope->numbers[scope->next++] = v;
}

void BytecodeReader::block(Bytes* b, Scope* scope, Region* to, bool has_region) {
  bool has_arguments = false;
  uint64_t n = b->varint_with_flag(&has_arguments);
  if (has_arguments && !has_region) b->fail("arguments outside of a region");
  if (has_arguments) block_arguments(b, scope, to);
  if (n > b->remaining()) b->fail(fmt::format("{} operations do not fit", n));
  for (uint64_t k = 0; k < n; ++k) {
    Op op;
    operation(b, scope, &op);
    if (!is_cast(op)) to->ops.push_back(std::move(op));
  }
}

void BytecodeReader::block_arguments(Bytes* b, Scope* scope, Region* to) {
  size_t n = b->count();
  for (size_t k = 0; k < n; ++k) {
    bool has_location = false;
    ValueId v = new_value(b, b->varint_with_flag(&has_location));
    if (has_location) b->varint();
    to->arguments.push_back(v);
    define(b, scope, v);
  }
  if (b->byte() != 0) skip_use_lists(b, n);
}

// The order in which the uses of values stood in memory: of no interest here.
void BytecodeReader::skip_use_lists(Bytes* b, size_t values) {
  uint64_t n = values == 1 ? 1 : b->varint();
  for (uint64_t k = 0; k < n; ++k) {
    if (values != 1) b->varint();
    bool pairs = false;
    uint64_t length = b->varint_with_flag(&pairs);
    for (uint64_t i = 0; i < length; ++i) b->varint();
  }
}

// Between types of VHLO and builtin types, which are one here.
bool BytecodeReader::is_cast(const Op& op) const {
  return op.name == "builtin.unrealized_conversion_cast";
}

void BytecodeReader::operation(Bytes* b, Scope* scope, Op* op) {
  uint64_t index = b->varint();
  if (index >= op_names_.size()) b->fail(fmt::format("there is no operation {}", index));
  const OpName& name = op_names_[static_cast<size_t>(index)];
  op->name = fmt::format("{}.{}", name.dialect.name, name.name);
  uint8_t mask = b->byte();
  op->location = location(b, b->varint());
  if ((mask & kHasAttrs) != 0) {
    for (const auto& entry : attr_ref(b).entries) op->attrs.push_back(entry);
  }
  if ((mask & kHasProperties) != 0) op_properties(b, name, op);
  std::vector<uint64_t> types((mask & kHasResults) != 0 ? b->count() : 0);
  for (uint64_t& t : types) t = b->varint();
  if ((mask & kHasOperands) != 0) {
    size_t n = b->count();
    for (size_t k = 0; k < n; ++k) {
      uint64_t number = b->varint();
      bool known = number < scope->numbers.size() && scope->numbers[number] != kUndefined;
      if (!known) b->fail(fmt::format("{} uses value {} before it is made", op->name, number));
      op->operands.push_back(scope->numbers[number]);
    }
  }
  if ((mask & kHasSuccessors) != 0) b->fail(op->name + " branches to other blocks");
  if (is_cast(*op)) {
    if (types.size() != 1 || op->operands.size() != 1) b->fail("a cast of several values");
    define(b, scope, op->operands[0]);
  } else {
    for (uint64_t t : types) {
      op->results.push_back(new_value(b, t));
      define(b, scope, op->results.back());
    }
  }
  if ((mask & kHasUseLists) != 0) skip_use_lists(b, types.size());
  if ((mask & kHasRegions) != 0) op_regions(b, scope, op);
  if (op->name == "vhlo.func_v1") finish_function(b, op);
  if (name.dialect.dialect == Dialect::kVhlo) to_stablehlo(op);
}

void BytecodeReader::op_properties(Bytes* b, const OpName& name, Op* op) {
  static constexpr OpForm kModule{"module", "?sym_name,?sym_visibility"};
  uint64_t index = b->varint();
  if (index >= properties_.size()) b->fail(fmt::format("there are no properties {}", index));
  Bytes p = properties_[static_cast<size_t>(index)];
  const OpForm* form = nullptr;
  if (name.dialect.dialect == Dialect::kVhlo) form = vhlo_form(name.name);
  if (name.dialect.dialect == Dialect::kSdy) form = sdy_form(name.name);
  if (op->name == "builtin.module") form = &kModule;
  if (form == nullptr) {
    b->fail(fmt::format("the operation {} is not known", op->name),
            "portable artifacts of StableHLO can be read, as jax.export and PJRT write them");
  }
  std::string_view rest = form->attributes;
  while (!rest.empty()) {
    size_t comma = std::min(rest.find(','), rest.size());
    std::string_view key = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    bool present = true;
    uint64_t attr_index = 0;
    if (key.starts_with('?')) {
      key.remove_prefix(1);
      attr_index = p.varint_with_flag(&present);
    } else {
      attr_index = p.varint();
    }
    if (present) op->attrs.emplace_back(std::string(key), attr(&p, attr_index));
  }
  p.expect_end("the properties of " + op->name);
}

void BytecodeReader::op_regions(Bytes* b, Scope* scope, Op* op) {
  DepthGuard guard(this, *b);
  bool isolated = false;
  uint64_t n = b->varint_with_flag(&isolated);
  if (n > b->remaining()) b->fail(fmt::format("{} regions do not fit", n));
  if (!isolated) {
    for (uint64_t k = 0; k < n; ++k) region(b, scope, &op->regions.emplace_back());
    return;
  }
  int id = 0;
  Bytes inner = section(b, &id);
  if (id != kIrSection) b->fail(fmt::format("a section {} where {} is expected", id, kIrSection));
  Scope own;
  for (uint64_t k = 0; k < n; ++k) region(&inner, &own, &op->regions.emplace_back());
  inner.expect_end("the regions of " + op->name);
}

// Its values are numbered behind all those of the region around it.
void BytecodeReader::region(Bytes* b, Scope* scope, Region* to) {
  uint64_t blocks = b->varint();
  if (blocks == 0) return;
  if (blocks != 1) b->fail("a region of several blocks");
  size_t values = b->count(), base = scope->numbers.size();
  scope->numbers.resize(base + values, kUndefined);
  size_t next = std::exchange(scope->next, base);
  block(b, scope, to, true);
  scope->numbers.resize(base);
  scope->next = next;
}

int32_t BytecodeReader::location(Bytes* b, uint64_t index) {
  const Attr& a = attr(b, index);
  int32_t& known = locations_[static_cast<size_t>(index)];
  if (known != -2) return known;
  known = -1;
  if (a.text.empty() && a.entries.empty()) return known;
  Location l{.name = a.text, .file = "", .line = 0};
  if (!a.entries.empty()) {
    l.file = a.entries[0].first;
    l.line = a.entries[0].second.integer;
  }
  known = static_cast<int32_t>(program_.locations.size());
  program_.locations.push_back(std::move(l));
  return known;
}

// The types of its results stand in the function's type.
void BytecodeReader::finish_function(Bytes* b, Op* op) {
  Attr types;
  types.kind = Attr::Kind::kArray;
  const Attr* of_function = op->attr("function_type");
  size_t index = of_function == nullptr ? 0 : static_cast<size_t>(of_function->integer);
  const Type& t = type(b, index);
  if (of_function == nullptr || !t.is_function) b->fail("a function without a function type");
  for (uint64_t r : t.results) {
    Attr a;
    a.kind = Attr::Kind::kType;
    a.type = type(b, r).shape;
    types.elements.push_back(std::move(a));
  }
  op->attrs.emplace_back("result_types", std::move(types));
}

}  // namespace gspmd::mlir
