#pragma once

#include "gspmd/formats/proto/proto_places.h"
#include "gspmd/ir/context.h"

namespace gspmd {

// Attributes that we keep as texts, `{{0}: (1, {})}`, from and to their messages. Empty = not
// given.
std::string read_raw(Context& context, const ProtoPlace& place,
                     const proto::HloInstructionProto& from);
void write_raw(Context& context, const ProtoPlace& place, std::string_view raw,
               proto::HloInstructionProto* to);

// `{high,default}`
std::string read_result_accuracy(const proto::ResultAccuracy& from);
void write_result_accuracy(std::string_view raw, proto::ResultAccuracy* to);
std::string read_parameter_replication(const proto::ParameterReplication& from);
void write_parameter_replication(std::string_view raw, proto::ParameterReplication* to);

}  // namespace gspmd
