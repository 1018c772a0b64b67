// Typed tensors: shapes checked by the C++ compiler.
//
//   using lc::typed::Tensor;
//   Tensor<float, "batch", 784> x = lc::typed::input<float, "batch", 784>(g, "x");
//   Tensor<float, 784, 10> w = ...;
//   auto y = softmax<-1>(matmul(x, w));          // Tensor<float, "batch", 10>
//
// An extent is a number, a name, or lc::typed::dyn (known when the graph is built). A typed tensor is an untyped
// lc::Tensor, so every untyped operation accepts it and returns an untyped result. Tensor<...>::from(t) and as<...>()
// turn an untyped tensor into a typed one and check it when the graph is built.
//
// A mistake is one compile error, whose lines "In instantiation of" and "error:" contain a message (g++ 12):
//   matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512
// Overloads are unconstrained, because g++ 12 cannot print such types when overload resolution fails: operations accept
// all types and assert (require, in tensor.h). The line that follows ("required from here") is the user's.
//
// `using namespace lc` and `using lc::typed::Tensor` in one scope make the name Tensor ambiguous. In a function, with
// the `using namespace lc` outside it, the second one wins.
//
// Extents, axes and sizes are template arguments, everything else is a function argument: sum<0, 2>(x),
// reshape<"batch", 12, 64>(x), conv2d<2, 1>(x, w). Semantics are those of ops.h.
#pragma once

#include "lightcone/macros_off.h"

#include "lightcone/ops/typed/tensor.h"

namespace lc {

// sum<1>(x, keepdim) keeps the axis, with extent 1. It is in lc, so that `using namespace lc` makes it visible:
// argument-dependent lookup finds operations, but not a constant.
inline constexpr struct Keepdim {
} keepdim;

}  // namespace lc

namespace lc::typed {

using lc::keepdim;
using lc::Keepdim;

#define LC_AT const At& at = At::current()
#define LC_OUT(R, RULE)        \
  constexpr Inferred r = RULE; \
  require<r.error>();          \
  return wrap_as<R, r.out>

// Adds an input to the graph; `dims` has an extent for each dyn, in order.
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
LC_UNARY(square, SquareOf<E>)
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
LC_UNARY(isposinf, bool)
LC_UNARY(isneginf, bool)
LC_UNARY(signbit, bool)
LC_UNARY(positive, E)
LC_UNARY(neg, E)
LC_UNARY(sgn, E)
LC_UNARY(frac, E)
LC_UNARY(relu6, E)
LC_UNARY(log10, FloatOf<E>)
LC_UNARY(asin, FloatOf<E>)
LC_UNARY(acos, FloatOf<E>)
LC_UNARY(atan, FloatOf<E>)
LC_UNARY(sinh, FloatOf<E>)
LC_UNARY(cosh, FloatOf<E>)
LC_UNARY(asinh, FloatOf<E>)
LC_UNARY(acosh, FloatOf<E>)
LC_UNARY(atanh, FloatOf<E>)
LC_UNARY(erfc, FloatOf<E>)
LC_UNARY(logit, FloatOf<E>)
LC_UNARY(tanhshrink, FloatOf<E>)
LC_UNARY(hardshrink, E)
LC_UNARY(softshrink, E)
LC_UNARY(hardtanh, E)
LC_UNARY(celu, FloatOf<E>)
LC_UNARY(nan_to_num, E)
LC_UNARY(zeros_like, E)
LC_UNARY(ones_like, E)
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
      lc::clamp(Operand(a, at), OptionalTensorOrNumber(low, at), OptionalTensorOrNumber(high, at)));
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
LC_BINARY(lt, bool)
LC_BINARY(gt, bool)
LC_BINARY(le, bool)
LC_BINARY(ge, bool)
LC_BINARY(add, E)
LC_BINARY(sub, E)
LC_BINARY(mul, E)
LC_BINARY(div, FloatOf<E>)
LC_BINARY(remainder, E)
LC_BINARY(atan2, FloatOf<E>)
LC_BINARY(hypot, FloatOf<E>)
LC_BINARY(logaddexp, FloatOf<E>)
LC_BINARY(logaddexp2, FloatOf<E>)
LC_BINARY(xlogy, FloatOf<E>)
LC_BINARY(max, E)
LC_BINARY(min, E)
#undef LC_BINARY
#define LC_NUMBER(f, RESULT)                                                                        \
  template <class E, Dim... A, Number S>                                                            \
  auto f(const Tensor<E, A...>& a, S b, LC_AT) {                                                    \
    using R = RESULT;                                                                               \
    return wrap_as<R, Tensor<E, A...>::static_shape>(lc::f(Operand(a, at), TensorOrNumber(b, at))); \
  }                                                                                                 \
  template <class E, Dim... A, Number S>                                                            \
  auto f(S a, const Tensor<E, A...>& b, LC_AT) {                                                    \
    using R = RESULT;                                                                               \
    return wrap_as<R, Tensor<E, A...>::static_shape>(lc::f(TensorOrNumber(a, at), Operand(b, at))); \
  }
#define LC_COMMA ,
LC_NUMBER(add, WithScalar<E LC_COMMA S>)
LC_NUMBER(sub, WithScalar<E LC_COMMA S>)
LC_NUMBER(mul, WithScalar<E LC_COMMA S>)
LC_NUMBER(div, FloatOf<E>)
LC_NUMBER(remainder, WithScalar<E LC_COMMA S>)
LC_NUMBER(fmod, WithScalar<E LC_COMMA S>)
LC_NUMBER(floor_divide, WithScalar<E LC_COMMA S>)
LC_NUMBER(pow, WithScalar<E LC_COMMA S>)
LC_NUMBER(eq, bool)
LC_NUMBER(ne, bool)
LC_NUMBER(lt, bool)
LC_NUMBER(gt, bool)
LC_NUMBER(le, bool)
LC_NUMBER(ge, bool)
#undef LC_COMMA
#undef LC_NUMBER
template <class E, Dim... A, Number L>
auto clamp_min(const Tensor<E, A...>& a, L low, LC_AT) {
  return wrap_as<WithScalar<E, L>, Tensor<E, A...>::static_shape>(
      lc::clamp_min(Operand(a, at), TensorOrNumber(low, at)));
}
template <class E, Dim... A, Number H>
auto clamp_max(const Tensor<E, A...>& a, H high, LC_AT) {
  return wrap_as<WithScalar<E, H>, Tensor<E, A...>::static_shape>(
      lc::clamp_max(Operand(a, at), TensorOrNumber(high, at)));
}
template <class E, Dim... A, class F, Dim... B>
auto lerp(const Tensor<E, A...>& a, const Tensor<F, B...>& b, double weight, LC_AT) {
  require<same_elements<E, F>("lerp")>();
  LC_OUT(FloatOf<E>, infer_broadcast("lerp", Tensor<E, A...>::static_shape, Tensor<F, B...>::static_shape))
  (lc::lerp(Operand(a, at), Operand(b, at), weight));
}

template <class C, Dim... M, class E, Dim... A, class F, Dim... B>
auto where(const Tensor<C, M...>& condition, const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  static_assert(std::is_same_v<C, bool>, "where: the condition is a tensor of bool");
  require<same_elements<E, F>("where")>();
  constexpr Inferred ab = infer_broadcast("where", Tensor<E, A...>::static_shape, Tensor<F, B...>::static_shape);
  require<ab.error>();
  LC_OUT(E, infer_broadcast("where", Tensor<C, M...>::static_shape, ab.out))(lc::where(Operand(condition, at), a, b));
}
template <class C, Dim... M, class E, Dim... A, Number S>
auto where(const Tensor<C, M...>& condition, const Tensor<E, A...>& a, S b, LC_AT) {
  static_assert(std::is_same_v<C, bool>, "where: the condition is a tensor of bool");
  using R = WithScalar<E, S>;
  LC_OUT(R, infer_broadcast("where", Tensor<C, M...>::static_shape, Tensor<E, A...>::static_shape))
  (lc::where(Operand(condition, at), Operand(a, at), TensorOrNumber(b, at)));
}
template <class C, Dim... M, class E, Dim... A, Number S>
auto where(const Tensor<C, M...>& condition, S a, const Tensor<E, A...>& b, LC_AT) {
  static_assert(std::is_same_v<C, bool>, "where: the condition is a tensor of bool");
  using R = WithScalar<E, S>;
  LC_OUT(R, infer_broadcast("where", Tensor<C, M...>::static_shape, Tensor<E, A...>::static_shape))
  (lc::where(Operand(condition, at), TensorOrNumber(a, at), Operand(b, at)));
}
template <class E, Dim... A, Dim... M>
auto masked_fill(const Tensor<E, A...>& a, const Tensor<bool, M...>& mask, Scalar value, LC_AT) {
  LC_OUT(E, infer_broadcast("masked_fill", Tensor<E, A...>::static_shape, Tensor<bool, M...>::static_shape))
  (lc::masked_fill(Operand(a, at), mask, value));
}

// ---- products -----------------------------------------------------------------------------------------
template <class E, Dim... A, class F, Dim... B>
auto matmul(const Tensor<E, A...>& a, const Tensor<F, B...>& b, const At& at) {
  require<same_elements<E, F>("matmul")>();
  LC_OUT(E, infer_matmul(Tensor<E, A...>::static_shape, Tensor<F, B...>::static_shape))
  (lc::matmul(Operand(a, at), Operand(b, at)));
}
// ---- reductions: sum<1>(x), mean<0, 2>(x), sum(x) over all, sum<1>(x, keepdim) ------------------------
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
#define LC_KEEP 1, true  // the argument `correction` comes first
LC_REDUCE(var, FloatOf<E>, false)
LC_REDUCE(stddev, FloatOf<E>, false)
LC_REDUCE(std, FloatOf<E>, false)
#undef LC_KEEP
#define LC_KEEP true
LC_REDUCE(count_nonzero, std::int64_t, false)
#undef LC_KEEP
#undef LC_REDUCE
// The largest or smallest elements along an axis, with their indices.
template <class T, class I>
struct ValuesAndIndices {
  T values;
  I indices;
};
template <class E, Shape S>
[[gnu::always_inline]] inline auto both_of(const Extreme& e) {
  return ValuesAndIndices<TensorOf<E, S>, TensorOf<std::int64_t, S>>{wrap_as<E, S>(e.values),
                                                                     wrap_as<std::int64_t, S>(e.indices)};
}
#define LC_EXTREME(f)                                                                   \
  template <class E, Dim... A>                                                          \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                             \
    LC_OUT(E, infer_reduce(#f, Tensor<E, A...>::static_shape, nullptr, 0, false, true)) \
    (lc::f(Operand(a, at)));                                                            \
  }                                                                                     \
  LC_OF_AXIS(f, false, )                                                                \
  LC_OF_AXIS(f, true, Keepdim, )
#define LC_OF_AXIS(f, KEEP, ...)                                                                 \
  template <int Axis, class E, Dim... A>                                                         \
  auto f(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {                                          \
    constexpr int axes[] = {Axis};                                                               \
    constexpr Inferred r = infer_reduce(#f, Tensor<E, A...>::static_shape, axes, 1, KEEP, true); \
    require<r.error>();                                                                          \
    return both_of<E, r.out>(lc::f(Operand(a, at), Axis, KEEP));                                 \
  }
LC_EXTREME(max)
LC_EXTREME(min)
#undef LC_OF_AXIS
#undef LC_EXTREME
#define LC_SO_FAR(f)                                                                                                  \
  template <int Axis, class E, Dim... A>                                                                              \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                                           \
    constexpr Inferred r = infer_along(#f, Tensor<E, A...>::static_shape, Axis);                                      \
    require<r.error>();                                                                                               \
    const auto both = lc::f(Operand(a, at), Axis);                                                                    \
    return ValuesAndIndices<Tensor<E, A...>, Tensor<std::int64_t, A...>>{wrap_as<E, r.out>(both.values),              \
                                                                         wrap_as<std::int64_t, r.out>(both.indices)}; \
  }
LC_SO_FAR(cummax)
LC_SO_FAR(cummin)
LC_SO_FAR(sort)
#undef LC_SO_FAR
template <int K, int Axis = -1, class E, Dim... A>
auto topk(const Tensor<E, A...>& a, bool largest = true, LC_AT) {
  constexpr Inferred r = infer_topk(Tensor<E, A...>::static_shape, K, Axis);
  require<r.error>();
  const auto both = lc::topk(Operand(a, at), K, Axis, largest);
  return ValuesAndIndices<TensorOf<E, r.out>, TensorOf<std::int64_t, r.out>>{
      wrap_as<E, r.out>(both.values), wrap_as<std::int64_t, r.out>(both.indices)};
}
template <class E, Dim... A>
Tensor<SumOf<E>> prod(const Tensor<E, A...>& a, LC_AT) {
  return wrap_as<SumOf<E>, Shape{}>(lc::prod(Operand(a, at)));
}
#define LC_NORM(KEEP, ...)                                                                               \
  template <int... Axes, class E, Dim... A>                                                              \
  auto norm(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {                                               \
    constexpr int axes[] = {Axes..., 0};                                                                 \
    LC_OUT(FloatOf<E>, infer_reduce("norm", Tensor<E, A...>::static_shape, axes, sizeof...(Axes), KEEP)) \
    (lc::norm(Operand(a, at), p, {Axes...}, KEEP));                                                      \
  }
LC_NORM(false, double p = 2, )
LC_NORM(true, double p, Keepdim, )
#undef LC_NORM
// Reductions along an axis; argmax(x) and argmin(x) reduce all elements in row-major order.
#define LC_OF_AXIS(f, RESULT, SOME, KEEP, ...)                                           \
  template <int Axis, class E, Dim... A>                                                 \
  auto f(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {                                  \
    constexpr int axes[] = {Axis};                                                       \
    LC_OUT(RESULT, infer_reduce(#f, Tensor<E, A...>::static_shape, axes, 1, KEEP, SOME)) \
    (lc::f(Operand(a, at), Axis, KEEP));                                                 \
  }
#define LC_ARG(f)                                                 \
  LC_OF_AXIS(f, std::int64_t, true, false, )                      \
  LC_OF_AXIS(f, std::int64_t, true, true, Keepdim, )              \
  template <class E, Dim... A>                                    \
  Tensor<std::int64_t> f(const Tensor<E, A...>& a, LC_AT) {       \
    return wrap_as<std::int64_t, Shape{}>(lc::f(Operand(a, at))); \
  }
LC_OF_AXIS(prod, SumOf<E>, false, false, )
LC_OF_AXIS(prod, SumOf<E>, false, true, Keepdim, )
LC_ARG(argmax)
LC_ARG(argmin)
#undef LC_ARG
#undef LC_OF_AXIS
#define LC_ALONG(f, RESULT)                                                                            \
  template <int Axis, class E, Dim... A>                                                               \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                            \
    LC_OUT(RESULT, infer_along(#f, Tensor<E, A...>::static_shape, Axis))(lc::f(Operand(a, at), Axis)); \
  }
LC_ALONG(softmax, FloatOf<E>)
LC_ALONG(log_softmax, FloatOf<E>)
LC_ALONG(cumsum, SumOf<E>)
LC_ALONG(cumprod, SumOf<E>)
LC_ALONG(softmin, FloatOf<E>)
LC_ALONG(logcumsumexp, FloatOf<E>)
LC_ALONG(argsort, std::int64_t)
#undef LC_ALONG

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
// Reads elements [Begin, End), every Step-th, by Python's rules.
template <int Axis, std::int64_t Begin, std::int64_t End, std::int64_t Step = 1, class E, Dim... A>
auto slice(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_slice(Tensor<E, A...>::static_shape, Axis, Begin, End, Step))
  (lc::slice(Operand(a, at), Axis, Begin, End, Step));
}
// Reads Length elements of an axis, starting at Start.
template <int Axis, std::int64_t Start, std::int64_t Length, class E, Dim... A>
auto narrow(const Tensor<E, A...>& a, LC_AT) {
  static_assert(Length >= 0 && (Start >= 0 || Start + Length <= 0), "narrow: the elements are not in the axis");
  constexpr std::int64_t end = Start < 0 && Start + Length == 0 ? 0x7fffffff : Start + Length;
  LC_OUT(E, infer_slice(Tensor<E, A...>::static_shape, Axis, Start, end, 1))
  (lc::narrow(Operand(a, at), Axis, Start, Length));
}
// Selects an element of an axis and removes the axis; x[i] is select<0>(x, i).
template <int Axis, class E, Dim... A>
auto select(const Tensor<E, A...>& a, lc::Dim index, LC_AT) {
  LC_OUT(E, infer_select(Tensor<E, A...>::static_shape, Axis))(lc::select(Operand(a, at), Axis, index));
}
template <class E, Dim N, Dim M>
Tensor<E, M, N> t(const Tensor<E, N, M>& a, LC_AT) {
  return wrap_as<E, Tensor<E, M, N>::static_shape>(lc::t(Operand(a, at)));
}
template <Dim... To, class E, Dim... A>
auto view(const Tensor<E, A...>& a, LC_AT) {
  return typed::reshape<To...>(a, at);
}
template <Dim... To, class E, Dim... A>
auto expand(const Tensor<E, A...>& a, LC_AT) {
  return typed::broadcast_to<To...>(a, at);
}
template <int I, int J, class E, Dim... A>
auto swapaxes(const Tensor<E, A...>& a, LC_AT) {
  return typed::transpose<I, J>(a, at);
}
template <int N = 1, int Axis = -1, class E, Dim... A>
auto diff(const Tensor<E, A...>& a, LC_AT) {
  static_assert(N >= 0, "diff: a negative number of times");
  LC_OUT(E, infer_diff(Tensor<E, A...>::static_shape, N, Axis))(lc::diff(Operand(a, at), N, Axis));
}
template <int Axis, int Before, int After, class E, Dim... A>
auto pad(const Tensor<E, A...>& a, Scalar value = 0, LC_AT) {
  LC_OUT(E, infer_pad(Tensor<E, A...>::static_shape, Axis, Before, After))
  (lc::pad(Operand(a, at), Axis, Before, After, PadMode::Constant, value));
}
template <int... Axes, class E, Dim... A>
Tensor<E, A...> flip(const Tensor<E, A...>& a, LC_AT) {
  constexpr int axes[] = {Axes..., 0};
  LC_OUT(E, infer_flip(Tensor<E, A...>::static_shape, axes, sizeof...(Axes)))(lc::flip(Operand(a, at), {Axes...}));
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
template <int Axis = 0, std::derived_from<lc::Tensor>... Parts>
auto cat(const Parts&... parts) {
  return typed::concat<Axis>(parts...);
}
template <int Axis = 0, class... Parts>
auto stack(const Parts&... parts) {
  return typed::concat<Axis>(typed::unsqueeze<Axis>(parts)...);
}

// ---- indexing -----------------------------------------------------------------------------------------
// ids [...], weight [n, d] -> [..., d]
template <class I, Dim... A, class E, Dim... W>
auto embedding(const Tensor<I, A...>& ids, const Tensor<E, W...>& weight, LC_AT) {
  static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "embedding: ids come first, and are whole numbers");
  LC_OUT(E, infer_embedding(Tensor<E, W...>::static_shape, Tensor<I, A...>::static_shape))
  (lc::embedding(Operand(ids, at), weight));
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

#include "lightcone/macros_on.h"
#include "lightcone/ops/typed/layers.h"
#include "lightcone/ops/typed/loss.h"
#include "lightcone/ops/typed/random.h"
#include "lightcone/ops/typed/views.h"
