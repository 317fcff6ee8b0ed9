#pragma once

#include <initializer_list>
#include <string_view>

#include "gspmd/ops/op_def.h"

namespace gspmd {

// What dot, ragged-dot and scaled-dot share.

// Dimensions of a tensor that are in none of the lists, in order: those that go to the result on
// their own.
DimVector free_dims(int rank, std::initializer_list<absl::Span<const int64_t>> taken);

// Batch and contracting dimensions must exist, be named once, and pair dimensions of equal sizes;
// throws Error.
void check_dot_dims(const DotAttrs& a, Shape lhs, Shape rhs, std::string_view op);

// The result's element type: as stated, else the wider of the operands'. (s8 x s8 -> s32 stands in
// the result shape.)
ElementType product_type(const InferArgs& args, Shape lhs, Shape rhs);

#define GSPMD_DOT_DIMS_FIELDS                                                              \
  stablehlo_name(field<&DotAttrs::lhs_batch>("lhs_batch_dims", FieldKind::kDims),          \
                 "lhs_batching_dimensions"),                                               \
      stablehlo_name(always_printed(field<&DotAttrs::lhs_contract>("lhs_contracting_dims", \
                                                                   FieldKind::kDims)),     \
                     "lhs_contracting_dimensions"),                                        \
      stablehlo_name(field<&DotAttrs::rhs_batch>("rhs_batch_dims", FieldKind::kDims),      \
                     "rhs_batching_dimensions"),                                           \
      stablehlo_name(always_printed(field<&DotAttrs::rhs_contract>("rhs_contracting_dims", \
                                                                   FieldKind::kDims)),     \
                     "rhs_contracting_dimensions")

#define GSPMD_DOT_PRECISION_FIELDS                                           \
  field<&DotAttrs::operand_precision>("operand_precision", FieldKind::kRaw), \
      field<&DotAttrs::algorithm>("algorithm", FieldKind::kRaw)

}  // namespace gspmd
