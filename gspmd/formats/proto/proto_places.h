#pragma once

#include <absl/types/span.h>

#include <string_view>

#include "gspmd/formats/proto/hlo.pb.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {

// Where an attribute lives in an instruction's message.
struct ProtoPlace {
  std::string_view field;  // its name in the operator's definition
  std::string_view
      path;  // field of the message, maybe inside of another: "precision_config.algorithm"
  // For enumerated values and raw words: number k stands for names[k].
  absl::Span<const std::string_view> names = {};
  int64_t first_number = 0;           // of an enumerated value's first name
  AttrsKind only = AttrsKind::kNone;  // one of several attributes of this name
  std::string_view outer = {};  // the message that the path starts in; empty = the instruction
};

ProtoPlace place_of(const OpDef& op, const Field& f);

// A field of a message and the message that it is in.
struct ProtoField {
  google::protobuf::Message* message = nullptr;
  const google::protobuf::FieldDescriptor* field = nullptr;
  const google::protobuf::Reflection& access() const { return *message->GetReflection(); }
};
// Follows the path, for writing.
ProtoField field_for_writing(proto::HloInstructionProto* in, const ProtoPlace& place);
// The same for reading; no message where an outer message of the path is absent.
ProtoField field_for_reading(const proto::HloInstructionProto& in, const ProtoPlace& place);

}  // namespace gspmd
