#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include "gspmd/formats/proto/hlo_proto.h"
#include "gspmd/formats/proto/proto_fields.h"
#include "gspmd/formats/proto/proto_raw.h"
#include "gspmd/formats/proto/proto_shape.h"
#include "gspmd/formats/proto/proto_sharding.h"
#include "gspmd/ir/frontend_attributes.h"

namespace gspmd {
namespace {

using proto::HloInstructionProto;
using proto::HloModuleProto;

class ProtoWriter {
 public:
  ProtoWriter(const Module& module, const ProtoOptions& options)
      : module_(module), options_(options) {}
  HloModuleProto write();

 private:
  void header();
  void aliases();
  void stack_tables();
  void schedule();
  void computation(const Computation& c);
  void instruction(const Instr& i, HloInstructionProto* to);
  void common(const Instr& i, HloInstructionProto* to);
  void extras(const Extras& x, HloInstructionProto* to);
  void metadata(const Metadata& m, HloInstructionProto* to);
  std::string unique_name(const Instr& i);

  const Module& module_;
  const ProtoOptions& options_;
  HloModuleProto out_;
  absl::flat_hash_map<const Computation*, int64_t> computation_ids_;
  InstrTable<int64_t> ids_;
  absl::flat_hash_set<std::string> names_;
};

void write_frontend(std::string_view raw, proto::FrontendAttributes* to) {
  for (const FrontendAttribute& a : read_frontend_attributes(raw)) {
    auto* entry = to->add_map();
    entry->set_key(a.name);
    entry->set_value(a.value);
  }
}

void write_program_shape(const Computation& c, proto::ProgramShapeProto* to) {
  for (const Instr* p : c.params()) {
    write_shape(p->shape, to->add_parameters());
    to->add_parameter_names(std::string(p->name));
  }
  write_shape(c.root()->shape, to->mutable_result());
}

HloModuleProto ProtoWriter::write() {
  int64_t next = 1;
  for (const auto& c : module_.computations()) {
    int64_t id = next++;
    computation_ids_[c.get()] = id;
    int64_t local = 0;
    for (const Instr* i : c->instrs()) ids_.set(*i, id << 32 | local++);
  }
  header();
  aliases();
  if (options_.metadata && !module_.stack.empty()) stack_tables();
  for (const auto& c : module_.computations()) computation(*c);
  if (module_.attrs.is_scheduled) schedule();
  return std::move(out_);
}

void ProtoWriter::header() {
  const ModuleAttrs& a = module_.attrs;
  const Computation& entry = *module_.entry();
  out_.set_name(std::string(module_.name()));
  out_.set_entry_computation_name(std::string(entry.name()));
  out_.set_entry_computation_id(computation_ids_.at(&entry));
  write_program_shape(entry, out_.mutable_host_program_shape());
  if (a.entry_result_layout) {
    auto* shape = out_.mutable_host_program_shape();
    for (size_t k = 0; k < a.entry_parameter_layouts.size(); ++k) {
      shape->mutable_parameters(static_cast<int>(k))->Clear();
      write_shape(a.entry_parameter_layouts[k], shape->mutable_parameters(static_cast<int>(k)));
    }
    shape->mutable_result()->Clear();
    write_shape(a.entry_result_layout, shape->mutable_result());
  }
  if (!a.frontend_attributes.empty()) {
    write_frontend(a.frontend_attributes, out_.mutable_frontend_attributes());
  }
  auto* h = out_.mutable_gspmd_header();
  h->set_num_partitions(a.num_partitions);
  h->set_replica_count(a.replica_count);
  for (bool b : a.propagate_to_parameters) h->add_propagate_to_parameters(b);
  for (bool b : a.propagate_to_output) h->add_propagate_to_output(b);
  h->set_rest(a.rest);
  h->set_has_entry_layout(static_cast<bool>(a.entry_result_layout));
}

void ProtoWriter::aliases() {
  for (const Alias& a : module_.attrs.aliases) {
    auto* e = out_.mutable_input_output_alias()->add_entries();
    e->mutable_output_shape_index()->Add(a.output_index.begin(), a.output_index.end());
    e->set_parameter_number(a.parameter);
    e->mutable_parameter_shape_index()->Add(a.parameter_index.begin(), a.parameter_index.end());
    e->set_kind(a.must ? 2 : 1);
  }
  for (const Donor& d : module_.attrs.donors) {
    auto* e = out_.mutable_buffer_donor()->add_entries();
    e->set_parameter_number(d.parameter);
    e->mutable_parameter_shape_index()->Add(d.index.begin(), d.index.end());
  }
}

void ProtoWriter::stack_tables() {
  auto* to = out_.mutable_stack_frame_index();
  const StackTables& t = module_.stack;
  for (std::string_view s : t.files) to->add_file_names(std::string(s));
  for (std::string_view s : t.functions) to->add_function_names(std::string(s));
  for (const FileLocation& l : t.locations) {
    auto* row = to->add_file_locations();
    row->set_file_name_id(l.file);
    row->set_function_name_id(l.function);
    row->set_line(l.line);
    row->set_column(l.column);
    row->set_end_line(l.end_line);
    row->set_end_column(l.end_column);
  }
  for (const StackFrame& f : t.frames) {
    auto* row = to->add_stack_frames();
    row->set_file_location_id(f.location);
    row->set_parent_frame_id(std::max(f.parent - 1, 0));  // texts count parents from 2
  }
}

void ProtoWriter::schedule() {
  for (const auto& c : module_.computations()) {
    auto* entry = out_.mutable_schedule()->add_sequences();
    entry->set_key(computation_ids_.at(c.get()));
    for (const Instr* i : c->instrs()) entry->mutable_value()->add_instruction_ids(ids_.get(*i));
  }
}

void ProtoWriter::computation(const Computation& c) {
  auto* to = out_.add_computations();
  to->set_name(std::string(c.name()));
  to->set_id(computation_ids_.at(&c));
  to->set_root_id(ids_.get(*c.root()));
  to->set_execution_thread(c.execution_thread.empty() ? "main" : std::string(c.execution_thread));
  write_program_shape(c, to->mutable_program_shape());
  for (const Instr* i : c.instrs()) {
    try {
      instruction(*i, to->add_instructions());
    } catch (const Error& e) {
      throw error_at(module_, *i, fmt::format("{}: {}", i->name, e.message()), e.hint());
    }
  }
}

// Unique in the whole module, as XLA wants it.
std::string ProtoWriter::unique_name(const Instr& i) {
  std::string base =
      i.name.empty() ? fmt::format("{}.{}", name_of(i.opcode), i.id) : std::string(i.name);
  std::string name = base;
  for (int k = 1; !names_.insert(name).second; ++k) name = fmt::format("{}.clone.{}", base, k);
  return name;
}

void ProtoWriter::instruction(const Instr& i, HloInstructionProto* to) {
  to->set_name(unique_name(i));
  to->set_opcode(std::string(name_of(i.opcode)));
  to->set_id(ids_.get(i));
  write_shape(i.shape, to->mutable_shape());
  for (const Instr* o : i.operands) to->add_operand_ids(ids_.get(*o));
  for (const Computation* c : i.called) to->add_called_computation_ids(computation_ids_.at(c));
  // Texts name a loop's condition first, messages its body.
  if (def(i).called.size() == 2 && def(i).called[0] == "condition") {
    to->mutable_called_computation_ids()->SwapElements(0, 1);
  }
  if (const auto* c = i.attributes.get_if<ConstantAttrs>()) {
    write_literal(*c->literal, to->mutable_literal());
  } else if (const auto* p = i.attributes.get_if<ParameterAttrs>()) {
    to->set_parameter_number(p->number);
  }
  write_fields(module_.context(), i, options_.mesh_groups, to);
  common(i, to);
}

void ProtoWriter::common(const Instr& i, HloInstructionProto* to) {
  if (i.annotation != nullptr && options_.shardings) {
    write_sharding(*i.annotation, to->mutable_sharding());
  }
  to->mutable_metadata();
  if (i.metadata != nullptr && options_.metadata) metadata(*i.metadata, to);
  if (i.extras != nullptr) extras(*i.extras, to);
}

void ProtoWriter::extras(const Extras& x, HloInstructionProto* to) {
  if (!x.frontend_attributes.empty()) {
    write_frontend(x.frontend_attributes, to->mutable_frontend_attributes());
  }
  std::string_view config = x.backend_config;
  bool quoted = config.size() >= 2 && config.front() == '"';
  to->set_backend_config(quoted ? unescape(config.substr(1, config.size() - 2))
                                : std::string(config));
  for (const Instr* p : x.control_predecessors) to->add_control_predecessor_ids(ids_.get(*p));
  if (!x.result_accuracy.empty()) {
    write_result_accuracy(x.result_accuracy, to->mutable_result_accuracy());
  }
  if (!x.parameter_replication.empty()) {
    write_parameter_replication(x.parameter_replication, to->mutable_parameter_replication());
  }
  if (x.statistics.empty() && x.origin.empty() && x.unknown.empty()) return;
  auto* verbatim = to->mutable_gspmd_verbatim();
  verbatim->set_statistics(std::string(x.statistics));
  verbatim->set_origin(std::string(x.origin));
  verbatim->set_unknown(std::string(x.unknown));
}

void ProtoWriter::metadata(const Metadata& m, HloInstructionProto* to) {
  auto* out = to->mutable_metadata();
  out->set_op_type(std::string(m.op_type));
  out->set_op_name(std::string(m.op_name));
  out->set_source_file(std::string(m.source_file));
  out->set_source_line(m.source_line);
  out->set_source_end_line(m.source_end_line);
  out->set_source_column(m.source_column);
  out->set_source_end_column(m.source_end_column);
  out->set_stack_frame_id(m.stack_frame_id);
  if (!m.rest.empty()) to->mutable_gspmd_verbatim()->set_metadata_rest(std::string(m.rest));
}

}  // namespace

std::string print_hlo_proto(const Module& module, const ProtoOptions& options) {
  HloModuleProto message = ProtoWriter(module, options).write();
  if (message.ByteSizeLong() > INT32_MAX) {
    throw Error(fmt::format("the module takes {} bytes, and a message at most 2 GiB",
                            message.ByteSizeLong()),
                "write it as text");
  }
  return message.SerializeAsString();
}

}  // namespace gspmd
