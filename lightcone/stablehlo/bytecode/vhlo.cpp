#include "lightcone/stablehlo/bytecode/vhlo.h"

#include <algorithm>
#include <array>

#include "lightcone/core/dtype.h"

namespace lc::stablehlo {
namespace {

using Kind = Attribute::Kind;

struct Properties {
  std::string_view operation, names;
};

constexpr std::string_view kConvolution =
    "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions "
    "kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation "
    "output_batch_dimension output_feature_dimension output_spatial_dimensions padding precision_config rhs_dilation "
    "window_reversal window_strides";

// A file refers to properties by index alone, in the order of their names.
// clang-format off
constexpr Properties kProperties[] = {
  {"all_gather_v1", "all_gather_dim channel_id replica_groups use_global_device_ids"},
  {"all_gather_v2", "all_gather_dim channel_id replica_groups use_global_device_ids"},
  {"all_reduce_v1", "channel_id replica_groups use_global_device_ids"},
  {"all_reduce_v2", "channel_id replica_groups use_global_device_ids"},
  {"all_to_all_v1", "channel_id concat_dimension replica_groups split_count split_dimension"},
  {"all_to_all_v2", "channel_id concat_dimension replica_groups split_count split_dimension"},
  {"batch_norm_grad_v1", "epsilon feature_index"},
  {"batch_norm_inference_v1", "epsilon feature_index"},
  {"batch_norm_training_v1", "epsilon feature_index"},
  {"broadcast_in_dim_v1", "broadcast_dimensions"},
  {"broadcast_v1", "broadcast_sizes"},
  {"call_v1", "callee"},
  {"cbrt_v2", "result_accuracy"},
  {"cholesky_v1", "lower"},
  {"collective_broadcast_v1", "channel_id replica_groups"},
  {"collective_permute_v1", "channel_id source_target_pairs"},
  {"compare_v1", "compare_type comparison_direction"},
  {"composite_v1", "composite_attributes decomposition name version"},
  {"composite_v2", "composite_attributes decomposition name version"},
  {"concatenate_v1", "dimension"},
  {"constant_v1", "value"},
  {"convolution_v1", kConvolution},
  {"cosine_v2", "result_accuracy"},
  {"custom_call_v1",
   "api_version backend_config call_target_name called_computations "
   "has_side_effect operand_layouts output_operand_aliases result_layouts"},
  {"dot_general_v1", "lhs_batching_dimensions lhs_contracting_dimensions precision_config rhs_batching_dimensions rhs_contracting_dimensions"},
  {"dot_general_v2",
   "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions lhs_component_count lhs_contracting_dimensions lhs_precision_type "
   "num_primitive_operations precision_config rhs_batching_dimensions rhs_component_count rhs_contracting_dimensions rhs_precision_type"},
  {"dot_v1", "precision_config"},
  {"dynamic_broadcast_in_dim_v1", "broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions"},
  {"dynamic_conv_v1", kConvolution},
  {"dynamic_conv_v2",
   "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions "
   "lhs_dilation output_batch_dimension output_feature_dimension output_spatial_dimensions precision_config rhs_dilation window_reversal window_strides"},
  {"dynamic_gather_v1", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims start_index_map"},
  {"dynamic_gather_v2",
   "collapsed_slice_dims index_vector_dim indices_are_sorted "
   "offset_dims operand_batching_dims start_index_map start_indices_batching_dims"},
  {"dynamic_iota_v1", "iota_dimension"},
  {"dynamic_slice_v1", "slice_sizes"},
  {"einsum_v1", "einsum_config"},
  {"exponential_minus_one_v2", "result_accuracy"},
  {"exponential_v2", "result_accuracy"},
  {"fft_v1", "fft_length fft_type"},
  {"func_v1", "arg_attrs function_type res_attrs sym_name sym_visibility"},
  {"gather_v1", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims slice_sizes start_index_map"},
  {"gather_v2",
   "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
   "operand_batching_dims slice_sizes start_index_map start_indices_batching_dims"},
  {"get_dimension_size_v1", "dimension"},
  {"get_tuple_element_v1", "index"},
  {"infeed_v1", "infeed_config layout"},
  {"iota_v1", "iota_dimension"},
  {"log_plus_one_v2", "result_accuracy"},
  {"log_v2", "result_accuracy"},
  {"logistic_v2", "result_accuracy"},
  {"map_v1", "dimensions"},
  {"outfeed_v1", "outfeed_config"},
  {"pad_v1", "edge_padding_high edge_padding_low interior_padding"},
  {"recv_v1", "channel_id channel_type is_host_transfer"},
  {"recv_v2", "channel_id channel_type is_host_transfer source_target_pairs"},
  {"reduce_precision_v1", "exponent_bits mantissa_bits"},
  {"reduce_scatter_v1", "channel_id replica_groups scatter_dimension use_global_device_ids"},
  {"reduce_v1", "dimensions"},
  {"reduce_window_v1", "base_dilations padding window_dilations window_dimensions window_strides"},
  {"reverse_v1", "dimensions"},
  {"rng_bit_generator_v1", "rng_algorithm"},
  {"rng_v1", "rng_distribution"},
  {"rsqrt_v2", "result_accuracy"},
  {"scatter_v1", "index_vector_dim indices_are_sorted inserted_window_dims scatter_dims_to_operand_dims unique_indices update_window_dims"},
  {"scatter_v2",
   "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims "
   "scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices update_window_dims"},
  {"select_and_scatter_v1", "padding window_dimensions window_strides"},
  {"send_v1", "channel_id channel_type is_host_transfer"},
  {"send_v2", "channel_id channel_type is_host_transfer source_target_pairs"},
  {"set_dimension_size_v1", "dimension"},
  {"sine_v2", "result_accuracy"},
  {"slice_v1", "limit_indices start_indices strides"},
  {"sort_v1", "dimension is_stable"},
  {"sqrt_v2", "result_accuracy"},
  {"tan_v2", "result_accuracy"},
  {"tanh_v2", "result_accuracy"},
  {"torch_index_select_v1", "batch_dims dim"},
  {"transpose_v1", "permutation"},
  {"triangular_solve_v1", "left_side lower transpose_a unit_diagonal"},
  {"unary_einsum_v1", "einsum_config"},
};
// clang-format on

// Attributes that StableHLO groups in a struct.
struct Group {
  std::string_view operation, attribute, name;
  std::vector<std::string_view> fields;
};
const std::vector<Group>& groups() {
  static const std::vector<std::string_view> dot = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                                    "lhs_contracting_dimensions", "rhs_contracting_dimensions"};
  static const std::vector<std::string_view> algorithm = {
      "lhs_precision_type",  "rhs_precision_type",       "accumulation_type",           "lhs_component_count",
      "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation"};
  static const std::vector<std::string_view> gather = {"offset_dims",           "collapsed_slice_dims",
                                                       "operand_batching_dims", "start_indices_batching_dims",
                                                       "start_index_map",       "index_vector_dim"};
  static const std::vector<std::string_view> scatter = {"update_window_dims",           "inserted_window_dims",
                                                        "input_batching_dims",          "scatter_indices_batching_dims",
                                                        "scatter_dims_to_operand_dims", "index_vector_dim"};
  static const std::vector<std::string_view> convolution = {
      "input_batch_dimension",          "input_feature_dimension",         "input_spatial_dimensions",
      "kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions",
      "output_batch_dimension",         "output_feature_dimension",        "output_spatial_dimensions"};
  static const std::vector<Group> all = {
      {"stablehlo.dot_general", "dot_dimension_numbers", "dot", dot},
      {"stablehlo.dot_general", "algorithm", "dot_algorithm", algorithm},
      {"stablehlo.gather", "dimension_numbers", "gather", gather},
      {"stablehlo.dynamic_gather", "dimension_numbers", "gather", gather},
      {"stablehlo.scatter", "scatter_dimension_numbers", "scatter", scatter},
      {"stablehlo.convolution", "dimension_numbers", "conv", convolution},
      {"stablehlo.dynamic_conv", "dimension_numbers", "conv", convolution},
  };
  return all;
}

// Returns true for attributes without effect: a type `none`, and defaults that StableHLO omits.
bool says_nothing(const NamedAttribute& named) {
  const auto& [name, a] = named;
  if (a.kind == Kind::Type && !a.type.is_tensor && a.type.element == "none") return true;
  if (name == "compare_type") return a.text == "NOTYPE";
  if (name == "use_global_device_ids") return a.kind == Kind::Bool && a.integer == 0;
  if (name == "result_accuracy") {
    const auto mode = std::ranges::find(a.fields, "mode", &NamedAttribute::first);
    return mode == a.fields.end() || mode->second.text == "DEFAULT";
  }
  for (const char* list :
       {"operand_layouts", "result_layouts", "called_computations", "output_operand_aliases", "precision_config"})
    if (name == list) return a.kind == Kind::List && a.list.empty();
  return false;
}

// Converts dense<[1, 2]> of one axis to array<i64: 1, 2>.
void to_list(Attribute& a) {
  if (a.kind != Kind::Dense || a.type.shape.size() != 1 || a.type.shape[0] > kLongestList) return;
  if (a.type.element != "i64" && a.type.element != "i1") return;
  const DType t = *dtype_of(a.type.element);
  Attribute list;
  list.kind = Kind::Integers;
  list.type.element = a.type.element;
  for (std::int64_t k = 0; k < a.type.shape[0]; ++k)
    list.integers.push_back(load_i64(a.data.data(), t, a.splat ? 0 : static_cast<std::size_t>(k)));
  a = std::move(list);
}

void to_symbols(std::string_view name, Attribute& a) {
  if (name == "callee" || name == "decomposition") a.kind = Kind::Symbol;
  if (name == "called_computations")
    for (Attribute& each : a.list) each.kind = Kind::Symbol;
}

void gather_fields(const Group& g, AttributeList& all) {
  Attribute together;
  together.kind = Kind::Struct, together.name = g.name;
  for (const std::string_view field : g.fields)
    if (const auto it = std::ranges::find(all, field, &NamedAttribute::first); it != all.end()) {
      together.fields.push_back(std::move(*it));
      all.erase(it);
    }
  if (!together.fields.empty()) all.emplace_back(g.attribute, std::move(together));
}

}  // namespace

std::vector<std::string_view> properties_of(std::string_view versioned) {
  const auto* p = std::ranges::find(kProperties, versioned, &Properties::operation);
  std::vector<std::string_view> names;
  if (p == std::end(kProperties)) return names;
  for (std::size_t from = 0; from < p->names.size();) {
    const std::size_t to = std::min(p->names.find(' ', from), p->names.size());
    names.push_back(p->names.substr(from, to - from));
    from = to + 1;
  }
  return names;
}

std::string_view without_version(std::string_view versioned) {
  const std::size_t v = versioned.rfind("_v");
  const bool numbered = v != std::string_view::npos && v + 2 < versioned.size() &&
                        std::ranges::all_of(versioned.substr(v + 2), [](char c) { return c >= '0' && c <= '9'; });
  return numbered ? versioned.substr(0, v) : versioned;
}

void translate_attributes(Operation& op) {
  std::erase_if(op.attributes, says_nothing);
  for (auto& [name, a] : op.attributes) {
    if (op.name != "stablehlo.constant") to_list(a);
    to_symbols(name, a);
  }
  for (const Group& g : groups())
    if (g.operation == op.name) gather_fields(g, op.attributes);
}

}  // namespace lc::stablehlo
