// VHLO's operations: the names of their attributes, and the translation to StableHLO's.

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>

#include "gspmd/formats/mlir/bytecode_reader.h"

namespace gspmd::mlir {
namespace {

#define CONV_DIMS_BEFORE_PADDING                                                             \
  "batch_group_count,feature_group_count,input_batch_dimension,input_feature_dimension,"     \
  "input_spatial_dimensions,kernel_input_feature_dimension,kernel_output_feature_dimension," \
  "kernel_spatial_dimensions,lhs_dilation,output_batch_dimension,output_feature_dimension,"  \
  "output_spatial_dimensions,"

constexpr OpForm kForms[] = {
    {"all_gather_v1", "all_gather_dim,channel_id,replica_groups,use_global_device_ids"},
    {"all_gather_v2", "all_gather_dim,channel_id,replica_groups,use_global_device_ids"},
    {"all_reduce_v1", "channel_id,replica_groups,use_global_device_ids"},
    {"all_reduce_v2", "channel_id,replica_groups,use_global_device_ids"},
    {"all_to_all_v1", "channel_id,concat_dimension,replica_groups,split_count,split_dimension"},
    {"all_to_all_v2", "channel_id,concat_dimension,replica_groups,split_count,split_dimension"},
    {"batch_norm_grad_v1", "epsilon,feature_index"},
    {"batch_norm_inference_v1", "epsilon,feature_index"},
    {"batch_norm_training_v1", "epsilon,feature_index"},
    {"broadcast_v1", "broadcast_sizes"},
    {"broadcast_in_dim_v1", "broadcast_dimensions"},
    {"call_v1", "callee"},
    {"cbrt_v2", "result_accuracy"},
    {"cholesky_v1", "lower"},
    {"collective_broadcast_v1", "channel_id,replica_groups"},
    {"collective_permute_v1", "channel_id,source_target_pairs"},
    {"compare_v1", "compare_type,comparison_direction"},
    {"composite_v1", "composite_attributes,decomposition,name,version"},
    {"composite_v2", "composite_attributes,decomposition,name,version"},
    {"concatenate_v1", "dimension"},
    {"constant_v1", "value"},
    {"convolution_v1", CONV_DIMS_BEFORE_PADDING
     "padding,precision_config,rhs_dilation,window_reversal,window_strides"},
    {"cosine_v2", "result_accuracy"},
    {"cross-replica-sum_v1", "replica_groups"},
    {"custom_call_v1",
     "api_version,backend_config,call_target_name,called_computations,has_side_effect,"
     "operand_layouts,output_operand_aliases,result_layouts"},
    {"custom_call_v2",
     "api_version,backend_config,call_target_name,called_computations,has_side_effect,"
     "operand_layouts,output_operand_aliases,result_layouts,result_tilings"},
    {"dot_v1", "precision_config"},
    {"dot_general_v1",
     "lhs_batching_dimensions,lhs_contracting_dimensions,precision_config,"
     "rhs_batching_dimensions,rhs_contracting_dimensions"},
    {"dot_general_v2",
     "accumulation_type,allow_imprecise_accumulation,lhs_batching_dimensions,lhs_component_count,"
     "lhs_contracting_dimensions,lhs_precision_type,num_primitive_operations,precision_config,"
     "rhs_batching_dimensions,rhs_component_count,rhs_contracting_dimensions,rhs_precision_type"},
    {"dynamic_broadcast_in_dim_v1",
     "broadcast_dimensions,known_expanding_dimensions,known_nonexpanding_dimensions"},
    {"dynamic_conv_v2",
     CONV_DIMS_BEFORE_PADDING "precision_config,rhs_dilation,window_reversal,window_strides"},
    {"dynamic_gather_v2",
     "collapsed_slice_dims,index_vector_dim,indices_are_sorted,offset_dims,operand_batching_dims,"
     "start_index_map,start_indices_batching_dims"},
    {"dynamic_iota_v1", "iota_dimension"},
    {"dynamic_slice_v1", "slice_sizes"},
    {"einsum_v1", "einsum_config"},
    {"exponential_v2", "result_accuracy"},
    {"exponential_minus_one_v2", "result_accuracy"},
    {"fft_v1", "fft_length,fft_type"},
    {"func_v1", "arg_attrs,function_type,res_attrs,sym_name,sym_visibility"},
    {"gather_v1",
     "collapsed_slice_dims,index_vector_dim,indices_are_sorted,offset_dims,slice_sizes,"
     "start_index_map"},
    {"gather_v2",
     "collapsed_slice_dims,index_vector_dim,indices_are_sorted,offset_dims,operand_batching_dims,"
     "slice_sizes,start_index_map,start_indices_batching_dims"},
    {"get_dimension_size_v1", "dimension"},
    {"get_tuple_element_v1", "index"},
    {"infeed_v1", "infeed_config,layout"},
    {"iota_v1", "iota_dimension"},
    {"log_v2", "result_accuracy"},
    {"log_plus_one_v2", "result_accuracy"},
    {"logistic_v2", "result_accuracy"},
    {"map_v1", "dimensions"},
    {"outfeed_v1", "outfeed_config"},
    {"pad_v1", "edge_padding_high,edge_padding_low,interior_padding"},
    {"recv_v1", "channel_id,channel_type,is_host_transfer"},
    {"recv_v2", "channel_id,channel_type,is_host_transfer,source_target_pairs"},
    {"reduce_v1", "dimensions"},
    {"reduce_precision_v1", "exponent_bits,mantissa_bits"},
    {"reduce_scatter_v1", "channel_id,replica_groups,scatter_dimension,use_global_device_ids"},
    {"reduce_window_v1",
     "base_dilations,padding,window_dilations,window_dimensions,window_strides"},
    {"reverse_v1", "dimensions"},
    {"rng_v1", "rng_distribution"},
    {"rng_bit_generator_v1", "rng_algorithm"},
    {"rsqrt_v2", "result_accuracy"},
    {"scatter_v1",
     "index_vector_dim,indices_are_sorted,inserted_window_dims,scatter_dims_to_operand_dims,"
     "unique_indices,update_window_dims"},
    {"scatter_v2",
     "index_vector_dim,indices_are_sorted,input_batching_dims,inserted_window_dims,"
     "scatter_dims_to_operand_dims,scatter_indices_batching_dims,unique_indices,"
     "update_window_dims"},
    {"select_and_scatter_v1", "padding,window_dimensions,window_strides"},
    {"send_v1", "channel_id,channel_type,is_host_transfer"},
    {"send_v2", "channel_id,channel_type,is_host_transfer,source_target_pairs"},
    {"set_dimension_size_v1", "dimension"},
    {"sine_v2", "result_accuracy"},
    {"slice_v1", "limit_indices,start_indices,strides"},
    {"sort_v1", "dimension,is_stable"},
    {"sqrt_v2", "result_accuracy"},
    {"tan_v2", "result_accuracy"},
    {"tanh_v2", "result_accuracy"},
    {"torch_index_select_v1", "batch_dims,dim"},
    {"transpose_v1", "permutation"},
    {"triangular_solve_v1", "left_side,lower,transpose_a,unit_diagonal"},
};

#undef CONV_DIMS_BEFORE_PADDING

Attr of_kind(Attr::Kind kind, std::string text = {}) {
  Attr a;
  a.kind = kind;
  a.text = std::move(text);
  return a;
}

// Takes an attribute out of the operation; a unit if it has none.
Attr take(Op* op, std::string_view key) {
  for (size_t k = 0; k < op->attrs.size(); ++k) {
    if (op->attrs[k].first != key) continue;
    Attr a = std::move(op->attrs[k].second);
    op->attrs.erase(op->attrs.begin() + static_cast<std::ptrdiff_t>(k));
    return a;
  }
  return Attr();
}

// Channel 0 is none.
void channel(Op* op) {
  if (op->attr("channel_id") == nullptr) return;
  Attr id = take(op, "channel_id");
  take(op, "channel_type");
  if (id.integer != 0) op->attrs.emplace_back("channel_handle", std::move(id));
}

// The fields of a dot's algorithm as one struct; without types there is none.
void algorithm(Op* op) {
  Attr all = of_kind(Attr::Kind::kDict, "stablehlo.dot_algorithm");
  for (std::string_view key :
       {"lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count",
        "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation"})
    all.entries.emplace_back(std::string(key), take(op, key));
  const Attr& type = all.entries[0].second;
  bool none = type.kind == Attr::Kind::kUnit || (type.kind == Attr::Kind::kType && !type.type);
  if (!none) op->attrs.emplace_back("algorithm", std::move(all));
}

// One tensor's labels of a convolution: [b, 0, 1, f].
Attr labels(Op* op, const std::string& first, const std::string& second, const std::string& spatial,
            std::string_view letters) {
  Attr at[] = {take(op, first), take(op, second)};
  Attr others = take(op, spatial);
  size_t rank = 2;
  constexpr int64_t kMaxSpatial = 64;
  if (others.literal != nullptr && others.literal->num_elements() <= kMaxSpatial)
    rank += static_cast<size_t>(others.literal->num_elements());
  Attr out = of_kind(Attr::Kind::kArray);
  out.elements.resize(rank, of_kind(Attr::Kind::kInt));
  for (Attr& e : out.elements) e.integer = -1;  // what stays so is refused
  for (size_t k = 0; k < 2; ++k) {
    int64_t d = at[k].integer;
    if (d < 0 || d >= static_cast<int64_t>(rank)) continue;
    out.elements[static_cast<size_t>(d)] =
        of_kind(Attr::Kind::kSymbol, std::string(letters.substr(k, 1)));
  }
  for (size_t k = 0; k + 2 < rank; ++k) {
    int64_t d = integer_at(*others.literal, static_cast<int64_t>(k)).value_or(-1);
    if (d < 0 || d >= static_cast<int64_t>(rank)) continue;
    out.elements[static_cast<size_t>(d)].integer = static_cast<int64_t>(k);
  }
  return out;
}

void convolution(Op* op) {
  Attr all = of_kind(Attr::Kind::kArray);
  all.elements.push_back(labels(op, "input_batch_dimension", "input_feature_dimension",
                                "input_spatial_dimensions", "bf"));
  all.elements.push_back(labels(op, "kernel_output_feature_dimension",
                                "kernel_input_feature_dimension", "kernel_spatial_dimensions",
                                "oi"));
  all.elements.push_back(labels(op, "output_batch_dimension", "output_feature_dimension",
                                "output_spatial_dimensions", "bf"));
  op->attrs.emplace_back("dimension_numbers", std::move(all));
}

// Layouts that are not given are empty lists.
void custom_call(Op* op) {
  const Attr *operands = op->attr("operand_layouts"), *results = op->attr("result_layouts");
  bool none = operands != nullptr && operands->elements.empty() && results != nullptr &&
              results->elements.empty();
  if (none) take(op, "operand_layouts");
}

}  // namespace

// Operations without attributes have no properties and need no form.
const OpForm* vhlo_form(std::string_view name) {
  static const auto* by_name = [] {
    auto* all = new absl::flat_hash_map<std::string_view, const OpForm*>();
    for (const OpForm& f : kForms) all->emplace(f.name, &f);
    return all;
  }();
  auto it = by_name->find(name);
  return it == by_name->end() ? nullptr : it->second;
}

void to_stablehlo(Op* op) {
  std::string_view name = op->name;
  name.remove_prefix(std::string_view("vhlo.").size());
  name = name.substr(0, name.rfind("_v"));
  if (name == "func" || name == "call") {
    op->name = fmt::format("func.{}", name);
    return;
  }
  if (name == "dot_general") algorithm(op);
  if (name == "convolution" || name == "dynamic_conv") convolution(op);
  if (name == "custom_call") custom_call(op);
  channel(op);
  op->name = fmt::format("stablehlo.{}", name);
}

}  // namespace gspmd::mlir
