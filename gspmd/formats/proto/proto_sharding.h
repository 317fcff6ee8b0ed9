#pragma once

#include "gspmd/formats/proto/hlo.pb.h"
#include "gspmd/ir/context.h"

namespace gspmd {

// Shardings and device lists as messages. The source places that a sharding may carry are not kept.
ShardingSpelling read_sharding(const proto::OpSharding& from);
void write_sharding(const ShardingSpelling& s, proto::OpSharding* to);

// The groups of a collective, from whichever of the four fields says them; null where none does.
const DeviceGroups* read_groups(Context& context, const proto::HloInstructionProto& from);
// As axes of a mesh where they were read so, if `mesh_groups`.
void write_groups(const DeviceGroups* groups, bool mesh_groups, proto::HloInstructionProto* to);

}  // namespace gspmd
