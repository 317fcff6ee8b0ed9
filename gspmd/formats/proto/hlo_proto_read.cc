#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>

#include "gspmd/formats/proto/hlo_proto.h"
#include "gspmd/formats/proto/proto_fields.h"
#include "gspmd/formats/proto/proto_raw.h"
#include "gspmd/formats/proto/proto_shape.h"
#include "gspmd/formats/proto/proto_sharding.h"
#include "gspmd/ir/frontend_attributes.h"

namespace gspmd {
namespace {

using proto::HloComputationProto;
using proto::HloInstructionProto;
using proto::HloModuleProto;

class ProtoReader {
 public:
  ProtoReader(std::shared_ptr<Context> context, const HloModuleProto& from, std::string file_name,
              std::vector<std::string>* warnings)
      : context_(*context),
        from_(from),
        file_name_(std::move(file_name)),
        warnings_(warnings),
        module_(std::make_unique<Module>(std::move(context), from.name())) {}
  std::unique_ptr<Module> read();

 private:
  void header();
  void entry_layout();
  void aliases();
  void stack_tables();
  void computation(const HloComputationProto& from);
  void instruction(const HloInstructionProto& from, Computation* c);
  void check_parameter(const HloInstructionProto& from, const Computation& c);
  void called(const OpDef& op, const HloInstructionProto& from, Instr* i);
  void common(const HloInstructionProto& from, Instr* i);
  const Metadata* metadata(const HloInstructionProto& from);
  Extras extras(const HloInstructionProto& from);
  Instr* instr(int64_t id) const;
  void warn_of_unknown(const HloInstructionProto& from);
  std::string_view keep(const std::string& text) { return context_.arena().text(text); }

  Context& context_;
  const HloModuleProto& from_;
  const std::string file_name_;
  std::vector<std::string>* warnings_;
  std::unique_ptr<Module> module_;
  absl::flat_hash_map<int64_t, Computation*> computations_;
  absl::flat_hash_set<std::string_view> computation_names_;
  absl::flat_hash_map<int64_t, Instr*> instrs_;  // of the computation that is being read
  absl::flat_hash_set<std::string_view> names_;
};

std::string read_frontend(const proto::FrontendAttributes& from) {
  std::vector<FrontendAttribute> list;
  for (const auto& e : from.map()) {
    const std::string& v = e.value();
    list.push_back({e.key(), v, v.size() >= 2 && v.front() == '{' && v.back() == '}'});
  }
  return list.empty() ? "" : write_frontend_attributes(list);
}

std::unique_ptr<Module> ProtoReader::read() {
  header();
  stack_tables();
  for (const HloComputationProto& c : from_.computations()) computation(c);
  auto entry = computations_.find(from_.entry_computation_id());
  if (entry == computations_.end()) {
    throw Error(fmt::format("the entry computation, number {}, does not exist",
                            from_.entry_computation_id()));
  }
  module_->set_entry(entry->second);
  entry_layout();
  return std::move(module_);
}

void ProtoReader::header() {
  ModuleAttrs& a = module_->attrs;
  const proto::HeaderProto& h = from_.gspmd_header();
  a.num_partitions = std::max<int64_t>(h.num_partitions(), 1);
  a.replica_count = std::max<int64_t>(h.replica_count(), 1);
  a.propagate_to_parameters.assign(h.propagate_to_parameters().begin(),
                                   h.propagate_to_parameters().end());
  a.propagate_to_output.assign(h.propagate_to_output().begin(), h.propagate_to_output().end());
  a.rest = h.rest();
  a.is_scheduled = from_.has_schedule();
  a.frontend_attributes = read_frontend(from_.frontend_attributes());
  aliases();
}

void ProtoReader::entry_layout() {
  bool written = !from_.has_gspmd_header() || from_.gspmd_header().has_entry_layout();
  if (!from_.has_host_program_shape() || !written) return;
  ModuleAttrs& a = module_->attrs;
  a.entry_result_layout =
      read_function_shape(context_, from_.host_program_shape(), &a.entry_parameter_layouts);
  const Computation& entry = *module_->entry();
  bool good = a.entry_parameter_layouts.size() == entry.params().size() &&
              same(a.entry_result_layout, entry.root()->shape);
  for (size_t k = 0; good && k < entry.params().size(); ++k) {
    good = same(a.entry_parameter_layouts[k], entry.params()[k]->shape);
  }
  if (!good) throw Error("host_program_shape and the entry computation do not agree");
}

void ProtoReader::aliases() {
  for (const auto& e : from_.input_output_alias().entries()) {
    module_->attrs.aliases.push_back(
        {.output_index = {e.output_shape_index().begin(), e.output_shape_index().end()},
         .parameter = e.parameter_number(),
         .parameter_index = {e.parameter_shape_index().begin(), e.parameter_shape_index().end()},
         .must = e.kind() == 2});
  }
  for (const auto& e : from_.buffer_donor().entries()) {
    module_->attrs.donors.push_back(
        {.parameter = e.parameter_number(),
         .index = {e.parameter_shape_index().begin(), e.parameter_shape_index().end()}});
  }
}

void ProtoReader::stack_tables() {
  StackTables& t = module_->stack;
  const proto::StackFrameIndexProto& from = from_.stack_frame_index();
  for (const std::string& s : from.file_names()) t.files.push_back(context_.name(s));
  for (const std::string& s : from.function_names()) t.functions.push_back(context_.name(s));
  for (const auto& l : from.file_locations()) {
    t.locations.push_back({l.file_name_id(), l.function_name_id(), l.line(), l.end_line(),
                           l.column(), l.end_column()});
  }
  for (const auto& f : from.stack_frames()) {
    bool known = f.parent_frame_id() >= 0 && f.parent_frame_id() < INT32_MAX;
    if (!known) throw Error(fmt::format("a stack frame with parent {}", f.parent_frame_id()));
    t.frames.push_back({f.file_location_id(), f.parent_frame_id() + 1});  // texts count from 2
  }
}

void ProtoReader::computation(const HloComputationProto& from) {
  Computation* c = module_->add_computation(from.name());
  bool fresh = computations_.emplace(from.id(), c).second &&
               computation_names_.insert(from.name()).second && !from.name().empty();
  if (!fresh) {
    throw Error(fmt::format("computation '{}', number {}, stands twice or has no name", from.name(),
                            from.id()));
  }
  if (from.execution_thread() != "main") c->execution_thread = keep(from.execution_thread());
  instrs_.clear();
  names_.clear();
  for (const HloInstructionProto& i : from.instructions()) {
    try {
      instruction(i, c);
    } catch (const Error& e) {
      throw Error(fmt::format("instruction '{}': {}", i.name(), e.message()), e.hint());
    }
  }
  const auto& params = c->params();
  if (std::find(params.begin(), params.end(), nullptr) != params.end()) {
    throw Error(fmt::format("the parameters of '{}' are not numbered 0, 1, 2, ...", from.name()));
  }
  c->set_root(instr(from.root_id()));
}

Instr* ProtoReader::instr(int64_t id) const {
  auto it = instrs_.find(id);
  if (it != instrs_.end()) return it->second;
  throw Error(fmt::format("instruction number {} is not defined above its use", id));
}

void ProtoReader::check_parameter(const HloInstructionProto& from, const Computation& c) {
  int64_t n = from.parameter_number();
  const auto& params = c.params();
  bool taken = n >= 0 && n < static_cast<int64_t>(params.size()) &&
               params[static_cast<size_t>(n)] != nullptr;
  if (n < 0 || taken || n > static_cast<int64_t>(from_.ByteSizeLong())) {
    throw Error(fmt::format("parameter number {}", n),
                "number the parameters 0, 1, 2, ... without gaps");
  }
}

void ProtoReader::instruction(const HloInstructionProto& from, Computation* c) {
  std::optional<Opcode> opcode = parse_opcode(from.opcode());
  if (!opcode) throw Error(fmt::format("'{}' is no opcode", from.opcode()));
  const OpDef& op = def(*opcode);
  Shape shape = read_shape(context_, from.shape());
  std::vector<Instr*> operands;
  std::vector<Shape> shapes;
  for (int64_t id : from.operand_ids()) {
    operands.push_back(instr(id));
    shapes.push_back(operands.back()->shape);
  }
  int n = from.operand_ids_size();
  if (n < op.min_operands || (op.max_operands >= 0 && n > op.max_operands)) {
    throw Error(fmt::format("'{}' has {} operands", op.name, n));
  }
  void* attrs = make_attrs(op.attrs, context_.arena());
  read_fields(context_, op, from, shapes, attrs);
  if (op.attrs == AttrsKind::kConstantAttrs) {
    Literal literal = read_literal(context_, from.literal(), shape);
    static_cast<ConstantAttrs*>(attrs)->literal = context_.arena().make<Literal>(literal);
  } else if (op.attrs == AttrsKind::kParameterAttrs) {
    check_parameter(from, *c);
    static_cast<ParameterAttrs*>(attrs)->number = from.parameter_number();
  }
  Instr* i = module_->add(c, *opcode, shape, operands, Attrs(op.attrs, attrs));
  i->name = context_.name(from.name());
  bool fresh = names_.insert(i->name).second && !i->name.empty();
  if (!fresh || !instrs_.emplace(from.id(), i).second) {
    throw Error(fmt::format("its name or its number {} stands twice", from.id()));
  }
  called(op, from, i);
  common(from, i);
  warn_of_unknown(from);
}

void ProtoReader::warn_of_unknown(const HloInstructionProto& from) {
  constexpr int kStatistics = 82, kOriginalValue = 88;  // say nothing of what is computed
  if (warnings_ == nullptr) return;
  const auto& unknown = from.GetReflection()->GetUnknownFields(from);
  for (int k = 0; k < unknown.field_count(); ++k) {
    int number = unknown.field(k).number();
    if (number == kStatistics || number == kOriginalValue) continue;
    warnings_->push_back(
        fmt::format("{}: warning: field {} of instruction '{}' is unknown and left out", file_name_,
                    number, from.name()));
  }
}

void ProtoReader::called(const OpDef& op, const HloInstructionProto& from, Instr* i) {
  std::vector<Computation*> list;
  for (int64_t id : from.called_computation_ids()) {
    auto it = computations_.find(id);
    if (it == computations_.end() || it->second == i->parent) {
      throw Error(fmt::format("it calls computation number {}, which is not defined above", id));
    }
    list.push_back(it->second);
  }
  if (op.called_list.empty() && list.size() != op.called.size()) {
    throw Error(
        fmt::format("it calls {} computations in place of {}", list.size(), op.called.size()));
  }
  // Texts name a loop's condition first, messages its body.
  if (list.size() == 2 && op.called[0] == "condition") std::swap(list[0], list[1]);
  i->called = module_->computation_array(list);
}

void ProtoReader::common(const HloInstructionProto& from, Instr* i) {
  if (from.has_sharding()) i->annotation = context_.spelling(read_sharding(from.sharding()));
  i->metadata = metadata(from);
  Extras x = extras(from);
  std::vector<Instr*> predecessors;
  for (int64_t id : from.control_predecessor_ids()) predecessors.push_back(instr(id));
  x.control_predecessors = module_->instr_array(predecessors);
  bool any = !x.frontend_attributes.empty() || !x.backend_config.empty() || !x.statistics.empty() ||
             !x.origin.empty() || !x.parameter_replication.empty() || !x.result_accuracy.empty() ||
             !x.unknown.empty() || !predecessors.empty();
  if (any) i->extras = context_.arena().make<Extras>(x);
}

const Metadata* ProtoReader::metadata(const HloInstructionProto& from) {
  const proto::OpMetadata& m = from.metadata();
  const std::string& rest = from.gspmd_verbatim().metadata_rest();
  if (m.ByteSizeLong() == 0 && rest.empty()) return nullptr;
  Metadata out{.op_type = keep(m.op_type()),
               .op_name = keep(m.op_name()),
               .source_file = keep(m.source_file()),
               .source_line = m.source_line(),
               .source_end_line = m.source_end_line(),
               .source_column = m.source_column(),
               .source_end_column = m.source_end_column(),
               .stack_frame_id = m.stack_frame_id(),
               .rest = keep(rest)};
  return context_.arena().make<Metadata>(out);
}

Extras ProtoReader::extras(const HloInstructionProto& from) {
  Extras x;
  x.frontend_attributes = context_.name(read_frontend(from.frontend_attributes()));
  const std::string& config = from.backend_config();
  bool is_json = config.size() >= 2 && config.front() == '{' && config.back() == '}';
  if (!config.empty() && !is_json) {
    std::string quoted = "\"";
    append_escaped(&quoted, config);
    x.backend_config = keep(quoted + "\"");
  } else {
    x.backend_config = keep(config);
  }
  x.result_accuracy = keep(read_result_accuracy(from.result_accuracy()));
  x.parameter_replication = keep(read_parameter_replication(from.parameter_replication()));
  x.statistics = keep(from.gspmd_verbatim().statistics());
  x.origin = keep(from.gspmd_verbatim().origin());
  x.unknown = keep(from.gspmd_verbatim().unknown());
  return x;
}

// The bytes of the first field, where that is a message that starts with a field 1: the module in
// an HloProto, the HloProto in an HloSnapshot. A module's own first field is its name, which starts
// with no line break.
std::optional<std::string_view> wrapped(std::string_view bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  constexpr uint32_t kFirstMessage = 1 << 3 | 2;
  uint32_t size = 0;
  if (in.ReadTag() != kFirstMessage || !in.ReadVarint32(&size)) return {};
  std::string_view inner = bytes.substr(static_cast<size_t>(in.CurrentPosition()));
  if (size > inner.size() || inner.empty() || inner[0] != static_cast<char>(kFirstMessage)) {
    return {};
  }
  return inner.substr(0, size);
}

}  // namespace

std::unique_ptr<Module> parse_hlo_proto(std::shared_ptr<Context> context, std::string bytes,
                                        std::string file_name, std::vector<std::string>* warnings) {
  const std::string kHint = "expected a serialized HloModuleProto, HloProto or HloSnapshot";
  try {
    if (bytes.size() > INT32_MAX) throw Error("a message of more than 2 GiB", kHint);
    std::string_view module = bytes;
    for (int level = 0; level < 2; ++level) module = wrapped(module).value_or(module);
    HloModuleProto message;
    google::protobuf::LogSilencer quiet;  // what is wrong is said once, by us
    bool good = message.ParseFromArray(module.data(), static_cast<int>(module.size()));
    if (!good || message.computations().empty()) throw Error("the bytes are no HLO module", kHint);
    for (auto& c : *message.mutable_computations()) {
      for (auto& i : *c.mutable_instructions()) {  // old dumps have it elsewhere
        if (i.channel_id() == 0) i.set_channel_id(i.all_reduce_id());
      }
    }
    return ProtoReader(std::move(context), message, file_name, warnings).read();
  } catch (Error& e) {
    throw e.at({std::move(file_name), 0, 0});
  }
}

}  // namespace gspmd
