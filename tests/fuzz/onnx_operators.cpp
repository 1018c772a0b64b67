// What attributes an operator has, for models that are made at random.
#include "onnx_models.h"

namespace fuzz {

// A line each: the operator, the most operands and results, and attributes with the type of their values: i an integer,
// f a float, s a text, t a tensor, g a graph, and I, F, S lists. A line that begins with blanks goes on with the one
// before. The last line is for any operator of com.microsoft.
const char* const kOperatorLines = R"(
Abs 1 1 consumed_inputs:I
Acos 1 1
Acosh 1 1
Add 2 1 axis:i broadcast:i consumed_inputs:I
AffineGrid 2 1 align_corners:i
And 2 1 axis:i broadcast:i
ArgMax 1 1 axis:i keepdims:i select_last_index:i
ArgMin 1 1 axis:i keepdims:i select_last_index:i
ArrayFeatureExtractor 2 1
Asin 1 1
Asinh 1 1
Atan 1 1
Atanh 1 1
Attention 7 4 is_causal:i kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i
  right_window_size:i scale:f softcap:f softmax_precision:i
AveragePool 1 1 auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I pads:I strides:I
BatchNormalization 5 5 consumed_inputs:I epsilon:f is_test:i momentum:f spatial:i training_mode:i
Bernoulli 1 1 dtype:i seed:f
Binarizer 1 1 threshold:f
BitCast 1 1 to:i
BitShift 2 1 direction:s
BitwiseAnd 2 1
BitwiseNot 1 1
BitwiseOr 2 1
BitwiseXor 2 1
BlackmanWindow 1 1 output_datatype:i periodic:i
Cast 1 1 round_mode:s saturate:i to:i
CastLike 2 1 round_mode:s saturate:i
CausalConvWithState 4 2 activation:s
Ceil 1 1 consumed_inputs:I
Celu 1 1 alpha:f
CenterCropPad 2 1 axes:I
Clip 3 1 consumed_inputs:I max:f min:f
Col2Im 3 1 dilations:I pads:I strides:I
Compress 2 1 axis:i
Concat 9 1 axis:i
ConcatFromSequence 1 1 axis:i new_axis:i
Constant 0 1 value:t value_float:f value_floats:F value_int:i value_ints:I value_string:s value_strings:S
ConstantOfShape 1 1 value:t
Conv 3 1 auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I
ConvInteger 4 1 auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I
ConvTranspose 3 1 auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I
Cos 1 1
Cosh 1 1
CumProd 2 1 exclusive:i reverse:i
CumSum 2 1 exclusive:i reverse:i
DFT 3 1 axis:i inverse:i onesided:i
DeformConv 5 1 dilations:I group:i kernel_shape:I offset_group:i pads:I strides:I
DepthToSpace 1 1 blocksize:i mode:s
DequantizeLinear 3 1 axis:i block_size:i output_dtype:i
Det 1 1
Div 2 1 axis:i broadcast:i consumed_inputs:I
Dropout 3 2 consumed_inputs:I is_test:i ratio:f seed:i
DynamicQuantizeLinear 1 3
Einsum 9 1 equation:s
Elu 1 1 alpha:f consumed_inputs:I
Equal 2 1 axis:i broadcast:i
Erf 1 1
Exp 1 1 consumed_inputs:I
Expand 2 1
EyeLike 1 1 dtype:i k:i
Flatten 1 1 axis:i
FlexAttention 3 1 prob_mod:g scale:f score_mod:g softmax_precision:i
Floor 1 1 consumed_inputs:I
GRU 6 2 activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i
  linear_before_reset:i output_sequence:i
Gather 2 1 axis:i
GatherElements 2 1 axis:i
GatherND 2 1 batch_dims:i
Gelu 1 1 approximate:s
Gemm 3 1 alpha:f beta:f broadcast:i transA:i transB:i
GlobalAveragePool 1 1
GlobalLpPool 1 1 p:i
GlobalMaxPool 1 1
Greater 2 1 axis:i broadcast:i
GreaterOrEqual 2 1
GridSample 2 1 align_corners:i mode:s padding_mode:s
GroupNormalization 3 1 epsilon:f num_groups:i stash_type:i
HammingWindow 1 1 output_datatype:i periodic:i
HannWindow 1 1 output_datatype:i periodic:i
HardSigmoid 1 1 alpha:f beta:f consumed_inputs:I
HardSwish 1 1
Hardmax 1 1 axis:i
Identity 1 1
If 1 6 else_branch:g then_branch:g
ImageDecoder 1 1 pixel_format:s
InstanceNormalization 3 1 consumed_inputs:I epsilon:f
IsInf 1 1 detect_negative:i detect_positive:i
IsNaN 1 1
LRN 1 1 alpha:f beta:f bias:f size:i
LSTM 8 3 activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i input_forget:i layout:i
  output_sequence:i
LayerNormalization 3 3 axis:i epsilon:f stash_type:i
LeakyRelu 1 1 alpha:f consumed_inputs:I
Less 2 1 axis:i broadcast:i
LessOrEqual 2 1
LinearAttention 6 2 chunk_size:i kv_num_heads:i q_num_heads:i scale:f update_rule:s
Log 1 1 consumed_inputs:I
LogSoftmax 1 1 axis:i
Loop 9 6 body:g
LpNormalization 1 1 axis:i p:i
LpPool 1 1 auto_pad:s ceil_mode:i dilations:I kernel_shape:I p:i pads:I strides:I
MatMul 2 1
MatMulInteger 4 1
Max 9 1 consumed_inputs:I
MaxPool 1 2 auto_pad:s ceil_mode:i dilations:I kernel_shape:I pads:I storage_order:i strides:I
MaxRoiPool 2 1 pooled_shape:I spatial_scale:f
MaxUnpool 3 1 kernel_shape:I pads:I strides:I
Mean 9 1 consumed_inputs:I
MeanVarianceNormalization 1 1 axes:I
MelWeightMatrix 5 1 output_datatype:i
Min 9 1 consumed_inputs:I
Mish 1 1
Mod 2 1 fmod:i
Mul 2 1 axis:i broadcast:i consumed_inputs:I
Multinomial 1 1 dtype:i sample_size:i seed:f
Neg 1 1 consumed_inputs:I
NegativeLogLikelihoodLoss 3 1 ignore_index:i reduction:s
NonMaxSuppression 5 1 center_point_box:i
NonZero 1 1
Not 1 1
OneHot 3 1 axis:i
Optional 1 1
OptionalGetElement 1 1
OptionalHasElement 1 1
Or 2 1 axis:i broadcast:i
PRelu 2 1 consumed_inputs:I
Pad 4 1 mode:s paddings:I pads:I value:f
Pow 2 1 axis:i broadcast:i
QLinearConv 9 1 auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I
QLinearMatMul 8 1
QuantizeLinear 3 1 axis:i block_size:i output_dtype:i precision:i saturate:i
RMSNormalization 2 1 axis:i epsilon:f stash_type:i
RNN 6 2 activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i
  output_sequence:i
RandomNormal 0 1 dtype:i mean:f scale:f seed:f shape:I
RandomNormalLike 1 1 dtype:i mean:f scale:f seed:f
RandomUniform 0 1 dtype:i high:f low:f seed:f shape:I
RandomUniformLike 1 1 dtype:i high:f low:f seed:f
Range 3 1 stash_type:i
Reciprocal 1 1 consumed_inputs:I
ReduceL1 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceL2 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceLogSum 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceLogSumExp 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceMax 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceMean 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceMin 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceProd 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceSum 2 1 axes:I keepdims:i noop_with_empty_axes:i
ReduceSumSquare 2 1 axes:I keepdims:i noop_with_empty_axes:i
RegexFullMatch 1 1 pattern:s
Relu 1 1 consumed_inputs:I
Reshape 2 1 allowzero:i consumed_inputs:I shape:I
Resize 4 1 antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i
  extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s
ReverseSequence 2 1 batch_axis:i time_axis:i
RoiAlign 3 1 coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f
RotaryEmbedding 4 1 interleaved:i num_heads:i rotary_embedding_dim:i
Round 1 1
STFT 4 1 onesided:i
Scan 9 6 body:g directions:I num_scan_inputs:i scan_input_axes:I scan_input_directions:I scan_output_axes:I
  scan_output_directions:I
Scatter 3 1 axis:i
ScatterElements 3 1 axis:i reduction:s
ScatterND 3 1 reduction:s
Selu 1 1 alpha:f consumed_inputs:I gamma:f
SequenceAt 2 1
SequenceConstruct 9 1
SequenceEmpty 0 1 dtype:i
SequenceErase 2 1
SequenceInsert 3 1
SequenceLength 1 1
SequenceMap 9 6 body:g
Shape 1 1 end:i start:i
Shrink 1 1 bias:f lambd:f
Sigmoid 1 1 consumed_inputs:I
Sign 1 1
Sin 1 1
Sinh 1 1
Size 1 1
Slice 5 1 axes:I ends:I starts:I
Softmax 1 1 axis:i
SoftmaxCrossEntropyLoss 3 2 ignore_index:i reduction:s
Softplus 1 1
Softsign 1 1
SpaceToDepth 1 1 blocksize:i mode:s
Split 2 6 axis:i num_outputs:i split:I
SplitToSequence 2 1 axis:i keepdims:i
Sqrt 1 1 consumed_inputs:I
Squeeze 2 1 axes:I
StringConcat 2 1
StringNormalizer 1 1 case_change_action:s is_case_sensitive:i locale:s stopwords:S
StringSplit 1 2 delimiter:s maxsplit:i
Sub 2 1 axis:i broadcast:i consumed_inputs:I
Sum 9 1 consumed_inputs:I
SwiGLU 2 1 alpha:f
Swish 1 1 alpha:f
Tan 1 1
Tanh 1 1 consumed_inputs:I
TensorScatter 3 1 axis:i mode:s
TfIdfVectorizer 1 1 max_gram_length:i max_skip_count:i min_gram_length:i mode:s ngram_counts:I ngram_indexes:I
  pool_int64s:I pool_strings:S weights:F
ThresholdedRelu 1 1 alpha:f
Tile 3 1
TopK 2 2 axis:i k:i largest:i sorted:i
Transpose 1 1 perm:I
Trilu 2 1 upper:i
Unique 1 4 axis:i sorted:i
Unsqueeze 2 1 axes:I
Upsample 2 1 height_scale:f mode:s scales:F width_scale:f
Where 3 1
Xor 2 1 axis:i broadcast:i
FeatureVectorizer 9 1 inputdimensions:I
Imputer 1 1 imputed_value_floats:F imputed_value_int64s:I replaced_value_float:f replaced_value_int64:i
LabelEncoder 1 1 default_float:f default_int64:i default_string:s default_tensor:t keys_floats:F keys_int64s:I
  keys_tensor:t values_floats:F values_int64s:I values_tensor:t
LinearClassifier 1 2 classlabels_ints:I coefficients:F intercepts:F multi_class:i post_transform:s
LinearRegressor 1 1 coefficients:F intercepts:F post_transform:s targets:i
Normalizer 1 1 norm:s
OneHotEncoder 1 1 cats_int64s:I zeros:i
SVMRegressor 1 1 coefficients:F kernel_params:F kernel_type:s n_supports:i one_class:i post_transform:s rho:F
  support_vectors:F
Scaler 1 1 offset:F scale:F
TreeEnsemble 1 1 aggregate_function:i leaf_targetids:I leaf_weights:t membership_values:t n_targets:i
  nodes_falseleafs:I nodes_falsenodeids:I nodes_featureids:I nodes_hitrates:t nodes_missing_value_tracks_true:I
  nodes_modes:t nodes_splits:t nodes_trueleafs:I nodes_truenodeids:I post_transform:i tree_roots:I
TreeEnsembleClassifier 1 2 base_values:F base_values_as_tensor:t class_ids:I class_nodeids:I class_treeids:I
  class_weights:F class_weights_as_tensor:t classlabels_int64s:I nodes_falsenodeids:I nodes_featureids:I
  nodes_hitrates:F nodes_hitrates_as_tensor:t nodes_missing_value_tracks_true:I nodes_nodeids:I nodes_treeids:I
  nodes_truenodeids:I nodes_values:F nodes_values_as_tensor:t post_transform:s
TreeEnsembleRegressor 1 1 aggregate_function:s base_values:F base_values_as_tensor:t n_targets:i
  nodes_falsenodeids:I nodes_featureids:I nodes_hitrates:F nodes_hitrates_as_tensor:t
  nodes_missing_value_tracks_true:I nodes_nodeids:I nodes_treeids:I nodes_truenodeids:I nodes_values:F
  nodes_values_as_tensor:t post_transform:s target_ids:I target_nodeids:I target_treeids:I target_weights:F
  target_weights_as_tensor:t
* 9 4 num_heads:i kv_num_heads:i scale:f bits:i N:i K:i block_size:i axis:i alpha:f beta:f epsilon:f transA:i
  transB:i activation:s unidirectional:i do_rotary:i qkv_hidden_sizes:I rotary_embedding_dim:i interleaved:i
  channels_last:i gather_axis:i quantize_axis:i local_window_size:i opset:i group:i pads:I strides:I kernel_shape:I
)";

}  // namespace fuzz
