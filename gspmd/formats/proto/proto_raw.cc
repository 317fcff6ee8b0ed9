#include "gspmd/formats/proto/proto_raw.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gspmd/formats/hlo_lexer.h"
#include "gspmd/formats/proto/proto_shape.h"
#include "gspmd/formats/proto/proto_sharding.h"

namespace gspmd {
namespace {

using google::protobuf::FieldDescriptor;
using proto::HloInstructionProto;

// One of the place's words, or any where the message has a string.
std::string read_word(Context&, const ProtoPlace& place, const HloInstructionProto& from) {
  ProtoField p = field_for_reading(from, place);
  if (p.message == nullptr) return "";
  if (p.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return p.access().GetString(*p.message, p.field);
  }
  int64_t k = p.access().GetInt64(*p.message, p.field);
  if (k >= 0 && k < static_cast<int64_t>(place.names.size())) {
    return std::string(place.names[static_cast<size_t>(k)]);
  }
  throw Error(fmt::format("{} number {} is unknown", place.field, k));
}

int64_t number_of(const ProtoPlace& place, std::string_view word) {
  for (size_t k = 0; k < place.names.size(); ++k) {
    if (place.names[k] == word) return static_cast<int64_t>(k);
  }
  throw Error(fmt::format("{}={} has no message", place.field, word));
}

void write_word(Context&, const ProtoPlace& place, std::string_view raw, HloInstructionProto* to) {
  ProtoField p = field_for_writing(to, place);
  if (p.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    p.access().SetString(p.message, p.field, std::string(raw));
  } else {
    p.access().SetInt64(p.message, p.field, number_of(place, raw));
  }
}

// {highest,default}
std::string read_precision(Context&, const ProtoPlace& place, const HloInstructionProto& from) {
  std::string text;
  bool usual = true;
  for (int64_t k : from.precision_config().operand_precision()) {
    if (k < 0 || k >= static_cast<int64_t>(place.names.size())) {
      throw Error(fmt::format("precision number {} is unknown", k));
    }
    usual = usual && k == 0;
    text += fmt::format("{}{}", text.empty() ? "" : ",", place.names[static_cast<size_t>(k)]);
  }
  return usual ? "" : "{" + text + "}";
}

void write_precision(Context&, const ProtoPlace& place, std::string_view raw,
                     HloInstructionProto* to) {
  HloLexer lex(raw, place.field);
  lex.list('{', '}', [&] {
    to->mutable_precision_config()->add_operand_precision(number_of(place, lex.word()));
  });
}

// {{0}: (1, {}), {}: (0, {2})}
std::string read_aliasing(Context&, const ProtoPlace&, const HloInstructionProto& from) {
  std::string text;
  for (const auto& a : from.output_operand_aliasing()) {
    text += fmt::format("{}{{{}}}: ({}, {{{}}})", text.empty() ? "" : ", ",
                        fmt::join(a.output_shape_index(), ","), a.operand_index(),
                        fmt::join(a.operand_shape_index(), ","));
  }
  return text.empty() ? "" : "{" + text + "}";
}

void write_aliasing(Context&, const ProtoPlace& place, std::string_view raw,
                    HloInstructionProto* to) {
  HloLexer lex(raw, place.field);
  lex.list('{', '}', [&] {
    auto* a = to->add_output_operand_aliasing();
    lex.list('{', '}', [&] { a->add_output_shape_index(lex.integer()); });
    lex.take(':');
    lex.take('(');
    a->set_operand_index(lex.integer());
    lex.take(',');
    lex.list('{', '}', [&] { a->add_operand_shape_index(lex.integer()); });
    lex.take(')');
  });
}

// {f32[2]{0}, s32[]}
std::string read_layouts(Context& context, const ProtoPlace&, const HloInstructionProto& from) {
  if (!from.constrain_layout()) return "";
  std::string text;
  for (const auto& shape : from.operand_shapes_with_layout()) {
    if (!text.empty()) text += ", ";
    append_shape(&text, read_shape(context, shape), true);
  }
  return "{" + text + "}";
}

void write_layouts(Context& context, const ProtoPlace&, std::string_view raw,
                   HloInstructionProto* to) {
  to->set_constrain_layout(true);
  std::string tuple = fmt::format("({})", raw.substr(1, raw.size() - 2));
  for (Shape s : shape_of_text(context, tuple).elements()) {
    write_shape(s, to->add_operand_shapes_with_layout());
  }
}

std::string read_literal_text(Context& context, const ProtoPlace&,
                              const HloInstructionProto& from) {
  if (!from.has_literal()) return "";
  Shape shape = read_shape(context, from.literal().shape());
  return text_of_literal(context, read_literal(context, from.literal(), shape));
}

void write_literal_text(Context& context, const ProtoPlace&, std::string_view raw,
                        HloInstructionProto* to) {
  write_literal(*literal_of_text(context, raw), to->mutable_literal());
}

// {kind="sharding", entry={maximal device=0}, exit={replicated}}
std::string read_domain(Context&, const ProtoPlace&, const HloInstructionProto& from) {
  return fmt::format("{{kind=\"sharding\", entry={}, exit={}}}",
                     print_hlo_sharding(read_sharding(from.domain_entry_sharding())),
                     print_hlo_sharding(read_sharding(from.domain_exit_sharding())));
}

void write_domain(Context&, const ProtoPlace&, std::string_view raw, HloInstructionProto* to) {
  for (bool entry : {true, false}) {
    std::string_view key = entry ? "entry=" : "exit=";
    size_t at = raw.find(key);
    if (at == std::string_view::npos) throw Error(fmt::format("domain without {}", key));
    at += key.size();
    write_sharding(parse_hlo_sharding(raw, &at), entry ? to->mutable_domain_entry_sharding()
                                                       : to->mutable_domain_exit_sharding());
  }
}

struct RawForm {
  std::string_view field;
  std::string (*read)(Context&, const ProtoPlace&, const HloInstructionProto&);
  void (*write)(Context&, const ProtoPlace&, std::string_view, HloInstructionProto*);
};
constexpr RawForm kForms[] = {
    {"operand_precision", read_precision, write_precision},
    {"output_to_operand_aliasing", read_aliasing, write_aliasing},
    {"operand_layout_constraints", read_layouts, write_layouts},
    {"literal", read_literal_text, write_literal_text},
    {"domain", read_domain, write_domain},
};
constexpr RawForm kWord = {"", read_word, write_word};

const RawForm& form(const ProtoPlace& place) {
  for (const RawForm& f : kForms) {
    if (f.field == place.field) return f;
  }
  return kWord;
}

}  // namespace

std::string read_raw(Context& context, const ProtoPlace& place, const HloInstructionProto& from) {
  return form(place).read(context, place, from);
}

void write_raw(Context& context, const ProtoPlace& place, std::string_view raw,
               HloInstructionProto* to) {
  form(place).write(context, place, raw, to);
}

std::string read_result_accuracy(const proto::ResultAccuracy& from) {
  if (from.has_tolerance()) {
    const auto& t = from.tolerance();
    return fmt::format("{{tolerance={{atol={},rtol={},ulps={}}}}}", t.atol(), t.rtol(), t.ulps());
  }
  return from.mode() == 1 ? "{mode=highest}" : "";
}

void write_result_accuracy(std::string_view raw, proto::ResultAccuracy* to) {
  HloLexer lex(raw, "result_accuracy");
  lex.take('{');
  if (lex.try_word("mode")) {
    lex.take('=');
    to->set_mode(lex.word() == "highest" ? 1 : 0);
    return;
  }
  lex.take("tolerance=");
  lex.list('{', '}', [&] {
    std::string_view key = lex.word();
    lex.take('=');
    std::string value(lex.number());
    if (key == "atol") {
      to->mutable_tolerance()->set_atol(std::stod(value));
    } else if (key == "rtol") {
      to->mutable_tolerance()->set_rtol(std::stod(value));
    } else {
      to->mutable_tolerance()->set_ulps(std::stoll(value));
    }
  });
}

std::string read_parameter_replication(const proto::ParameterReplication& from) {
  std::string text;
  for (bool replicated : from.replicated_at_leaf_buffers()) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", replicated);
  }
  return text.empty() ? "" : "{" + text + "}";
}

void write_parameter_replication(std::string_view raw, proto::ParameterReplication* to) {
  HloLexer lex(raw, "parameter_replication");
  lex.list('{', '}', [&] { to->add_replicated_at_leaf_buffers(lex.boolean()); });
}

}  // namespace gspmd
