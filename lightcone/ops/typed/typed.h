// The typed face: shapes the C++ compiler checks.
//
//   using lc::typed::Tensor;
//   Tensor<float, "batch", 784> x = lc::typed::input<float, "batch", 784>(g, "x");
//   Tensor<float, 784, 10> w = ...;
//   auto y = softmax<-1>(matmul(x, w));          // Tensor<float, "batch", 10>
//
// An extent is a number, a name, or lc::typed::dyn (known when the graph is built). A typed tensor
// is an untyped lc::Tensor, so every untyped operation takes it and gives an untyped result;
// Tensor<...>::from(t) and as<...>() make a promise out of what is only known at run time, and
// check it when the graph is built.
//
// A mistake is one error, and its first line says it in words:
//   matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512
// Overloads are not constrained: g++ 12 cannot print such types when it is overload resolution that
// fails, so operations accept everything and assert (require, in typed_tensor.h).
// The line that follows ("required from here") is the user's.
//
// `using namespace lc` and `using lc::typed::Tensor` in one scope make the name Tensor ambiguous;
// in a function, after a `using namespace lc` outside it, the second one wins.
//
// Extents, axes and sizes are template arguments, everything else an argument: sum<0, 2>(x),
// reshape<"batch", 12, 64>(x), conv2d<2, 1>(x, w). Semantics are those of ops.h.
#pragma once

#include "lightcone/ops/typed/tensor.h"

namespace lc::typed {

#define LC_AT const At& at = At::current()
#define LC_OUT(R, RULE)        \
  constexpr Inferred r = RULE; \
  require<r.error>();          \
  return wrap_as<R, r.out>

// An input of the graph; `dims` has an extent for each dyn, in order.
template <class E, Dim... D>
Tensor<E, D...> input(Graph& g, const char* name, std::initializer_list<lc::Dim> dims = {}, LC_AT) {
  return Tensor<E, D...>::from(make_input(g, name, Tensor<E, D...>::static_shape, dtype_of<E>::value, dims, at), at);
}

// ---- elementwise --------------------------------------------------------------------------------------
#define LC_UNARY(f, RESULT)                                                            \
  template <class E, Dim... A>                                                         \
  Tensor<RESULT, A...> f(const Tensor<E, A...>& a, LC_AT) {                            \
    return wrap_as<RESULT, Tensor<RESULT, A...>::static_shape>(lc::f(Operand(a, at))); \
  }
LC_UNARY(abs, E)
LC_UNARY(sign, E)
LC_UNARY(square, E)
LC_UNARY(floor, E)
LC_UNARY(ceil, E)
LC_UNARY(round, E)
LC_UNARY(trunc, E)
LC_UNARY(relu, E)
LC_UNARY(exp, FloatOf<E>)
LC_UNARY(exp2, FloatOf<E>)
LC_UNARY(expm1, FloatOf<E>)
LC_UNARY(log, FloatOf<E>)
LC_UNARY(log2, FloatOf<E>)
LC_UNARY(log1p, FloatOf<E>)
LC_UNARY(sqrt, FloatOf<E>)
LC_UNARY(rsqrt, FloatOf<E>)
LC_UNARY(reciprocal, FloatOf<E>)
LC_UNARY(sin, FloatOf<E>)
LC_UNARY(cos, FloatOf<E>)
LC_UNARY(tan, FloatOf<E>)
LC_UNARY(tanh, FloatOf<E>)
LC_UNARY(erf, FloatOf<E>)
LC_UNARY(sigmoid, FloatOf<E>)
LC_UNARY(logsigmoid, FloatOf<E>)
LC_UNARY(selu, FloatOf<E>)
LC_UNARY(gelu, FloatOf<E>)
LC_UNARY(gelu_tanh, FloatOf<E>)
LC_UNARY(silu, FloatOf<E>)
LC_UNARY(mish, FloatOf<E>)
LC_UNARY(softplus, FloatOf<E>)
LC_UNARY(softsign, FloatOf<E>)
LC_UNARY(hardsigmoid, FloatOf<E>)
LC_UNARY(hardswish, FloatOf<E>)
LC_UNARY(isnan, bool)
LC_UNARY(isinf, bool)
LC_UNARY(isfinite, bool)
LC_UNARY(logical_not, bool)
#undef LC_UNARY
template <class E, Dim... A>
Tensor<E, A...> leaky_relu(const Tensor<E, A...>& a, double negative_slope = 0.01, LC_AT) {
  static_assert(kFloating<E>, "leaky_relu: needs a floating tensor");
  return wrap_as<E, Tensor<E, A...>::static_shape>(lc::leaky_relu(Operand(a, at), negative_slope));
}
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> elu(const Tensor<E, A...>& a, double alpha = 1, LC_AT) {
  return wrap_as<FloatOf<E>, Tensor<E, A...>::static_shape>(lc::elu(Operand(a, at), alpha));
}
template <class E, Dim... A, Number L, Number H>
auto clamp(const Tensor<E, A...>& a, L low, H high, LC_AT) {
  using R = WithScalar<E, std::common_type_t<L, H>>;
  return wrap_as<R, Tensor<E, A...>::static_shape>(
      lc::clamp(lc::to(Operand(a, at), dtype_of<R>::value), static_cast<double>(low), static_cast<double>(high)));
}
template <class E, Dim... A>
Tensor<E, A...> pow(const Tensor<E, A...>& a, double exponent, LC_AT) {
  static_assert(kFloating<E>, "pow: needs a floating tensor");
  return wrap_as<E, Tensor<E, A...>::static_shape>(lc::pow(Operand(a, at), exponent));
}
template <class To, class E, Dim... A>
Tensor<To, A...> to(const Tensor<E, A...>& a, LC_AT) {
  return wrap_as<To, Tensor<E, A...>::static_shape>(lc::to(Operand(a, at), dtype_of<To>::value));
}

#define LC_BINARY(f, RESULT)                                                                          \
  template <class E, Dim... A, class F, Dim... B>                                                     \
  auto f(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {                                 \
    require<same_elements<E, F>(#f)>();                                                               \
    LC_OUT(RESULT, infer_broadcast(#f, Tensor<E, A...>::static_shape, Tensor<F, B...>::static_shape)) \
    (lc::f(Operand(a, at), Operand(b, at)));                                                          \
  }
LC_BINARY(maximum, E)
LC_BINARY(minimum, E)
LC_BINARY(pow, E)
LC_BINARY(fmod, E)
LC_BINARY(floor_divide, E)
LC_BINARY(eq, bool)
LC_BINARY(ne, bool)
LC_BINARY(logical_and, bool)
LC_BINARY(logical_or, bool)
LC_BINARY(logical_xor, bool)
#undef LC_BINARY

template <class C, Dim... M, class E, Dim... A, class F, Dim... B>
auto where(const Tensor<C, M...>& condition, const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  static_assert(std::is_same_v<C, bool>, "where: the condition is a tensor of bool");
  require<same_elements<E, F>("where")>();
  constexpr Inferred ab = infer_broadcast("where", Tensor<E, A...>::static_shape, Tensor<F, B...>::static_shape);
  require<ab.error>();
  LC_OUT(E, infer_broadcast("where", Tensor<C, M...>::static_shape, ab.out))(lc::where(Operand(condition, at), a, b));
}
template <class E, Dim... A, Dim... M>
auto masked_fill(const Tensor<E, A...>& a, const Tensor<bool, M...>& mask, double value, LC_AT) {
  LC_OUT(E, infer_broadcast("masked_fill", Tensor<E, A...>::static_shape, Tensor<bool, M...>::static_shape))
  (lc::to(lc::masked_fill(Operand(a, at), mask, value), dtype_of<E>::value));
}

// ---- products -----------------------------------------------------------------------------------------
template <class E, Dim... A, class F, Dim... B>
auto matmul(const Tensor<E, A...>& a, const Tensor<F, B...>& b, const At& at) {
  require<same_elements<E, F>("matmul")>();
  LC_OUT(E, infer_matmul(Tensor<E, A...>::static_shape, Tensor<F, B...>::static_shape))
  (lc::matmul(Operand(a, at), Operand(b, at)));
}
// x [..., in], weight [out, in] -> [..., out]
template <class E, Dim... A, class F, Dim... W>
auto linear(const Tensor<E, A...>& x, const Tensor<F, W...>& weight, LC_AT) {
  require<same_elements<E, F>("linear")>();
  LC_OUT(E, infer_linear(Tensor<E, A...>::static_shape, Tensor<F, W...>::static_shape))
  (lc::linear(Operand(x, at), weight));
}
template <class E, Dim... A, class F, Dim... W, class G, Dim... B>
auto linear(const Tensor<E, A...>& x, const Tensor<F, W...>& weight, const Tensor<G, B...>& bias, LC_AT) {
  require<same_elements<E, F>("linear")>();
  require<same_elements<E, G>("linear")>();
  constexpr Inferred y = infer_linear(Tensor<E, A...>::static_shape, Tensor<F, W...>::static_shape);
  require<y.error>();
  LC_OUT(E, infer_broadcast("operator+", y.out, Tensor<G, B...>::static_shape))
  (lc::linear(Operand(x, at), weight, bias));
}
#define LC_CONV(f, SPATIAL)                                                                                          \
  template <int Stride = 1, int Padding = 0, int Dilation = 1, int Groups = 1, class E, Dim... A, class F, Dim... W> \
  auto f(const Tensor<E, A...>& x, const Tensor<F, W...>& weight, LC_AT) {                                           \
    static_assert(Stride > 0 && Padding >= 0 && Dilation > 0,                                                        \
                  "conv: stride and dilation are positive, the padding not negative");                               \
    require<same_elements<E, F>("conv")>();                                                                          \
    constexpr Window o{Stride, Padding, Dilation, Groups};                                                           \
    LC_OUT(E, infer_conv(Tensor<E, A...>::static_shape, Tensor<F, W...>::static_shape, SPATIAL, o))                  \
    (lc::conv(Operand(x, at), weight,                                                                                \
              {.stride = {Stride}, .padding = {Padding}, .dilation = {Dilation}, .groups = Groups}));                \
  }
LC_CONV(conv1d, 1)
LC_CONV(conv2d, 2)
LC_CONV(conv3d, 3)
#undef LC_CONV
#define LC_POOL(f, SPATIAL, OP)                                                         \
  template <int Kernel, int Stride = Kernel, int Padding = 0, class E, Dim... A>        \
  auto f(const Tensor<E, A...>& x, LC_AT) {                                             \
    static_assert(Kernel > 0 && Stride > 0 && Padding >= 0,                             \
                  "pooling: kernel and stride are positive, the padding not negative"); \
    constexpr Window o{Stride, Padding, 1, 1};                                          \
    LC_OUT(E, infer_pool(#OP, Tensor<E, A...>::static_shape, SPATIAL, Kernel, o))       \
    (lc::OP(Operand(x, at), {Kernel}, {Stride}, {Padding}));                            \
  }
LC_POOL(max_pool1d, 1, max_pool)
LC_POOL(max_pool2d, 2, max_pool)
LC_POOL(avg_pool1d, 1, avg_pool)
LC_POOL(avg_pool2d, 2, avg_pool)
#undef LC_POOL
// q [..., h, s, d], k and v [..., kv, t, d]; without a mask, or with a bool one that broadcasts to
// [..., h, s, t].
template <class E, Dim... Q, class F, Dim... K, class G, Dim... V>
auto scaled_dot_product_attention(const Tensor<E, Q...>& q, const Tensor<F, K...>& k, const Tensor<G, V...>& v, LC_AT) {
  require<same_elements<E, F>("scaled_dot_product_attention")>();
  require<same_elements<E, G>("scaled_dot_product_attention")>();
  LC_OUT(E,
         infer_attention(Tensor<E, Q...>::static_shape, Tensor<F, K...>::static_shape, Tensor<G, V...>::static_shape))
  (lc::scaled_dot_product_attention(Operand(q, at), k, v));
}
template <class E, Dim... Q, class F, Dim... K, class G, Dim... V, Dim... M>
auto scaled_dot_product_attention(const Tensor<E, Q...>& q, const Tensor<F, K...>& k, const Tensor<G, V...>& v,
                                  const Tensor<bool, M...>& mask, LC_AT) {
  require<same_elements<E, F>("scaled_dot_product_attention")>();
  require<same_elements<E, G>("scaled_dot_product_attention")>();
  constexpr Shape a = Tensor<E, Q...>::static_shape, b = Tensor<F, K...>::static_shape;
  constexpr Inferred scores = infer_scores(a, b, Tensor<bool, M...>::static_shape);
  require<scores.error>();
  LC_OUT(E, infer_attention(a, b, Tensor<G, V...>::static_shape))
  (lc::scaled_dot_product_attention(Operand(q, at), k, v, mask));
}

// ---- reductions: sum<1>(x), mean<0, 2>(x), sum(x) over all, sum<1>(x, keepdim) ------------------------
inline constexpr struct Keepdim {
} keepdim;
#define LC_REDUCE(f, RESULT, SOME)                                                                      \
  template <int... Axes, class E, Dim... A>                                                             \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                             \
    constexpr int axes[] = {Axes..., 0};                                                                \
    LC_OUT(RESULT, infer_reduce(#f, Tensor<E, A...>::static_shape, axes, sizeof...(Axes), false, SOME)) \
    (lc::f(Operand(a, at), {Axes...}));                                                                 \
  }                                                                                                     \
  template <int... Axes, class E, Dim... A>                                                             \
  auto f(const Tensor<E, A...>& a, Keepdim, LC_AT) {                                                    \
    constexpr int axes[] = {Axes..., 0};                                                                \
    LC_OUT(RESULT, infer_reduce(#f, Tensor<E, A...>::static_shape, axes, sizeof...(Axes), true, SOME))  \
    (lc::f(Operand(a, at), {Axes...}, LC_KEEP));                                                        \
  }
#define LC_KEEP true
LC_REDUCE(sum, SumOf<E>, false)
LC_REDUCE(mean, FloatOf<E>, false)
LC_REDUCE(amax, E, true)
LC_REDUCE(amin, E, true)
LC_REDUCE(logsumexp, FloatOf<E>, false)
LC_REDUCE(any, bool, false)
LC_REDUCE(all, bool, false)
#undef LC_KEEP
#define LC_KEEP 1, true  // the correction comes first
LC_REDUCE(var, FloatOf<E>, false)
LC_REDUCE(stddev, FloatOf<E>, false)
#undef LC_KEEP
#undef LC_REDUCE
#define LC_ARG(f)                                                                               \
  template <int Axis, class E, Dim... A>                                                        \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                     \
    constexpr int axes[] = {Axis};                                                              \
    LC_OUT(std::int64_t, infer_reduce(#f, Tensor<E, A...>::static_shape, axes, 1, false, true)) \
    (lc::f(Operand(a, at), Axis));                                                              \
  }
LC_ARG(argmax)
LC_ARG(argmin)
#undef LC_ARG
#define LC_ALONG(f, RESULT)                                                                            \
  template <int Axis, class E, Dim... A>                                                               \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                            \
    LC_OUT(RESULT, infer_along(#f, Tensor<E, A...>::static_shape, Axis))(lc::f(Operand(a, at), Axis)); \
  }
LC_ALONG(softmax, FloatOf<E>)
LC_ALONG(log_softmax, FloatOf<E>)
LC_ALONG(cumsum, SumOf<E>)
LC_ALONG(cumprod, SumOf<E>)
LC_ALONG(cummax, E)
LC_ALONG(argsort, std::int64_t)
#undef LC_ALONG

// ---- normalisation: over the last axis; over the last axis; channels in groups --------------------------
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> layer_norm(const Tensor<E, A...>& a, double eps = 1e-5, LC_AT) {
  LC_OUT(FloatOf<E>, infer_along("layer_norm", Tensor<E, A...>::static_shape, -1))
  (lc::layer_norm(Operand(a, at), 1, eps));
}
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> rms_norm(const Tensor<E, A...>& a, double eps = 1e-6, LC_AT) {
  LC_OUT(FloatOf<E>, infer_along("rms_norm", Tensor<E, A...>::static_shape, -1))(lc::rms_norm(Operand(a, at), eps));
}
template <int Groups, class E, Dim... A>
Tensor<FloatOf<E>, A...> group_norm(const Tensor<E, A...>& a, double eps = 1e-5, LC_AT) {
  LC_OUT(FloatOf<E>, infer_group_norm(Tensor<E, A...>::static_shape, Groups))
  (lc::group_norm(Operand(a, at), Groups, eps));
}

// ---- shapes -------------------------------------------------------------------------------------------
template <Dim... To, class E, Dim... A>
auto reshape(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_reshape(Tensor<E, A...>::static_shape, Tensor<E, To...>::static_shape))
  (a.lc::Tensor::reshape(reshape_to(a, r.out), at));
}
template <Dim... To, class E, Dim... A>
auto broadcast_to(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_broadcast_to(Tensor<E, A...>::static_shape, Tensor<E, To...>::static_shape))
  (lc::broadcast_to(Operand(a, at), stretch_to(a, r.out)));
}
template <int... Axes, class E, Dim... A>
auto permute(const Tensor<E, A...>& a, LC_AT) {
  constexpr int axes[] = {Axes..., 0};
  LC_OUT(E, infer_permute(Tensor<E, A...>::static_shape, axes, sizeof...(Axes)))(a.lc::Tensor::permute({Axes...}, at));
}
template <int I, int J, class E, Dim... A>
auto transpose(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_transpose(Tensor<E, A...>::static_shape, I, J))(a.lc::Tensor::transpose(I, J, at));
}
template <int Axis, class E, Dim... A>
auto unsqueeze(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_unsqueeze(Tensor<E, A...>::static_shape, Axis))(a.lc::Tensor::unsqueeze(Axis, at));
}
template <int Axis, class E, Dim... A>
auto squeeze(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_squeeze(Tensor<E, A...>::static_shape, Axis))(a.lc::Tensor::squeeze(Axis, at));
}
template <int First = 0, int Last = -1, class E, Dim... A>
auto flatten(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_flatten(Tensor<E, A...>::static_shape, First, Last))(lc::flatten(Operand(a, at), First, Last));
}
// Elements [Begin, End), every Step-th, by Python's rules.
template <int Axis, std::int64_t Begin, std::int64_t End, std::int64_t Step = 1, class E, Dim... A>
auto slice(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_slice(Tensor<E, A...>::static_shape, Axis, Begin, End, Step))
  (lc::slice(Operand(a, at), Axis, Begin, End, Step));
}
template <int Axis, int Before, int After, class E, Dim... A>
auto pad(const Tensor<E, A...>& a, double value = 0, LC_AT) {
  LC_OUT(E, infer_pad(Tensor<E, A...>::static_shape, Axis, Before, After))
  (lc::pad(Operand(a, at), Axis, Before, After, PadMode::Constant, value));
}
template <int Axis, class E, Dim... A>
auto flip(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_along("flip", Tensor<E, A...>::static_shape, Axis))(a.lc::Tensor::flip(Axis, at));
}
template <int Axis, class E, Dim... A>
auto roll(const Tensor<E, A...>& a, std::int64_t shift, LC_AT) {
  LC_OUT(E, infer_along("roll", Tensor<E, A...>::static_shape, Axis))(lc::roll(Operand(a, at), shift, Axis));
}
template <class E, Dim... A>
Tensor<E, A...> tril(const Tensor<E, A...>& a, int diagonal = 0, LC_AT) {
  LC_OUT(E, infer_triangle("tril", Tensor<E, A...>::static_shape))(lc::tril(Operand(a, at), diagonal));
}
template <class E, Dim... A>
Tensor<E, A...> triu(const Tensor<E, A...>& a, int diagonal = 0, LC_AT) {
  LC_OUT(E, infer_triangle("triu", Tensor<E, A...>::static_shape))(lc::triu(Operand(a, at), diagonal));
}
template <int Axis, class E, Dim... A, class F, Dim... B>
auto concat(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  require<same_elements<E, F>("concat")>();
  LC_OUT(E, infer_concat(Tensor<E, A...>::static_shape, Tensor<F, B...>::static_shape, Axis))
  (lc::concat({a, b}, Axis, at));
}
template <int Axis, class E, Dim... A, class F, Dim... B, class G, Dim... C, class... More>
auto concat(const Tensor<E, A...>& a, const Tensor<F, B...>& b, const Tensor<G, C...>& c, const More&... more) {
  return typed::concat<Axis>(typed::concat<Axis>(a, b), c, more...);
}
template <int Axis, class... Parts>
auto stack(const Parts&... parts) {
  return typed::concat<Axis>(typed::unsqueeze<Axis>(parts)...);
}

// ---- indexing -----------------------------------------------------------------------------------------
// weight [n, d], ids [...] -> [..., d]
template <class E, Dim... W, class I, Dim... A>
auto embedding(const Tensor<E, W...>& weight, const Tensor<I, A...>& ids, LC_AT) {
  static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "embedding: ids are whole numbers");
  LC_OUT(E, infer_embedding(Tensor<E, W...>::static_shape, Tensor<I, A...>::static_shape))
  (lc::embedding(Operand(weight, at), ids));
}
template <int Axis, class E, Dim... A, class I, Dim... N>
auto index_select(const Tensor<E, A...>& a, const Tensor<I, N...>& index, LC_AT) {
  static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "index_select: the index must be an integer");
  LC_OUT(E, infer_index_select(Tensor<E, A...>::static_shape, Axis, Tensor<I, N...>::static_shape))
  (lc::index_select(Operand(a, at), Axis, index));
}
template <int Classes, class I, Dim... A>
Tensor<std::int64_t, A..., Classes> one_hot(const Tensor<I, A...>& ids, LC_AT) {
  static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "one_hot: ids are whole numbers");
  return wrap_as<std::int64_t, Tensor<std::int64_t, A..., Classes>::static_shape>(
      lc::one_hot(Operand(ids, at), Classes));
}
#undef LC_OUT
#undef LC_AT

}  // namespace lc::typed
