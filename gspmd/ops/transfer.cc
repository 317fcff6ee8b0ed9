// What leaves or enters a device, or moves between its memories: copy-start/-done, infeed, outfeed,
// send, recv.

#include <fmt/format.h>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr OpTraits kOrdered = {.structural = true, .side_effect = true};

void check_token(const InferArgs& args, int i, std::string_view op) {
  int count = static_cast<int>(args.operands.size());
  if (i < count && args.operands[i].is_token()) return;
  refuse(op, fmt::format("operand {} is {}, not a token", i,
                         i < count ? to_string(args.operands[i]) : "missing"));
}

Shape tuple_operand(const InferArgs& args, std::string_view op, size_t elements) {
  Shape s = args.operands.empty() ? Shape() : args.operands[0];
  if (s && s.is_tuple() && s.elements().size() == elements) return s;
  refuse(op,
         fmt::format("the operand is {}, a tuple of {} is needed", s ? to_string(s) : "missing",
                     elements),
         "it is what the matching start gives");
}

Shape infer_copy_start(const InferArgs& args) {
  Shape x = array_operand(args, 0, "copy-start");
  if (args.stated) return args.stated;  // the memory spaces stand there
  Shape all[] = {x, x, args.context.scalar(ElementType::kU32)};
  return args.context.tuple(all);
}
Shape infer_copy_done(const InferArgs& args) {
  return tuple_operand(args, "copy-done", 3).element(0);
}

Shape infer_infeed(const InferArgs& args) {
  check_token(args, 0, "infeed");
  Shape s = args.stated;
  if (s && (!s.is_tuple() || s.elements().size() != 2 || !s.element(1).is_token())) {
    refuse("infeed", fmt::format("the result is {}", to_string(s)),
           "it is a tuple of the data and a token");
  }
  return s;
}
Shape infer_outfeed(const InferArgs& args) {
  check_token(args, 1, "outfeed");
  return args.context.token();
}

Shape in_flight(const InferArgs& args, Shape data) {
  Shape all[] = {data, args.context.scalar(ElementType::kU32), args.context.token()};
  return args.context.tuple(all);
}
Shape infer_send(const InferArgs& args) {
  check_token(args, 1, "send");
  return in_flight(args, args.operands[0]);
}
Shape infer_send_done(const InferArgs& args) {
  return tuple_operand(args, "send-done", 3).element(2);
}
Shape infer_recv(const InferArgs& args) {
  check_token(args, 0, "recv");
  Shape s = args.stated;
  if (s && !(s.is_tuple() && s.elements().size() == 3 && same(s, in_flight(args, s.element(0))))) {
    refuse("recv", fmt::format("the result is {}", to_string(s)),
           "it is a tuple of the data, u32[] and a token");
  }
  return s;
}
Shape infer_recv_done(const InferArgs& args) {
  Shape s = tuple_operand(args, "recv-done", 3);
  Shape all[] = {s.element(0), s.element(2)};
  return args.context.tuple(all);
}

constexpr Field kCopyStartFields[] = {field<&CopyStartAttrs::cross_program_prefetch_index>(
    "cross_program_prefetch_index", FieldKind::kInt)};
constexpr Field kInfeedFields[] = {
    field<&InfeedAttrs::config>("infeed_config", FieldKind::kString)};
constexpr Field kOutfeedFields[] = {
    field<&OutfeedAttrs::shape>("outfeed_shape", FieldKind::kShape),
    field<&OutfeedAttrs::config>("outfeed_config", FieldKind::kString)};
constexpr Field kChannelFields[] = {
    stablehlo_name(field<&ChannelAttrs::channel_id>("channel_id", FieldKind::kInt),
                   "channel_handle"),
    field<&ChannelAttrs::is_host_transfer>("is_host_transfer", FieldKind::kBool)};

constexpr OpDef channel(Opcode opcode, std::string_view name, int operands,
                        Shape (*infer)(const InferArgs&)) {
  return {.opcode = opcode,
          .name = name,
          .min_operands = operands,
          .max_operands = operands,
          .attrs = AttrsKind::kChannelAttrs,
          .fields = kChannelFields,
          .traits = kOrdered,
          .infer = infer};
}

}  // namespace

extern const OpDef kCopyStartDef = {.opcode = Opcode::kCopyStart,
                                    .name = "copy-start",
                                    .attrs = AttrsKind::kCopyStartAttrs,
                                    .fields = kCopyStartFields,
                                    .traits = {.structural = true, .data_movement = true},
                                    .infer = infer_copy_start};
extern const OpDef kCopyDoneDef = {.opcode = Opcode::kCopyDone,
                                   .name = "copy-done",
                                   .traits = {.structural = true, .data_movement = true},
                                   .infer = infer_copy_done};
extern const OpDef kInfeedDef = {.opcode = Opcode::kInfeed,
                                 .name = "infeed",
                                 .attrs = AttrsKind::kInfeedAttrs,
                                 .fields = kInfeedFields,
                                 .traits = kOrdered,
                                 .infer = infer_infeed};
extern const OpDef kOutfeedDef = {.opcode = Opcode::kOutfeed,
                                  .name = "outfeed",
                                  .min_operands = 2,
                                  .max_operands = 2,
                                  .attrs = AttrsKind::kOutfeedAttrs,
                                  .fields = kOutfeedFields,
                                  .traits = kOrdered,
                                  .infer = infer_outfeed};
extern const OpDef kSendDef = channel(Opcode::kSend, "send", 2, infer_send);
extern const OpDef kSendDoneDef = channel(Opcode::kSendDone, "send-done", 1, infer_send_done);
extern const OpDef kRecvDef = channel(Opcode::kRecv, "recv", 1, infer_recv);
extern const OpDef kRecvDoneDef = channel(Opcode::kRecvDone, "recv-done", 1, infer_recv_done);

}  // namespace gspmd
