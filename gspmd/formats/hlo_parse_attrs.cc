#include <fmt/format.h>

#include <algorithm>

#include "gspmd/formats/hlo_parser.h"

namespace gspmd {
namespace {

enum CommonAttribute : uint32_t {
  kSharding,
  kMetadata,
  kFrontendAttributes,
  kBackendConfig,
  kControlPredecessors,
  kOrigin,
  kParameterReplication,
  kStatistics,
  kResultAccuracy,
  kNumCommon,
};
constexpr std::string_view kCommonNames[] = {"sharding",
                                             "metadata",
                                             "frontend_attributes",
                                             "backend_config",
                                             "control-predecessors",
                                             "origin",
                                             "parameter_replication",
                                             "statistics",
                                             "result_accuracy"};
static_assert(std::size(kCommonNames) == kNumCommon);

}  // namespace

void HloParser::attributes(Scope& scope, Draft* d) {
  while (lex_.try_take(',')) attribute(scope, d);
}

void HloParser::attribute(Scope& scope, Draft* d) {
  size_t at = lex_.position();
  std::string_view name = lex_.word();
  if (name.empty()) lex_.fail_here("an attribute");
  lex_.take('=');
  const OpDef& op = *d->def;
  if (name == "all_reduce_id") name = "channel_id";  // in old dumps
  for (size_t k = 0; k < op.fields.size(); ++k) {
    if (op.fields[k].name != name) continue;
    if (d->fields_seen >> k & 1) lex_.fail(at, fmt::format("a second {}=", name));
    d->fields_seen |= uint64_t{1} << k;
    field(op.fields[k], d->attrs);
    return;
  }
  const Field& thread = def(Opcode::kAsyncStart).fields[0];
  if (d->wraps_async && name == thread.name) return field(thread, &d->async);
  if (common_attribute(scope, d, name, at) || called_attribute(d, name, at)) return;
  if (old_attribute(d, name)) return;
  std::string_view value = lex_.raw_value();
  warn(at, fmt::format("the attribute '{}' of '{}' is unknown and kept as it is", name, op.name));
  if (!d->unknown.empty()) d->unknown += ", ";
  d->unknown += fmt::format("{}={}", name, value);
}

bool HloParser::common_attribute(Scope& scope, Draft* d, std::string_view name, size_t at) {
  uint32_t which = 0;
  while (which < kNumCommon && kCommonNames[which] != name) ++which;
  if (which == kNumCommon) return false;
  if (d->common_seen >> which & 1) lex_.fail(at, fmt::format("a second {}=", name));
  d->common_seen |= 1u << which;
  auto raw = [&] { return context_.arena().text(lex_.raw_value()); };
  switch (which) {
    case kSharding:
      d->annotation = sharding();
      break;
    case kMetadata:
      d->metadata = metadata();
      break;
    case kFrontendAttributes:
      d->extras.frontend_attributes = context_.name(lex_.balanced());
      break;
    case kBackendConfig:
      d->extras.backend_config = raw();
      break;
    case kControlPredecessors:
      control_predecessors(scope, d);
      break;
    case kOrigin:
      d->extras.origin = raw();
      break;
    case kParameterReplication:
      d->extras.parameter_replication = raw();
      break;
    case kStatistics:
      d->extras.statistics = raw();
      break;
    case kResultAccuracy:
      d->extras.result_accuracy = raw();
      break;
  }
  return true;
}

Computation* HloParser::called_computation() {
  if (lex_.peek('{')) return inline_computation();
  size_t at = lex_.position();
  std::string_view name = lex_.name("a computation");
  auto it = by_name_.find(name);
  if (it == by_name_.end()) {
    lex_.fail(at, fmt::format("computation '{}' is not defined", name),
              "a computation must be defined above the instructions that call it");
  }
  return it->second;
}

bool HloParser::called_attribute(Draft* d, std::string_view name, size_t at) {
  const OpDef& op = *d->def;
  if (!op.called_list.empty() && op.called_list == name) {
    if (!d->called_list.empty()) lex_.fail(at, fmt::format("a second {}=", name));
    lex_.list('{', '}', [&] { d->called_list.push_back(called_computation()); });
    return true;
  }
  for (size_t k = 0; k < op.called.size(); ++k) {
    if (op.called[k] != name) continue;
    if (d->called.size() < op.called.size()) d->called.resize(op.called.size());
    if (d->called[k] != nullptr) lex_.fail(at, fmt::format("a second {}=", name));
    d->called[k] = called_computation();
    return true;
  }
  return false;
}

// Spellings of old dumps, and what says nothing.
bool HloParser::old_attribute(Draft* d, std::string_view name) {
  if (name == "mode" || name == "outer_dimension_partitions") {
    lex_.raw_value();
    return true;
  }
  if (name == "opaque") {
    d->extras.backend_config = context_.arena().text(lex_.raw_string());
    return true;
  }
  return false;
}

const ShardingSpelling* HloParser::sharding() {
  size_t begin = lex_.position();
  std::string_view raw = lex_.balanced();
  auto [it, is_new] = shardings_.try_emplace(raw, nullptr);
  if (!is_new) return it->second;
  ShardingSpelling s = spelled([&] {
    size_t position = begin;
    ShardingSpelling read = parse_hlo_sharding(lex_.text(), &position);
    lex_.seek(position);
    return read;
  });
  it->second = context_.spelling(s);
  return it->second;
}

// {op_type="..." op_name="..." source_line=3}, separated by blanks or commas
const Metadata* HloParser::metadata() {
  Metadata m;
  std::string rest;
  lex_.take('{');
  while (!lex_.try_take('}')) {
    size_t at = lex_.position();
    std::string_view key = lex_.word();
    if (key.empty()) lex_.fail_here("'}'");
    lex_.take('=');
    metadata_entry(&m, key, at, &rest);
    lex_.try_take(',');
  }
  m.rest = context_.arena().text(rest);
  return context_.arena().make<Metadata>(m);
}

void HloParser::metadata_entry(Metadata* m, std::string_view key, size_t at, std::string* rest) {
  std::string_view* string = key == "op_name"       ? &m->op_name
                             : key == "op_type"     ? &m->op_type
                             : key == "source_file" ? &m->source_file
                                                    : nullptr;
  if (string != nullptr) {
    *string = text();
    return;
  }
  int32_t* number = key == "stack_frame_id"      ? &m->stack_frame_id
                    : key == "source_line"       ? &m->source_line
                    : key == "source_end_line"   ? &m->source_end_line
                    : key == "source_column"     ? &m->source_column
                    : key == "source_end_column" ? &m->source_end_column
                                                 : nullptr;
  if (number != nullptr) {
    int64_t value = lex_.integer();
    if (value < 0 || value > INT32_MAX)
      lex_.fail(at, fmt::format("{}={} is out of range", key, value));
    *number = static_cast<int32_t>(value);
    return;
  }
  size_t begin = lex_.position();
  char c = lex_.peek();
  if (c == '{' || c == '[') {
    lex_.balanced();
  } else if (c == '"' || c == '\'') {
    lex_.raw_string();
  } else if (lex_.pattern().empty()) {
    lex_.fail_here("a value");
  }
  if (!rest->empty()) *rest += ' ';
  *rest += fmt::format("{}={}", key, lex_.text().substr(begin, lex_.end() - begin));
}

void HloParser::control_predecessors(Scope& scope, Draft* d) {
  lex_.list('{', '}', [&] {
    size_t at = lex_.position();
    d->predecessors.push_back(lookup(scope, lex_.name("an instruction"), at, Shape()));
  });
}

}  // namespace gspmd
