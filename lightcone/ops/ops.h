// PyTorch's vocabulary, written in the twelve. Names and semantics are PyTorch's: broadcasting,
// dtype promotion, negative axes, NaN, infinities, ties and empty tensors included; halves (f16, bf16)
// are computed in f32 and rounded once, at the end of an operation. Nothing computes here; each call
// adds nodes to the graph of its operands.
//
// Every function throws an lc::Error when shapes do not fit, an axis does not exist, dtypes cannot
// meet or an option makes no sense: when it is called, before anything runs. It carries the user's line:
//   matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512 (at main.cpp:12)
// What depends on data never throws: an index out of range reads 0 and writes nothing.
#pragma once

#include <vector>

#include "lightcone/core/tensor.h"

namespace lc {

// ---- arithmetic: operands broadcast (torch.broadcast_tensors) and promote (torch.result_type) ----
Tensor operator+(Operand a, Operand b);
Tensor operator-(Operand a, Operand b);
Tensor operator*(Operand a, Operand b);
Tensor operator/(Operand a, Operand b);  // true division; integers become f32
Tensor operator%(Operand a, Operand b);  // torch.remainder: the sign of the divisor
Tensor operator-(Operand a);
Tensor operator+(Operand a, double b);  // a scalar never widens a floating tensor
Tensor operator-(Operand a, double b);
Tensor operator*(Operand a, double b);
Tensor operator/(Operand a, double b);
Tensor operator%(Operand a, double b);
Tensor operator+(double a, Operand b);
Tensor operator-(double a, Operand b);
Tensor operator*(double a, Operand b);
Tensor operator/(double a, Operand b);
Tensor fmod(Operand a, Operand b);  // the sign of the dividend
Tensor floor_divide(Operand a, Operand b);
Tensor pow(Operand a, Operand b);
Tensor pow(Operand a, double b);
Tensor maximum(Operand a, Operand b);  // NaN wins
Tensor minimum(Operand a, Operand b);
Tensor clamp(Operand a, double low, double high);
inline Tensor clip(Operand a, double low, double high) { return clamp(a, low, high); }
Tensor atan2(Operand y, Operand x);
Tensor hypot(Operand a, Operand b);
Tensor logaddexp(Operand a, Operand b);  // log(exp(a) + exp(b)) without overflow
Tensor xlogy(Operand a, Operand b);      // a log(b), 0 where a is 0
Tensor lerp(Operand a, Operand b, double weight);

// ---- comparisons and logic: results are bool -------------------------------------------------
Tensor operator<(Operand a, Operand b);
Tensor operator>(Operand a, Operand b);
Tensor operator<=(Operand a, Operand b);
Tensor operator>=(Operand a, Operand b);
Tensor operator<(Operand a, double b);
Tensor operator>(Operand a, double b);
Tensor operator<=(Operand a, double b);
Tensor operator>=(Operand a, double b);
Tensor eq(Operand a, Operand b);
Tensor ne(Operand a, Operand b);
Tensor eq(Operand a, double b);
Tensor logical_not(Operand a);
Tensor logical_and(Operand a, Operand b);
Tensor logical_or(Operand a, Operand b);
Tensor logical_xor(Operand a, Operand b);
Tensor isnan(Operand a);
Tensor isinf(Operand a);
Tensor isfinite(Operand a);
Tensor where(Operand condition, Operand a, Operand b);
Tensor where(Operand condition, Operand a, double b);
Tensor masked_fill(Operand a, Operand mask, double value);
Tensor nan_to_num(Operand a, double nan = 0);  // infinities become the dtype's largest numbers

// ---- unary: integers become f32 where the result is not whole ---------------------------------
Tensor abs(Operand a);
Tensor sign(Operand a);
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
Tensor logit(Operand a);
Tensor erf(Operand a);
Tensor erfc(Operand a);
Tensor floor(Operand a);
Tensor ceil(Operand a);
Tensor trunc(Operand a);
Tensor frac(Operand a);
Tensor round(Operand a);  // halves to even
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
Tensor gelu(Operand a);       // approximate="none"
Tensor gelu_tanh(Operand a);  // approximate="tanh"
Tensor silu(Operand a);
Tensor mish(Operand a);
Tensor softplus(Operand a, double beta = 1.0, double threshold = 20.0);
Tensor softsign(Operand a);
Tensor hardtanh(Operand a, double low = -1, double high = 1);
Tensor hardsigmoid(Operand a);
Tensor hardswish(Operand a);
Tensor hardshrink(Operand a, double lambda = 0.5);
Tensor softshrink(Operand a, double lambda = 0.5);
Tensor tanhshrink(Operand a);
Tensor threshold(Operand a, double threshold, double value);
Tensor prelu(Operand a, Operand weight);  // weight [1] or [channels]; channels are axis 1
Tensor glu(Operand a, int axis = -1);

// ---- reductions over `axes` (none given: all), negative axes count from the end -----------------
using Axes = std::vector<int>;
Tensor sum(Operand a, Axes axes = {}, bool keepdim = false);  // integers as i64
Tensor mean(Operand a, Axes axes = {}, bool keepdim = false);
Tensor amax(Operand a, Axes axes = {}, bool keepdim = false);  // NaN wins
Tensor amin(Operand a, Axes axes = {}, bool keepdim = false);
Tensor var(Operand a, Axes axes = {}, int correction = 1, bool keepdim = false);
Tensor stddev(Operand a, Axes axes = {}, int correction = 1, bool keepdim = false);  // torch.std
Tensor prod(Operand a);
Tensor prod(Operand a, int axis, bool keepdim = false);
Tensor norm(Operand a, double p = 2, Axes axes = {}, bool keepdim = false);  // torch.linalg.vector_norm
Tensor count_nonzero(Operand a, Axes axes = {});
Tensor logsumexp(Operand a, Axes axes = {}, bool keepdim = false);
Tensor argmax(Operand a, int axis, bool keepdim = false);  // the first of equals; i64
Tensor argmax(Operand a);                                  // of all elements in row-major order
Tensor argmin(Operand a);
Tensor argmin(Operand a, int axis, bool keepdim = false);
struct Extreme {
  Tensor values, indices;
};
Extreme max(Operand a, int axis, bool keepdim = false);  // amax and argmax of one axis
Extreme min(Operand a, int axis, bool keepdim = false);
Tensor any(Operand a, Axes axes = {}, bool keepdim = false);
Tensor all(Operand a, Axes axes = {}, bool keepdim = false);
Tensor softmax(Operand a, int axis);
Tensor log_softmax(Operand a, int axis);
Tensor cumsum(Operand a, int axis);
Tensor cumprod(Operand a, int axis);
Tensor cummax(Operand a, int axis);  // the values
Tensor cummin(Operand a, int axis);
Tensor logcumsumexp(Operand a, int axis);
Tensor softmin(Operand a, int axis);

// ---- shapes -----------------------------------------------------------------------------------
Tensor broadcast_to(Operand a, Shape shape);
Tensor flatten(Operand a, int first = 0, int last = -1);
Tensor concat(const std::vector<Tensor>& parts, int axis, const Tensor::At& at = Tensor::At::current());  // torch.cat
Tensor stack(const std::vector<Tensor>& parts, int axis, const Tensor::At& at = Tensor::At::current());
std::vector<Tensor> split(Operand a, const std::vector<Dim>& sizes, int axis);
std::vector<Tensor> chunk(Operand a, int chunks, int axis);
Tensor slice(Operand a, int axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1);  // Python's rules
enum class PadMode : std::uint8_t { Constant, Reflect, Replicate, Circular };
// [.., n, ..] -> [.., before + n + after, ..]. Negative numbers cut, in Constant mode alone. Reflect leaves
// the edge out and needs n above both, Circular needs n to reach both, Replicate needs n >= 1.
Tensor pad(Operand a, int axis, int before, int after, PadMode mode = PadMode::Constant, double value = 0);
Tensor roll(Operand a, std::int64_t shift, int axis);
Tensor repeat(Operand a, const std::vector<int>& times);
Tensor repeat_interleave(Operand a, int times, int axis);
Tensor flip(Operand a, const Axes& axes);
Tensor movedim(Operand a, int from, int to);
std::vector<Tensor> unbind(Operand a, int axis = 0);
Tensor diff(Operand a, int axis = -1);
Tensor diagonal(Operand a, int offset = 0, int axis1 = 0, int axis2 = 1);
Tensor tril(Operand a, int diagonal = 0);
Tensor triu(Operand a, int diagonal = 0);
Tensor arange(Graph& g, Dim n, DType dtype = DType::I64, const Tensor::At& at = Tensor::At::current());
Tensor arange(Graph& g, std::int64_t from, std::int64_t to, std::int64_t step, DType dtype = DType::I64,
              const Tensor::At& at = Tensor::At::current());
Tensor eye(Graph& g, Dim n, DType dtype = DType::F32, const Tensor::At& at = Tensor::At::current());
Tensor linspace(Graph& g, double from, double to, int steps, const Tensor::At& at = Tensor::At::current());

// ---- indexing ---------------------------------------------------------------------------------
// Indices are integers; a negative one is out of range, not counted from the end.
// out has the shape of index: out[i, j, k] = a[i, index[i, j, k], k] for axis 1. The ranks are equal, and
// index is nowhere longer than a, `axis` aside.
Tensor gather(Operand a, int axis, Operand index);
Tensor index_select(Operand a, int axis, Operand index);  // [.., n, ..], index [m] -> [.., m, ..]
Tensor embedding(Operand weight, Operand ids);            // [n, d], ids [...] -> [..., d]
Tensor one_hot(Operand ids, Dim classes);                 // i64, classes last
// A copy of a (shape and dtype of a) with out[i, index[i, j, k], k] = src[i, j, k] for axis 1; the last of
// several writers wins, or all are added. src has a's dtype and is nowhere shorter than index; index is
// nowhere longer than a, `axis` aside.
Tensor scatter(Operand a, int axis, Operand index, Operand src);
Tensor scatter(Operand a, int axis, Operand index, double value);
Tensor scatter_add(Operand a, int axis, Operand index, Operand src);
// The same for whole slices: a [.., n, ..], index [m], src [.., m, ..] -> [.., n, ..].
Tensor index_add(Operand a, int axis, Operand index, Operand src);
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

// ---- convolution and pooling; NC... layout, 1 to 3 spatial axes ----------------------------------
struct ConvOptions {
  std::vector<int> stride = {1}, padding = {0}, dilation = {1};  // one number for all axes, or one each
  int groups = 1;
  std::vector<int> output_padding = {0};  // conv_transpose alone
};
// conv1d, conv2d and conv3d by rank: x [b, in, n...], weight [out, in / groups, k...], bias [out]
// -> [b, out, m...] with m = (n + 2 padding - dilation (k - 1) - 1) / stride + 1.
Tensor conv(Operand x, Operand weight, const ConvOptions& o = {});
Tensor conv(Operand x, Operand weight, Operand bias, const ConvOptions& o = {});
// conv_transpose1d to 3d: x [b, in, n...], weight [in, out / groups, k...], bias [out] -> [b, out, m...] with
// m = (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
Tensor conv_transpose(Operand x, Operand weight, const ConvOptions& o = {});
Tensor conv_transpose(Operand x, Operand weight, Operand bias, const ConvOptions& o = {});
// Pools: [b, c, n...] -> [b, c, m...], m as in conv; no stride given means the kernel's, padding is at most
// half of the kernel. `ceil_mode` lets a last window begin inside and end outside.
Tensor max_pool(Operand x, std::vector<int> kernel, std::vector<int> stride = {}, std::vector<int> padding = {0},
                std::vector<int> dilation = {1}, bool ceil_mode = false);
Tensor avg_pool(Operand x, std::vector<int> kernel, std::vector<int> stride = {}, std::vector<int> padding = {0},
                bool ceil_mode = false, bool count_include_pad = true);
// [b, c, n...] -> [b, c, output...], for extents that are numbers.
Tensor adaptive_avg_pool(Operand x, std::vector<int> output);
Tensor adaptive_max_pool(Operand x, std::vector<int> output);
enum class Interpolation : std::uint8_t { Nearest, Bilinear };
// [b, c, n...] -> [b, c, size...], for extents that are numbers; Bilinear is linear along each of them.
Tensor interpolate(Operand x, std::vector<int> size, Interpolation mode, bool align_corners = false);
Tensor pixel_shuffle(Operand x, int factor);    // [..., c f^2, h, w] -> [..., c, h f, w f]
Tensor pixel_unshuffle(Operand x, int factor);  // [..., c, h f, w f] -> [..., c f^2, h, w]

// ---- normalisation ------------------------------------------------------------------------------
Tensor layer_norm(Operand x, int axes, double eps = 1e-5);  // over the last `axes` axes, no affine part
Tensor layer_norm(Operand x, int axes, Operand weight, Operand bias, double eps = 1e-5);
Tensor rms_norm(Operand x, double eps = 1e-6);  // over the last axis
Tensor rms_norm(Operand x, Operand weight, double eps = 1e-6);
Tensor group_norm(Operand x, int groups, double eps = 1e-5);
Tensor group_norm(Operand x, int groups, Operand weight, Operand bias, double eps = 1e-5);  // [channels]
Tensor instance_norm(Operand x, double eps = 1e-5);
Tensor normalize(Operand x, double p = 2, int axis = 1, double eps = 1e-12);
Tensor cosine_similarity(Operand a, Operand b, int axis = 1, double eps = 1e-8);
Tensor batch_norm(Operand x, Operand mean, Operand var, Operand weight, Operand bias, double eps = 1e-5);

// ---- attention ----------------------------------------------------------------------------------
// q [..., h, s, d], k and v [..., kv, t, d] with kv dividing h (grouped queries); mask
// broadcasts to [..., h, s, t] and is bool (true: look) or is added to the scores. A row that may
// look nowhere is NaN. scale 0 means 1 / sqrt(d); causal: query i looks at keys 0 to i.
struct AttentionOptions {
  double scale = 0;
  bool causal = false;
};
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, double scale = 0);
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, const AttentionOptions& o);
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, Operand mask, double scale = 0);
// Rotary embedding of x [..., s, d] by angles [s, d / 2]: pairs are neighbours (2i, 2i + 1), or
// the two halves (i, i + d / 2).
Tensor rope(Operand x, Operand cos, Operand sin, bool interleaved);

}  // namespace lc
