#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "gspmd/base/check.h"
#include "gspmd/base/dims.h"
#include "gspmd/ir/literal.h"
#include "gspmd/sharding/device_groups.h"

namespace gspmd {

// The own attributes of each operator: plain data in arena memory, immutable once on an
// instruction, shared by clones.

struct WindowDim {
  int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0, base_dilation = 1, window_dilation = 1;
  bool reversal = false;
  friend bool operator==(const WindowDim&, const WindowDim&) = default;
};
using Window = absl::Span<const WindowDim>;

// Numbers of enumerated attributes are positions in the name tables of ops/field.h.
enum class Direction : uint8_t { kEq, kNe, kGe, kGt, kLe, kLt };
enum class CompareType : uint8_t { kDefault, kFloat, kTotalOrder, kSigned, kUnsigned };
enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
enum class TransposeA : uint8_t { kNoTranspose, kTranspose, kAdjoint };
enum class RngAlgorithm : uint8_t { kDefault, kThreeFry, kPhilox };
enum class RngDistribution : uint8_t { kUniform, kNormal };

struct DimsAttrs {
  Dims dimensions;
};  // broadcast, transpose, reverse, reduce, map, concatenate, get-dimension-size, ...
struct IotaAttrs {
  int64_t dimension = 0;
};
struct ParameterAttrs {
  int64_t number = 0;
};
struct ConstantAttrs {
  const Literal* literal = nullptr;
};
struct IndexAttrs {
  int64_t index = 0;
};  // get-tuple-element
struct CompareAttrs {
  Direction direction = Direction::kEq;
  CompareType type = CompareType::kDefault;
};
struct ReshapeAttrs {
  int64_t inferred_dimension = -1;
};
struct ReducePrecisionAttrs {
  int64_t exponent_bits = 0, mantissa_bits = 0;
};
struct SliceAttrs {
  Dims starts, limits, strides;
};
struct DynamicSliceAttrs {
  Dims sizes;
};
struct PadAttrs {
  Dims low, high, interior;
};
struct SortAttrs {
  Dims dimensions;
  bool is_stable = false;
};  // one dimension
struct TopKAttrs {
  int64_t k = 0;
  bool largest = true;
};
struct WindowAttrs {
  Window window;
};  // reduce-window, select-and-scatter
struct BatchNormAttrs {
  double epsilon = 0;
  int64_t feature_index = 0;
};
struct CholeskyAttrs {
  bool lower = false;
};
struct TriangularSolveAttrs {
  bool left_side = false, lower = false, unit_diagonal = false;
  TransposeA transpose_a = TransposeA::kNoTranspose;
};
struct FftAttrs {
  FftType type = FftType::kFft;
  Dims length;
};
struct RngAttrs {
  RngDistribution distribution = RngDistribution::kUniform;
};
struct RngBitGeneratorAttrs {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
};
struct RngStateAttrs {
  int64_t delta = 0;
};
struct ScanAttrs {
  Dims dimensions;
  int64_t num_carries = 0;
  bool is_reverse = false, is_associative = false;
};

struct DotAttrs {  // dot, ragged-dot, scaled-dot
  Dims lhs_batch, lhs_contract, rhs_batch, rhs_contract;
  Dims lhs_ragged, rhs_group;          // ragged-dot
  std::string_view operand_precision;  // raw, e.g. "{highest,highest}"; empty = default
  std::string_view algorithm;          // raw, e.g. "dot_bf16_bf16_f32"; empty = unset
};

// dim_labels=b01f_01io->b01f: for each tensor which dimension is which.
struct ConvDims {
  int64_t input_batch = 0, input_feature = 0, kernel_input = 0, kernel_output = 0, output_batch = 0,
          output_feature = 0;
  Dims input_spatial, kernel_spatial, output_spatial;
};
struct ConvAttrs {
  Window window;
  ConvDims dims;
  int64_t feature_groups = 1, batch_groups = 1;
  std::string_view operand_precision, algorithm;
};

struct GatherAttrs {
  Dims offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      start_indices_batching_dims, slice_sizes;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
};
struct ScatterAttrs {
  Dims update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims,
      scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
};

struct CollectiveAttrs {  // all-gather, all-reduce, reduce-scatter, all-to-all,
                          // collective-broadcast and their -start forms
  Dims dimensions;        // one dimension, or empty (all-reduce, tuple all-to-all)
  const DeviceGroups* groups = nullptr;
  int64_t channel_id = 0;  // 0 = none
  bool use_global_device_ids = false, constrain_layout = false;
};
struct PermuteAttrs {                                   // collective-permute
  absl::Span<const std::pair<int64_t, int64_t>> pairs;  // as written; or, for what we emit:
  const DevicePermutation* permutation = nullptr;       // expanded only where it is printed or run
  const Mesh* mesh = nullptr;
  int64_t channel_id = 0;
};
struct CustomCallAttrs {
  std::string_view target;
  bool has_side_effect = false;
  std::string_view api_version, schedule, padding_type;  // raw; empty = default
  std::string_view operand_layout_constraints;           // raw `{...}`
  std::string_view output_to_operand_aliasing;           // raw `{...}`
  std::string_view literal;                              // raw shape and literal
  Window window;
  const ConvDims* conv_dims = nullptr;
  int64_t feature_groups = 1, batch_groups = 1;
  std::string_view operand_precision;
};
struct ChannelAttrs {
  int64_t channel_id = 0;
  bool is_host_transfer = false;
};  // send, recv, ...
struct InfeedAttrs {
  std::string_view config;
};
struct OutfeedAttrs {
  std::string_view config;
  Shape shape;
};
struct DomainAttrs {
  std::string_view raw;
};  // `{kind=..., entry=..., exit=...}`
struct AsyncAttrs {
  std::string_view execution_thread;
};
struct FusionAttrs {
  std::string_view kind;
  std::string_view output_to_operand_aliasing;
};
struct CallAttrs {
  bool is_composite = false;
};
struct CopyStartAttrs {
  int64_t cross_program_prefetch_index = -1;
};

// clang-format off
#define GSPMD_ATTRS(X) \
  X(DimsAttrs) X(IotaAttrs) X(ParameterAttrs) X(ConstantAttrs) X(IndexAttrs) X(CompareAttrs) X(ReshapeAttrs) \
  X(ReducePrecisionAttrs) X(SliceAttrs) X(DynamicSliceAttrs) X(PadAttrs) X(SortAttrs) X(TopKAttrs) X(WindowAttrs) \
  X(BatchNormAttrs) X(CholeskyAttrs) X(TriangularSolveAttrs) X(FftAttrs) X(RngAttrs) X(RngBitGeneratorAttrs) \
  X(RngStateAttrs) X(ScanAttrs) X(DotAttrs) X(ConvAttrs) X(GatherAttrs) X(ScatterAttrs) X(CollectiveAttrs) \
  X(PermuteAttrs) X(CustomCallAttrs) X(ChannelAttrs) X(InfeedAttrs) X(OutfeedAttrs) X(DomainAttrs) X(AsyncAttrs) \
  X(FusionAttrs) X(CallAttrs) X(CopyStartAttrs)
// clang-format on

enum class AttrsKind : uint8_t {
  kNone,
#define X(type) k##type,
  GSPMD_ATTRS(X)
#undef X
};

template <typename T>
struct AttrsKindOf;
#define X(type)                                            \
  template <>                                              \
  struct AttrsKindOf<type> {                               \
    static constexpr AttrsKind value = AttrsKind::k##type; \
  };
GSPMD_ATTRS(X)
#undef X

// A tagged pointer to one of the structs above, or to none.
class Attrs {
 public:
  Attrs() = default;
  template <typename T>
  Attrs(const T* attrs)
      : kind_(AttrsKindOf<T>::value), data_(attrs) {}  // NOLINT: a pointer is an Attrs
  Attrs(AttrsKind kind, const void* data) : kind_(kind), data_(data) {}

  AttrsKind kind() const { return kind_; }
  const void* data() const { return data_; }
  template <typename T>
  const T& get() const {
    GSPMD_CHECK(kind_ == AttrsKindOf<T>::value, "attributes of another operator");
    return *static_cast<const T*>(data_);
  }
  template <typename T>
  const T* get_if() const {
    return kind_ == AttrsKindOf<T>::value ? static_cast<const T*>(data_) : nullptr;
  }

 private:
  AttrsKind kind_ = AttrsKind::kNone;
  const void* data_ = nullptr;
};

}  // namespace gspmd
