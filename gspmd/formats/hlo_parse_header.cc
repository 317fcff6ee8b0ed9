#include <fmt/format.h>

#include "gspmd/formats/hlo_parser.h"

namespace gspmd {

void HloParser::header() {
  module_->set_name(lex_.name("the module's name"));
  while (lex_.try_take(',')) header_attribute();
}

void HloParser::header_attribute() {
  ModuleAttrs& a = module_->attrs;
  size_t at = lex_.position();
  std::string_view name = lex_.word();
  if (name.empty()) lex_.fail_here("an attribute of the module");
  lex_.take('=');
  if (name == "is_scheduled") {
    a.is_scheduled = lex_.boolean();
  } else if (name == "input_output_alias") {
    aliases();
  } else if (name == "buffer_donor") {
    donors();
  } else if (name == "entry_computation_layout") {
    entry_layout_at_ = at;
    entry_layout();
  } else if (name == "allow_spmd_sharding_propagation_to_parameters") {
    a.propagate_to_parameters = booleans();
  } else if (name == "allow_spmd_sharding_propagation_to_output") {
    a.propagate_to_output = booleans();
  } else if (name == "replica_count") {
    a.replica_count = lex_.integer();
  } else if (name == "num_partitions") {
    a.num_partitions = lex_.integer();
  } else if (name == "frontend_attributes") {
    a.frontend_attributes = std::string(lex_.balanced());
  } else {
    std::string_view value = lex_.raw_value();
    bool known = name == "alias_passthrough_params" || name == "origin_recovery_table" ||
                 name == "debug_attributes";
    if (!known)
      warn(at, fmt::format("the module's attribute '{}' is unknown and kept as it is", name));
    if (!a.rest.empty()) a.rest += ", ";
    a.rest += fmt::format("{}={}", name, value);
  }
  bool counts_devices = name == "replica_count" || name == "num_partitions";
  if (counts_devices && (a.replica_count < 1 || a.num_partitions < 1)) {
    lex_.fail(at, fmt::format("{} must be at least 1", name));
  }
}

// {(f32[4]{0}, ...)->f32[4]{0}}
void HloParser::entry_layout() {
  ModuleAttrs& a = module_->attrs;
  lex_.take('{');
  a.entry_parameter_layouts.clear();
  lex_.list('(', ')', [&] { a.entry_parameter_layouts.push_back(shape()); });
  lex_.take("->");
  a.entry_result_layout = shape();
  lex_.take('}');
}

std::vector<int64_t> HloParser::index_list() {
  std::vector<int64_t> index;
  lex_.list('{', '}', [&] { index.push_back(lex_.integer()); });
  return index;
}

// { {0}: (0, {}, may-alias), {1}: (2, {0}) }
void HloParser::aliases() {
  module_->attrs.aliases.clear();
  lex_.list('{', '}', [&] {
    Alias alias;
    alias.output_index = index_list();
    lex_.take(':');
    lex_.take('(');
    alias.parameter = lex_.integer();
    lex_.take(',');
    alias.parameter_index = index_list();
    if (lex_.try_take(',')) {
      size_t at = lex_.position();
      std::string_view kind = lex_.word();
      alias.must = kind == "must-alias";
      if (!alias.must && kind != "may-alias") {
        lex_.seek(at);
        lex_.fail_here("may-alias or must-alias");
      }
    }
    lex_.take(')');
    module_->attrs.aliases.push_back(std::move(alias));
  });
}

// { (0, {}), (1, {0}) }
void HloParser::donors() {
  module_->attrs.donors.clear();
  lex_.list('{', '}', [&] {
    Donor donor;
    lex_.take('(');
    donor.parameter = lex_.integer();
    lex_.take(',');
    donor.index = index_list();
    lex_.take(')');
    module_->attrs.donors.push_back(std::move(donor));
  });
}

// {true,false}, or a single true
std::vector<bool> HloParser::booleans() {
  std::vector<bool> out;
  if (!lex_.peek('{')) return {lex_.boolean()};
  lex_.list('{', '}', [&] { out.push_back(lex_.boolean()); });
  return out;
}

namespace {

// Rows of a table: a number, counting from 1, then f().
template <typename F>
void numbered_rows(HloLexer* lex, F f) {
  for (int64_t next = 1; lex->peek() >= '0' && lex->peek() <= '9'; ++next) {
    size_t at = lex->position();
    int64_t number = lex->integer();
    if (number != next) {
      lex->fail(at, fmt::format("row {} of a table stands in place of row {}", number, next),
                "the rows of these tables count 1, 2, 3, ...");
    }
    f();
  }
}

// {line=3 column=1}: g(key, value) for each entry.
template <typename G>
void numbered_entries(HloLexer* lex, G g) {
  lex->take('{');
  while (!lex->try_take('}')) {
    size_t at = lex->position();
    std::string_view key = lex->word();
    if (key.empty()) lex->fail_here("'}'");
    lex->take('=');
    size_t value_at = lex->position();
    int64_t value = lex->integer();
    if (value < 0 || value > INT32_MAX)
      lex->fail(value_at, fmt::format("{} is out of range", value));
    if (!g(key, static_cast<int32_t>(value))) {
      lex->fail(at, fmt::format("'{}' is no entry of this table", key));
    }
    lex->try_take(',');
  }
}

}  // namespace

void HloParser::stack_tables() {
  StackTables& t = module_->stack;
  while (true) {
    size_t at = lex_.position();
    std::string_view word = lex_.word();
    if (word == "FileNames") {
      numbered_rows(&lex_, [&] { t.files.push_back(context_.name(lex_.string())); });
    } else if (word == "FunctionNames") {
      numbered_rows(&lex_, [&] { t.functions.push_back(context_.name(lex_.string())); });
    } else if (word == "FileLocations") {
      file_locations();
    } else if (word == "StackFrames") {
      stack_frames();
    } else {
      lex_.seek(at);
      return;
    }
  }
}

void HloParser::file_locations() {
  numbered_rows(&lex_, [&] {
    FileLocation l;
    numbered_entries(&lex_, [&](std::string_view key, int32_t value) {
      int32_t* to = key == "file_name_id"       ? &l.file
                    : key == "function_name_id" ? &l.function
                    : key == "line"             ? &l.line
                    : key == "end_line"         ? &l.end_line
                    : key == "column"           ? &l.column
                    : key == "end_column"       ? &l.end_column
                                                : nullptr;
      if (to != nullptr) *to = value;
      return to != nullptr;
    });
    module_->stack.locations.push_back(l);
  });
}

void HloParser::stack_frames() {
  numbered_rows(&lex_, [&] {
    StackFrame f;
    numbered_entries(&lex_, [&](std::string_view key, int32_t value) {
      int32_t* to = key == "file_location_id"  ? &f.location
                    : key == "parent_frame_id" ? &f.parent
                                               : nullptr;
      if (to != nullptr) *to = value;
      return to != nullptr;
    });
    module_->stack.frames.push_back(f);
  });
}

}  // namespace gspmd
