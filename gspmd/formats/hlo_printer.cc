#include "gspmd/formats/hlo_printer.h"
#include "gspmd/ir/frontend_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gspmd {

std::string print_hlo(const Module& module, const PrintOptions& options) {
  HloPrinter printer(options);
  printer.module(module);
  return printer.take();
}

void print_hlo(const Module& module, const PrintOptions& options,
               const std::function<void(std::string_view)>& write) {
  HloPrinter(options, &write).module(module);
}

std::string print_hlo(const Instr& instr, const PrintOptions& options) {
  HloPrinter printer(options);
  printer.instruction(instr);
  return printer.take();
}

void HloPrinter::integer(int64_t n) {
  fmt::format_int text(n);
  out_.append(text.data(), text.size());
}

void HloPrinter::string(std::string_view text) {
  out_.push_back('"');
  append_escaped(&out_, text);
  out_.push_back('"');
}

void HloPrinter::module(const Module& m) {
  header(m);
  if (options_.metadata && !m.stack.empty()) stack_tables(m.stack);
  out_.push_back('\n');
  for (const auto& c : m.computations()) {
    if (c.get() != m.entry()) computation(*c, false);
  }
  computation(*m.entry(), true);
  hand_on(1);
}

void HloPrinter::hand_on(size_t at_least) {
  if (write_ == nullptr || out_.size() < at_least) return;
  (*write_)(out_);
  out_.clear();
}

void HloPrinter::header(const Module& m) {
  const ModuleAttrs& a = m.attrs;
  out_.append("HloModule ").append(m.name());
  if (a.is_scheduled) out_ += ", is_scheduled=true";
  aliases(a);
  if (a.entry_result_layout) entry_layout(a);
  booleans("allow_spmd_sharding_propagation_to_parameters", a.propagate_to_parameters);
  booleans("allow_spmd_sharding_propagation_to_output", a.propagate_to_output);
  if (a.replica_count != 1) out_ += fmt::format(", replica_count={}", a.replica_count);
  if (a.num_partitions != 1) out_ += fmt::format(", num_partitions={}", a.num_partitions);
  if (!a.frontend_attributes.empty()) attribute("frontend_attributes", a.frontend_attributes);
  if (!a.rest.empty()) out_.append(", ").append(a.rest);
  out_.push_back('\n');
}

void HloPrinter::aliases(const ModuleAttrs& a) {
  std::string_view separator = "";
  if (!a.aliases.empty()) out_ += ", input_output_alias={";
  for (const Alias& alias : a.aliases) {
    out_ +=
        fmt::format("{} {{{}}}: ({}, {{{}}}, {})", separator, fmt::join(alias.output_index, ","),
                    alias.parameter, fmt::join(alias.parameter_index, ","),
                    alias.must ? "must-alias" : "may-alias");
    separator = ",";
  }
  if (!a.aliases.empty()) out_ += " }";
  separator = "";
  if (!a.donors.empty()) out_ += ", buffer_donor={";
  for (const Donor& donor : a.donors) {
    out_ += fmt::format("{} ({}, {{{}}})", separator, donor.parameter, fmt::join(donor.index, ","));
    separator = ",";
  }
  if (!a.donors.empty()) out_ += " }";
}

void HloPrinter::entry_layout(const ModuleAttrs& a) {
  out_ += ", entry_computation_layout={(";
  for (size_t k = 0; k < a.entry_parameter_layouts.size(); ++k) {
    if (k > 0) out_ += ", ";
    if (k > 0 && k % 5 == 0) out_ += fmt::format("/*index={}*/", k);
    append_shape(&out_, a.entry_parameter_layouts[k], true);
  }
  out_ += ")->";
  append_shape(&out_, a.entry_result_layout, true);
  out_ += "}";
}

void HloPrinter::booleans(std::string_view name, const std::vector<bool>& values) {
  if (values.empty()) return;
  out_.append(", ").append(name).append("={");
  for (size_t k = 0; k < values.size(); ++k) {
    if (k > 0) out_.push_back(',');
    out_ += values[k] ? "true" : "false";
  }
  out_.push_back('}');
}

void HloPrinter::stack_tables(const StackTables& t) {
  auto names = [&](std::string_view title, const std::vector<std::string_view>& rows) {
    out_.append("\n").append(title).append("\n");
    for (size_t k = 0; k < rows.size(); ++k) {
      integer(static_cast<int64_t>(k) + 1);
      out_.push_back(' ');
      string(rows[k]);
      out_.push_back('\n');
    }
  };
  names("FileNames", t.files);
  names("FunctionNames", t.functions);
  auto out = std::back_inserter(out_);
  out_ += "\nFileLocations\n";
  for (size_t k = 0; k < t.locations.size(); ++k) {
    const FileLocation& l = t.locations[k];
    fmt::format_to(out,
                   "{} {{file_name_id={} function_name_id={} line={} end_line={} column={} "
                   "end_column={}}}\n",
                   k + 1, l.file, l.function, l.line, l.end_line, l.column, l.end_column);
  }
  out_ += "\nStackFrames\n";
  for (size_t k = 0; k < t.frames.size(); ++k) {
    fmt::format_to(out, "{} {{file_location_id={}", k + 1, t.frames[k].location);
    if (t.frames[k].parent != 0) fmt::format_to(out, " parent_frame_id={}", t.frames[k].parent);
    out_ += "}\n";
  }
}

void HloPrinter::computation(const Computation& c, bool is_entry) {
  choose_names(c);
  if (is_entry) out_ += "ENTRY ";
  name(c.name());
  out_ += " {\n";
  for (const Instr* i : c.instrs()) {
    out_ += i == c.root() ? "  ROOT " : "  ";
    instruction(*i);
    out_.push_back('\n');
    hand_on(kPiece);
  }
  out_ += "}";
  if (!c.execution_thread.empty()) {
    out_ += ", execution_thread=";
    string(c.execution_thread);
  }
  out_ += is_entry ? "\n" : "\n\n";
}

// Names for the instructions that have none, and for repeated ones: `add.12`, or `add.12.1` where
// that is taken.
void HloPrinter::choose_names(const Computation& c) {
  made_names_.clear();
  taken_.clear();
  taken_.reserve(c.instrs().size());
  for (const Instr* i : c.instrs()) {
    if (!i->name.empty()) taken_.emplace(i->name, 0);
  }
  for (const Instr* i : c.instrs()) {
    if (!i->name.empty() && taken_.find(i->name)->second++ == 0) continue;
    std::string base =
        i->name.empty() ? fmt::format("{}.{}", name_of(i->opcode), i->id) : std::string(i->name);
    std::string unique = base;
    for (int k = 1; taken_.contains(unique); ++k) unique = fmt::format("{}.{}", base, k);
    std::string_view kept = scratch_.text(unique);
    taken_.emplace(kept, 1);
    made_names_.emplace(i, kept);
  }
}

namespace {

// Words that XLA's lexer does not read as names.
bool is_reserved(std::string_view word) {
  constexpr std::array<std::string_view, 18> kWords = {"true",
                                                       "false",
                                                       "inf",
                                                       "nan",
                                                       "HloModule",
                                                       "ENTRY",
                                                       "ROOT",
                                                       "maximal",
                                                       "replicated",
                                                       "manual",
                                                       "last_tile_dim_replicate",
                                                       "shard_as",
                                                       "shard_like",
                                                       "unknown",
                                                       "unreduced",
                                                       "FileNames",
                                                       "FunctionNames",
                                                       "FileLocations"};
  if (std::find(kWords.begin(), kWords.end(), word) != kWords.end() || word == "StackFrames")
    return true;
  return parse_element_type(word).has_value();
}

}  // namespace

void HloPrinter::name(std::string_view text) {
  bool starts_well =
      !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_');
  bool maybe_reserved = text.size() < 32 && text.find('.') == std::string_view::npos;
  if (!starts_well || (maybe_reserved && is_reserved(text))) out_.push_back('%');
  out_.append(text);
}

void HloPrinter::name_of_instr(const Instr& i) {
  if (!made_names_.empty()) {
    if (auto it = made_names_.find(&i); it != made_names_.end()) return name(it->second);
  }
  if (!i.name.empty()) return name(i.name);
  name(fmt::format("{}.{}", name_of(i.opcode), i.id));
}

void HloPrinter::instruction(const Instr& i) {
  name_of_instr(i);
  out_ += " = ";
  append_shape(&out_, i.shape, true);
  out_.push_back(' ');
  out_.append(name_of(i.opcode));
  operands(i);
  own_attributes(i);
  called(i);
  common_attributes(i);
}

void HloPrinter::operands(const Instr& i) {
  out_.push_back('(');
  if (const auto* c = i.attributes.get_if<ConstantAttrs>()) {
    literal(*c->literal);
  } else if (const auto* p = i.attributes.get_if<ParameterAttrs>()) {
    integer(p->number);
  }
  for (int k = 0; k < i.num_operands(); ++k) {
    if (k > 0) out_ += ", ";
    if (k > 0 && k % 5 == 0) {
      out_ += "/*index=";
      integer(k);
      out_ += "*/";
    }
    name_of_instr(*i.operand(k));
  }
  out_.push_back(')');
}

}  // namespace gspmd
