// PyTorch's vocabulary, built from the primitives. Names and semantics are PyTorch's, including broadcasting, dtype
// promotion, negative axes, NaN, infinities, ties and empty tensors. 16-bit floats are computed in f32 and rounded
// once, at the end of an operation. Nothing is computed here: each call adds nodes to the graph of its operands.
//
// Every function throws Error when called, before anything runs, if shapes do not fit, an axis does not exist, dtypes
// cannot be promoted or an option is invalid. The message names the user's line:
//   matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512 (at main.cpp:12)
// Data never causes an Error: an index out of range reads 0 and writes nothing.
#pragma once

#include "lightcone/macros_off.h"

#include <vector>

#include <utility>

#include "lightcone/ops/arguments.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/shape.h"

namespace lc {

// ---- arithmetic: operands broadcast (torch.broadcast_tensors) and promote (torch.result_type) ----
Tensor operator+(TensorOrNumber a, TensorOrNumber b);
Tensor operator-(TensorOrNumber a, TensorOrNumber b);
Tensor operator*(TensorOrNumber a, TensorOrNumber b);
Tensor operator/(TensorOrNumber a, TensorOrNumber b);  // true division; integers become f32
Tensor operator%(TensorOrNumber a, TensorOrNumber b);  // torch.remainder: sign of the divisor
Tensor operator-(Operand a);
// Sets a = a + b, and so on. As in PyTorch, a keeps its shape and element type. Throws Error if the result's differ.
Tensor& operator+=(Tensor& a, TensorOrNumber b);
Tensor& operator-=(Tensor& a, TensorOrNumber b);
Tensor& operator*=(Tensor& a, TensorOrNumber b);
Tensor& operator/=(Tensor& a, TensorOrNumber b);
Tensor& operator%=(Tensor& a, TensorOrNumber b);
enum class RoundingMode : std::uint8_t { None, Trunc, Floor };
Tensor add(TensorOrNumber a, TensorOrNumber b, Scalar alpha = 1);  // a + alpha b
Tensor sub(TensorOrNumber a, TensorOrNumber b, Scalar alpha = 1);
Tensor mul(TensorOrNumber a, TensorOrNumber b);
Tensor div(TensorOrNumber a, TensorOrNumber b, RoundingMode rounding_mode = RoundingMode::None);
Tensor neg(Operand a);
Tensor remainder(TensorOrNumber a, TensorOrNumber b);
Tensor fmod(TensorOrNumber a, TensorOrNumber b);  // sign of the dividend
Tensor floor_divide(TensorOrNumber a, TensorOrNumber b);
Tensor pow(TensorOrNumber a, TensorOrNumber b);
Tensor maximum(Operand a, Operand b);  // NaN propagates
Tensor minimum(Operand a, Operand b);
Tensor clamp(Operand a, OptionalTensorOrNumber min, OptionalTensorOrNumber max = {});  // min wins if min > max
Tensor clip(Operand a, OptionalTensorOrNumber min, OptionalTensorOrNumber max = {});   // same as clamp()
Tensor clamp_min(Operand a, TensorOrNumber min);
Tensor clamp_max(Operand a, TensorOrNumber max);
Tensor atan2(Operand y, Operand x);
Tensor hypot(Operand a, Operand b);
Tensor logaddexp(Operand a, Operand b);  // log(exp(a) + exp(b)), without overflow
Tensor logaddexp2(Operand a, Operand b);
Tensor xlogy(TensorOrNumber a, TensorOrNumber b);  // a log(b), but 0 where a is 0
Tensor lerp(Operand a, Operand b, TensorOrNumber weight);

// ---- comparisons and logic: results are bool -------------------------------------------------
Tensor operator<(TensorOrNumber a, TensorOrNumber b);
Tensor operator>(TensorOrNumber a, TensorOrNumber b);
Tensor operator<=(TensorOrNumber a, TensorOrNumber b);
Tensor operator>=(TensorOrNumber a, TensorOrNumber b);
Tensor lt(TensorOrNumber a, TensorOrNumber b);
Tensor gt(TensorOrNumber a, TensorOrNumber b);
Tensor le(TensorOrNumber a, TensorOrNumber b);
Tensor ge(TensorOrNumber a, TensorOrNumber b);
Tensor eq(TensorOrNumber a, TensorOrNumber b);  // not operator==, which containers of tensors need
Tensor ne(TensorOrNumber a, TensorOrNumber b);
Tensor logical_not(Operand a);
Tensor logical_and(Operand a, Operand b);
Tensor logical_or(Operand a, Operand b);
Tensor logical_xor(Operand a, Operand b);
Tensor isnan(Operand a);
Tensor isinf(Operand a);
Tensor isposinf(Operand a);
Tensor isneginf(Operand a);
Tensor isfinite(Operand a);
Tensor where(Operand condition, TensorOrNumber a, TensorOrNumber b);
Tensor masked_fill(Operand a, Operand mask, Scalar value);  // throws Error if a's type cannot hold the value
// Replaces NaN and infinities; the default for infinities is the largest and smallest number of the element type.
Tensor nan_to_num(Operand a, double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {});

// ---- unary: integers become f32 unless the result is an integer --------------------------------
Tensor abs(Operand a);
Tensor positive(Operand a);
Tensor sign(Operand a);
Tensor sgn(Operand a);      // same as sign()
Tensor signbit(Operand a);  // bool; true for -0, false for NaN
Tensor square(Operand a);
Tensor exp(Operand a);
Tensor exp2(Operand a);
Tensor expm1(Operand a);
Tensor log(Operand a);
Tensor log2(Operand a);
Tensor log10(Operand a);
Tensor log1p(Operand a);
Tensor sqrt(Operand a);
Tensor rsqrt(Operand a);
Tensor reciprocal(Operand a);
Tensor sin(Operand a);
Tensor cos(Operand a);
Tensor tan(Operand a);
Tensor asin(Operand a);
Tensor acos(Operand a);
Tensor atan(Operand a);
Tensor sinh(Operand a);
Tensor cosh(Operand a);
Tensor tanh(Operand a);
Tensor asinh(Operand a);
Tensor acosh(Operand a);
Tensor atanh(Operand a);
Tensor logit(Operand a, std::optional<double> eps = {});  // clamps a to [eps, 1 - eps] first if eps is given
Tensor erf(Operand a);
Tensor erfc(Operand a);
Tensor floor(Operand a);
Tensor ceil(Operand a);
Tensor trunc(Operand a);
Tensor frac(Operand a);
Tensor round(Operand a, int decimals = 0);  // ties to even
Tensor to(Operand a, DType dtype);

// ---- activations (torch.nn.functional) --------------------------------------------------------
Tensor sigmoid(Operand a);
Tensor logsigmoid(Operand a);
Tensor relu(Operand a);
Tensor relu6(Operand a);
Tensor leaky_relu(Operand a, double negative_slope = 0.01);
Tensor elu(Operand a, double alpha = 1.0);
Tensor selu(Operand a);
Tensor celu(Operand a, double alpha = 1.0);
Tensor gelu(Operand a, std::string_view approximate = "none");  // or "tanh"
Tensor gelu_tanh(Operand a);
Tensor silu(Operand a);
Tensor mish(Operand a);
Tensor softplus(Operand a, double beta = 1.0, double threshold = 20.0);
Tensor softsign(Operand a);
Tensor hardtanh(Operand a, Scalar low = -1, Scalar high = 1);
Tensor hardsigmoid(Operand a);
Tensor hardswish(Operand a);
Tensor hardshrink(Operand a, double lambda = 0.5);
Tensor softshrink(Operand a, double lambda = 0.5);
Tensor tanhshrink(Operand a);
Tensor threshold(Operand a, Scalar threshold, Scalar value);
Tensor prelu(Operand a, Operand weight);  // weight [1] or [channels]; axis 1 is channels
Tensor glu(Operand a, int axis = -1);

// ---- reductions over one or several axes (default: all); negative axes count from the end ----------
// Integers are summed as i64. `dtype` converts the elements first.
Tensor sum(Operand a, Axes axes = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor mean(Operand a, Axes axes = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor amax(Operand a, Axes axes = {}, bool keepdim = false);  // NaN propagates
Tensor amin(Operand a, Axes axes = {}, bool keepdim = false);
Tensor var(Operand a, Axes axes = {}, int correction = 1, bool keepdim = false);
// torch.std. After `using namespace lc`, write lc::std(x): the plain name also means the standard library.
Tensor std(Operand a, Axes axes = {}, int correction = 1, bool keepdim = false);
Tensor stddev(Operand a, Axes axes = {}, int correction = 1, bool keepdim = false);  // same as lc::std()
std::pair<Tensor, Tensor> var_mean(Operand a, Axes axes = {}, int correction = 1, bool keepdim = false);
std::pair<Tensor, Tensor> std_mean(Operand a, Axes axes = {}, int correction = 1, bool keepdim = false);
Tensor prod(Operand a);
Tensor prod(Operand a, int axis, bool keepdim = false);
Tensor norm(Operand a, double p = 2, Axes axes = {}, bool keepdim = false);  // torch.linalg.vector_norm
Tensor count_nonzero(Operand a, Axes axes = {});
Tensor logsumexp(Operand a, Axes axes = {}, bool keepdim = false);
Tensor argmax(Operand a, int axis, bool keepdim = false);  // the first of equal elements; i64
Tensor argmax(Operand a);                                  // over all elements in row-major order
Tensor argmin(Operand a);
Tensor argmin(Operand a, int axis, bool keepdim = false);
struct Extreme {
  Tensor values, indices;
};
Extreme max(Operand a, int axis, bool keepdim = false);  // amax and argmax along one axis
Extreme min(Operand a, int axis, bool keepdim = false);
Tensor max(Operand a);             // largest of all elements; throws Error if there are none
Tensor min(Operand a);             // smallest of all elements; throws Error if there are none
Tensor max(Operand a, Operand b);  // same as maximum()
Tensor min(Operand a, Operand b);
std::pair<Tensor, Tensor> aminmax(Operand a, Axes axes = {}, bool keepdim = false);
Tensor any(Operand a, Axes axes = {}, bool keepdim = false);
Tensor all(Operand a, Axes axes = {}, bool keepdim = false);
Tensor softmax(Operand a, int axis);
Tensor log_softmax(Operand a, int axis);
Tensor cumsum(Operand a, int axis);
Tensor cumprod(Operand a, int axis);
Extreme cummax(Operand a, int axis);  // the maximum so far and its index: the last of equal ones
Extreme cummin(Operand a, int axis);
Tensor logcumsumexp(Operand a, int axis);
Tensor softmin(Operand a, int axis);

// ---- indexing ---------------------------------------------------------------------------------
// Indices are integers. As in PyTorch a negative index is out of range here, but counts from the end in index() and
// x[i] (shape.h). An index out of range reads 0 and writes nothing; verify() and programs compiled with
// CompileOptions::checks throw Error.

// out[i, j, k] = a[i, index[i, j, k], k] for axis 1; out has the shape of index. Ranks are equal, and index is nowhere
// longer than a except along `axis`.
Tensor gather(Operand a, int axis, Operand index);
Tensor index_select(Operand a, int axis, Operand index);  // [.., n, ..], index [m] -> [.., m, ..]
// torch.nn.functional.embedding: ids [...], weight [n, d] -> [..., d]. The row `padding_idx` gets no gradient.
Tensor embedding(Operand ids, Operand weight, std::optional<std::int64_t> padding_idx = {});
Tensor one_hot(Operand ids, Dim num_classes);  // i64; classes are the last axis
// A copy of a with out[i, index[i, j, k], k] = src[i, j, k] for axis 1; the last of several writers wins. src has a's
// dtype and is nowhere shorter than index; index is nowhere longer than a except along `axis`.
Tensor scatter(Operand a, int axis, Operand index, Operand src);
Tensor scatter(Operand a, int axis, Operand index, Scalar value);
// Like scatter(), but adds the values.
Tensor scatter_add(Operand a, int axis, Operand index, Operand src);
// Adds whole slices: a [.., n, ..], index [m], src [.., m, ..] -> [.., n, ..].
Tensor index_add(Operand a, int axis, Operand index, Operand src);
// Like index_add(), but writes the slices.
Tensor index_copy(Operand a, int axis, Operand index, Operand src);
Tensor argsort(Operand a, int axis = -1, bool descending = false);  // i64 of a's shape; stable, NaN largest
struct Sorted {
  Tensor values, indices;
};
Sorted sort(Operand a, int axis = -1, bool descending = false);     // stable
Sorted topk(Operand a, Dim k, int axis = -1, bool largest = true);  // [.., n, ..] -> [.., k, ..], sorted; k <= n

// ---- linear algebra ---------------------------------------------------------------------------
Tensor matmul(Operand a, Operand b);       // torch.matmul: vectors, matrices, broadcast batches
Tensor linear(Operand x, Operand weight);  // x @ weight^T, weight [out, in]
Tensor linear(Operand x, Operand weight, Operand bias);
Tensor outer(Operand a, Operand b);
Tensor trace(Operand a);
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands,
              const Tensor::At& at = Tensor::At::current());
template <class... Operands>
  requires(std::convertible_to<const Operands&, Operand> && ...)
Tensor einsum(std::string_view equation, const Operand& first, const Operands&... more) {
  return einsum(equation, std::vector<Tensor>{first, more...}, first.at);
}

// ---- convolution and pooling; NC... layout, 1 to 3 spatial axes ----------------------------------

// Options of conv() and conv_transpose(); conv.h has conv1d and so on with PyTorch's arguments.
struct ConvOptions {
  IntList stride = 1, padding = 0, dilation = 1;  // one number for all axes, or one each
  int groups = 1;
  IntList output_padding = 0;  // for conv_transpose only
};
// torch.nn.functional.conv1d to conv3d by rank: x [b, in, n...] or one sample [in, n...], weight [out, in / groups,
// k...], bias [out] -> [b, out, m...] with m = (n + 2 padding - dilation (k - 1) - 1) / stride + 1.
Tensor conv(Operand x, Operand weight, const ConvOptions& o = {});
Tensor conv(Operand x, Operand weight, OptionalOperand bias, const ConvOptions& o = {});
// torch.nn.functional.conv_transpose1d to 3d by rank: x [b, in, n...] or one sample, weight [in, out / groups, k...],
// bias [out] -> [b, out, m...] with m = (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
Tensor conv_transpose(Operand x, Operand weight, const ConvOptions& o = {});
Tensor conv_transpose(Operand x, Operand weight, OptionalOperand bias, const ConvOptions& o = {});
// Max pooling [b, c, n...] -> [b, c, m...], with m as in conv(). The default stride is the kernel size; padding is at
// most half of it. `ceil_mode` allows a last window that begins inside and ends outside.
Tensor max_pool(Operand x, IntList kernel, IntList stride = {}, IntList padding = 0, IntList dilation = 1,
                bool ceil_mode = false);
// Average pooling, with arguments as in max_pool().
Tensor avg_pool(Operand x, IntList kernel, IntList stride = {}, IntList padding = 0, bool ceil_mode = false,
                bool count_include_pad = true);
// Averages windows of adaptive size: [b, c, n...] -> [b, c, output...]; extents must be numbers.
Tensor adaptive_avg_pool(Operand x, IntList output);
// Like adaptive_avg_pool(), with maxima.
Tensor adaptive_max_pool(Operand x, IntList output);
enum class Interpolation : std::uint8_t { Nearest, Bilinear };
// Resizes [b, c, n...] -> [b, c, size...]; extents must be numbers. Bilinear interpolates linearly along each axis.
Tensor interpolate(Operand x, std::vector<int> size, Interpolation mode, bool align_corners = false);
Tensor pixel_shuffle(Operand x, int factor);    // [..., c f^2, h, w] -> [..., c, h f, w f]
Tensor pixel_unshuffle(Operand x, int factor);  // [..., c, h f, w f] -> [..., c f^2, h, w]

// ---- normalisation (torch.nn.functional) ----------------------------------------------------------

// Normalises over the last axes, whose extents are `normalized_shape`; weight and bias have this shape.
Tensor layer_norm(Operand x, const Shape& normalized_shape, OptionalOperand weight = {}, OptionalOperand bias = {},
                  double eps = 1e-5);
// x / sqrt(mean(x^2) + eps). The default eps is the spacing of x's type at 1: 2^-23 for f32 and 16-bit floats.
Tensor rms_norm(Operand x, const Shape& normalized_shape, OptionalOperand weight = {}, std::optional<double> eps = {});
// x [batch, channels, ...]; weight and bias [channels].
Tensor group_norm(Operand x, int num_groups, OptionalOperand weight = {}, OptionalOperand bias = {}, double eps = 1e-5);
// Normalises by running_mean and running_var [channels] or, if training, by the batch's mean and variance. In training,
// given running statistics must be inputs of the graph; each run moves them by `momentum`.
Tensor batch_norm(Operand x, OptionalOperand running_mean, OptionalOperand running_var, OptionalOperand weight = {},
                  OptionalOperand bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5);
// Normalises each channel of each sample over its spatial axes; running statistics as in batch_norm, averaged over the
// batch.
Tensor instance_norm(Operand x, OptionalOperand running_mean = {}, OptionalOperand running_var = {},
                     OptionalOperand weight = {}, OptionalOperand bias = {}, bool use_input_stats = true,
                     double momentum = 0.1, double eps = 1e-5);
Tensor normalize(Operand x, double p = 2, int axis = 1, double eps = 1e-12);
Tensor cosine_similarity(Operand a, Operand b, int axis = 1, double eps = 1e-8);

// ---- attention ----------------------------------------------------------------------------------
class Random;
// Options of scaled_dot_product_attention().
struct AttentionOptions {
  Tensor attn_mask = {};             // broadcasts to [..., h, s, t]; bool (true: attend), or added to the scores
  double dropout_p = 0;              // dropout of the attention weights; needs `random`
  bool is_causal = false;            // query i attends to keys 0 to i that the mask also allows
  std::optional<double> scale = {};  // default: 1 / sqrt(d)
  Random* random = nullptr;
};
// q [..., h, s, d], k and v [..., kv, t, d] with kv dividing h (grouped-query attention) -> [..., h, s, d]. A row
// without a key to attend to is NaN.
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, const AttentionOptions& o);
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, OptionalOperand attn_mask = {},
                                    double dropout_p = 0, bool is_causal = false, std::optional<double> scale = {});
// Rotary embedding of x [..., s, d] by angles [s, d / 2]. Pairs are neighbours (2i, 2i + 1) if interleaved, else the
// two halves (i, i + d / 2).
Tensor rope(Operand x, Operand cos, Operand sin, bool interleaved);

}  // namespace lc
#include "lightcone/macros_on.h"
