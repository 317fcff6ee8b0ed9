#include "gspmd/formats/proto/proto_places.h"

#include <algorithm>

#include "gspmd/base/check.h"

namespace gspmd {
namespace {

constexpr std::string_view kAlgorithms[] = {"",
                                            "dot_any_f8_any_f8_f32",
                                            "dot_any_f8_any_f8_f32_fast_accum",
                                            "dot_f16_f16_f16",
                                            "dot_f16_f16_f32",
                                            "dot_bf16_bf16_bf16",
                                            "dot_bf16_bf16_f32",
                                            "dot_bf16_bf16_f32_x3",
                                            "dot_bf16_bf16_f32_x6",
                                            "dot_tf32_tf32_f32",
                                            "dot_tf32_tf32_f32_x3",
                                            "dot_f32_f32_f32",
                                            "dot_f64_f64_f64",
                                            "dot_bf16_bf16_f32_x9"};
constexpr std::string_view kPrecisions[] = {"default", "high", "highest"};
constexpr std::string_view kPaddingTypes[] = {"", "PADDING_VALID", "PADDING_SAME"};
constexpr std::string_view kSchedules[] = {"", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};
// What texts leave out is the original one.
constexpr std::string_view kApiVersions[] = {
    "API_VERSION_UNSPECIFIED", "", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};

#define GATHER(field) {#field, "gather_dimension_numbers." #field, {}, 0, AttrsKind::kGatherAttrs}
#define SCATTER(field) \
  {#field, "scatter_dimension_numbers." #field, {}, 0, AttrsKind::kScatterAttrs}
#define SOLVE(field) \
  {#field, "triangular_solve_options." #field, {}, 0, AttrsKind::kTriangularSolveAttrs}
#define DOT(field, path) {field, "dot_dimension_numbers." path}

constexpr ProtoPlace kPlaces[] = {
    GATHER(offset_dims),
    GATHER(collapsed_slice_dims),
    GATHER(start_index_map),
    GATHER(operand_batching_dims),
    GATHER(start_indices_batching_dims),
    GATHER(index_vector_dim),
    {"slice_sizes", "gather_slice_sizes", {}, 0, AttrsKind::kGatherAttrs},
    SCATTER(update_window_dims),
    SCATTER(inserted_window_dims),
    SCATTER(scatter_dims_to_operand_dims),
    SCATTER(input_batching_dims),
    SCATTER(scatter_indices_batching_dims),
    SCATTER(index_vector_dim),
    SOLVE(left_side),
    SOLVE(lower),
    SOLVE(unit_diagonal),
    {"transpose_a",
     "triangular_solve_options.transpose_a",
     {},
     1,
     AttrsKind::kTriangularSolveAttrs},
    {"lower", "cholesky_options.lower", {}, 0, AttrsKind::kCholeskyAttrs},
    DOT("lhs_batch_dims", "lhs_batch_dimensions"),
    DOT("lhs_contracting_dims", "lhs_contracting_dimensions"),
    DOT("rhs_batch_dims", "rhs_batch_dimensions"),
    DOT("rhs_contracting_dims", "rhs_contracting_dimensions"),
    {"lhs_ragged_dims", "ragged_dot_dimension_numbers.lhs_ragged_dimensions"},
    {"rhs_group_dims", "ragged_dot_dimension_numbers.rhs_group_dimensions"},
    {"operand_precision", "precision_config.operand_precision", kPrecisions},
    {"algorithm", "rng_algorithm", {}, 0, AttrsKind::kRngBitGeneratorAttrs},
    {"algorithm", "precision_config.algorithm", kAlgorithms},
    {"dim_labels", "convolution_dimension_numbers"},
    {"direction", "comparison_direction"},
    {"type", "comparison_type"},
    {"distribution", "distribution", {}, 1},
    {"kind", "fusion_kind"},
    {"padding_type", "padding_type", kPaddingTypes},
    {"schedule", "custom_call_schedule", kSchedules},
    {"api_version", "custom_call_api_version", kApiVersions},
    {"index", "tuple_index"},
    {"iota_dimension", "dimensions"},
    {"inferred_dimension", "dimensions"},
    {"slice", "slice_dimensions"},
    {"padding", "padding_config"},
};

// Operators with ragged dimensions keep all their dimension numbers in one message.
bool is_ragged(const OpDef& op) {
  return std::any_of(op.fields.begin(), op.fields.end(),
                     [](const Field& f) { return f.name == "lhs_ragged_dims"; });
}

const google::protobuf::FieldDescriptor* find(const google::protobuf::Message& in,
                                              const std::string& name) {
  const auto* field = in.GetDescriptor()->FindFieldByName(name);
  GSPMD_CHECK(field != nullptr, "a message without field " + name);
  return field;
}

std::string full_path(const ProtoPlace& place) {
  std::string path(place.path);
  return place.outer.empty() ? path : std::string(place.outer) + "." + path;
}

}  // namespace

ProtoPlace place_of(const OpDef& op, const Field& f) {
  for (const ProtoPlace& p : kPlaces) {
    if (p.field != f.name || (p.only != AttrsKind::kNone && p.only != op.attrs)) continue;
    ProtoPlace place = p;
    bool nested = p.path.starts_with("dot_dimension_numbers.") && is_ragged(op);
    if (nested) place.outer = "ragged_dot_dimension_numbers";
    return place;
  }
  return {f.name, f.name};  // all others have one name in texts and messages
}

ProtoField field_for_writing(proto::HloInstructionProto* in, const ProtoPlace& place) {
  google::protobuf::Message* message = in;
  std::string path = full_path(place);
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.')) {
    const auto* field = find(*message, path.substr(0, dot));
    message = message->GetReflection()->MutableMessage(message, field);
    path.erase(0, dot + 1);
  }
  return {message, find(*message, path)};
}

ProtoField field_for_reading(const proto::HloInstructionProto& in, const ProtoPlace& place) {
  const google::protobuf::Message* message = &in;
  std::string path = full_path(place);
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.')) {
    const auto* field = find(*message, path.substr(0, dot));
    if (!message->GetReflection()->HasField(*message, field)) return {};
    message = &message->GetReflection()->GetMessage(*message, field);
    path.erase(0, dot + 1);
  }
  return {const_cast<google::protobuf::Message*>(message), find(*message, path)};
}

}  // namespace gspmd
