#pragma once

#include "gspmd/formats/proto/hlo.pb.h"
#include "gspmd/ir/module.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {

// An operator's own attributes as fields of its message. Which field holds which attribute is a
// table (proto_fields.cc); how a value is written follows from its kind. `to` must have the
// operator's default attributes, `shapes` are those of its operands. Throws Error.
void read_fields(Context& context, const OpDef& op, const proto::HloInstructionProto& from,
                 absl::Span<const Shape> shapes, void* to);
void write_fields(Context& context, const Instr& i, bool mesh_groups,
                  proto::HloInstructionProto* to);

}  // namespace gspmd
