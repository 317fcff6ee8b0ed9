#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "gspmd/ir/attrs.h"
#include "gspmd/ir/opcode.h"
#include "gspmd/ir/shape.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {

class Computation;
struct Instr;

// Where the user's program made an instruction, as in HLO's `metadata={...}`.
struct Metadata {
  std::string_view op_type, op_name, source_file;
  int32_t source_line = 0, source_end_line = 0, source_column = 0,
          source_end_column = 0;  // 0 = not given
  int32_t stack_frame_id = 0;     // row of Module::stack_frames, from 1; 0 = none
  std::string_view rest;          // other entries, raw, e.g. `deduplicated_name="x"`
};

// Why a pass made an instruction.
enum class Reason : uint8_t {
  kRewrite,           // stands for the source instruction itself
  kReshardOperand,    // an operand was laid out differently from what the operator needs; fact =
                      // operand number
  kReshardResult,     // the result was produced in another layout than wanted
  kPartialReduction,  // partial results of a split reduction or contraction are combined
  kHalo,              // neighbours' elements that a window reads
  kMask,              // padding must not reach the result
  kOffset,            // arithmetic on the partition id
  kIndexRebase,       // global run-time indices made local
  kFallback,          // the operator can not be split this way: gathered
  kBroadcastFromOne,  // runs on one device, the result goes to all
  kManualBoundary,    // entry to or exit from a manual region
  kEntryInterface,    // entry parameters and results take their annotated layout
  kControlFlow,       // operands of loops and branches agree in layout
};
std::string_view to_string(Reason r);

// One cause: the instruction of the source program, by name and place (so that it outlives its
// module within a context).
struct Cause {
  std::string_view instr;
  const Metadata* metadata = nullptr;
  Reason reason = Reason::kRewrite;
  std::string_view fact;
  friend bool operator==(const Cause&, const Cause&) = default;
};
using Provenance = absl::Span<const Cause>;

// What few instructions have; all raw text as written, empty if none.
struct Extras {
  std::string_view frontend_attributes;  // `{...}` with braces
  std::string_view backend_config;       // JSON with braces or string with quotes
  std::string_view statistics, origin, parameter_replication, result_accuracy;
  std::string_view unknown;  // unknown attributes, `name=value` joined by ", "
  absl::Span<Instr* const> control_predecessors;
};

// One HLO instruction. Plain data owned by a Module; made by Module::add.
struct Instr {
  Opcode opcode = Opcode::kTuple;
  uint32_t id = 0;  // dense in the module: index of side tables; never reused
  Shape shape;
  std::string_view name;  // unique in its computation, without %
  absl::Span<Instr*> operands;
  Attrs attributes;
  absl::Span<Computation*> called;  // in the order of OpDef::called
  Computation* parent = nullptr;
  const ShardingSpelling* annotation = nullptr;  // `sharding={...}` as written
  const Metadata* metadata = nullptr;
  const Extras* extras = nullptr;
  Provenance provenance;
  int64_t place = 0;  // byte offset in the source text + 1 (0 = none): Module::place_of

  int num_operands() const { return static_cast<int>(operands.size()); }
  Instr* operand(int i) const { return operands[i]; }
  template <typename T>
  const T& attrs() const {
    return attributes.get<T>();
  }
};

// "name = f32[8,4] add(a, b)": for messages.
std::string describe(const Instr& i);

}  // namespace gspmd
