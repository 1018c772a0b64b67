// Special functions, bits, order statistics, counts and statistics, typed (ops/special/special.h). Part of typed.h.
#pragma once

#include "lightcone/macros_off.h"

#include <array>

#include "lightcone/ops/special/special.h"
#include "lightcone/ops/typed/special_shapes.h"
#include "lightcone/ops/typed/typed.h"
#include "lightcone/ops/typed/view_shapes.h"

namespace lc::typed {

#define LC_AT const At& at = At::current()
#define LC_S(E, D) Tensor<E, D...>::static_shape
#define LC_OUT(R, RULE)        \
  constexpr Inferred r = RULE; \
  require<r.error>();          \
  return wrap_as<R, r.out>

// ---- elementwise --------------------------------------------------------------------------------------
#define LC_UNARY(f, RESULT)                                    \
  template <class E, Dim... A>                                 \
  Tensor<RESULT, A...> f(const Tensor<E, A...>& a, LC_AT) {    \
    return wrap_as<RESULT, LC_S(E, A)>(lc::f(Operand(a, at))); \
  }
LC_UNARY(lgamma, FloatOf<E>)
LC_UNARY(digamma, FloatOf<E>)
LC_UNARY(erfinv, FloatOf<E>)
LC_UNARY(i0, FloatOf<E>)
LC_UNARY(sinc, FloatOf<E>)
LC_UNARY(deg2rad, FloatOf<E>)
LC_UNARY(rad2deg, FloatOf<E>)
LC_UNARY(bitwise_not, E)
LC_UNARY(population_count, E)
LC_UNARY(count_leading_zeros, E)
#undef LC_UNARY
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> polygamma(int n, const Tensor<E, A...>& a, LC_AT) {
  return wrap_as<FloatOf<E>, LC_S(E, A)>(lc::polygamma(n, Operand(a, at)));
}
template <class E, Dim... A>
Tensor<E, A...> threshold(const Tensor<E, A...>& a, Scalar threshold, Scalar value, LC_AT) {
  return wrap_as<E, LC_S(E, A)>(lc::threshold(Operand(a, at), threshold, value));
}
template <class E, Dim... A, Number L, Number H>
auto clip(const Tensor<E, A...>& a, L low, H high, LC_AT) {
  using R = WithScalar<E, std::common_type_t<L, H>>;
  return wrap_as<R, LC_S(E, A)>(
      lc::clip(Operand(a, at), OptionalTensorOrNumber(low, at), OptionalTensorOrNumber(high, at)));
}
template <class To, class E, Dim... A>
Tensor<To, A...> bitcast(const Tensor<E, A...>& a, LC_AT) {
  static_assert(size_of(dtype_of<To>::value) == size_of(dtype_of<E>::value), "bitcast: to a type of the same size");
  return wrap_as<To, LC_S(E, A)>(lc::bitcast(Operand(a, at), dtype_of<To>::value));
}
template <class E, Dim... A>
std::pair<Tensor<FloatOf<E>, A...>, Tensor<std::int32_t, A...>> frexp(const Tensor<E, A...>& a, LC_AT) {
  const auto [mantissa, exponent] = lc::frexp(Operand(a, at));
  return {wrap_as<FloatOf<E>, LC_S(E, A)>(mantissa), wrap_as<std::int32_t, LC_S(E, A)>(exponent)};
}

#define LC_BINARY(f, RESULT)                                                               \
  template <class E, Dim... A, class F, Dim... B>                                          \
  auto f(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {                      \
    require<same_elements<E, F>(#f)>();                                                    \
    LC_OUT(RESULT, infer_broadcast(#f, LC_S(E, A), LC_S(F, B)))(lc::f(Operand(a, at), b)); \
  }
LC_BINARY(copysign, FloatOf<E>)
LC_BINARY(nextafter, E)
LC_BINARY(heaviside, E)
LC_BINARY(fmax, E)
LC_BINARY(fmin, E)
LC_BINARY(bitwise_and, E)
LC_BINARY(bitwise_or, E)
LC_BINARY(bitwise_xor, E)
LC_BINARY(bitwise_left_shift, E)
LC_BINARY(bitwise_right_shift, E)
LC_BINARY(gcd, E)
LC_BINARY(lcm, E)
#undef LC_BINARY
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> copysign(const Tensor<E, A...>& a, double sign, LC_AT) {
  return wrap_as<FloatOf<E>, LC_S(E, A)>(lc::copysign(Operand(a, at), sign));
}
// The exponent has the same type, or is an integer, which promotes 16-bit floats to f32.
template <class E, Dim... A, class F, Dim... B>
auto ldexp(const Tensor<E, A...>& a, const Tensor<F, B...>& exponent, LC_AT) {
  if constexpr (kFloating<F>) require<same_elements<E, F>("ldexp")>();
  constexpr bool widens = is_narrow(dtype_of<E>::value) && !kFloating<F> && (sizeof...(B) > 0 || sizeof...(A) == 0);
  using R = std::conditional_t<widens, float, FloatOf<E>>;
  LC_OUT(R, infer_broadcast("ldexp", LC_S(E, A), LC_S(F, B)))(lc::ldexp(Operand(a, at), exponent));
}
#define LC_ADDED(f, RESULT)                                                                                           \
  template <class E, Dim... I, class F, Dim... A, class G, Dim... B>                                                  \
  auto f(const Tensor<E, I...>& input, const Tensor<F, A...>& a, const Tensor<G, B...>& b, double value = 1, LC_AT) { \
    require<same_elements<E, F>(#f)>();                                                                               \
    require<same_elements<E, G>(#f)>();                                                                               \
    LC_OUT(RESULT, infer_three(#f, LC_S(E, I), LC_S(F, A), LC_S(G, B)))                                               \
    (lc::f(Operand(input, at), a, b, value));                                                                         \
  }
LC_ADDED(addcmul, E)
LC_ADDED(addcdiv, FloatOf<E>)
#undef LC_ADDED
#define LC_CLOSE(f, OUT)                                                                             \
  template <class E, Dim... A, class F, Dim... B>                                                    \
  auto f(const Tensor<E, A...>& a, const Tensor<F, B...>& b, double rtol = 1e-5, double atol = 1e-8, \
         bool equal_nan = false, LC_AT) {                                                            \
    require<same_elements<E, F>(#f)>();                                                              \
    constexpr Inferred r = infer_broadcast(#f, LC_S(E, A), LC_S(F, B));                              \
    require<r.error>();                                                                              \
    return wrap_as<bool, OUT>(lc::f(Operand(a, at), b, rtol, atol, equal_nan));                      \
  }
LC_CLOSE(isclose, r.out)
LC_CLOSE(allclose, Shape{})
#undef LC_CLOSE

// ---- ignoring NaN ---------------------------------------------------------------------------------------
#define LC_REDUCE(f, RESULT, KEEP, ...)                                       \
  template <int... Axes, class E, Dim... A>                                   \
  auto f(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {                       \
    constexpr int axes[] = {Axes..., 0};                                      \
    LC_OUT(RESULT, infer_reduce(#f, LC_S(E, A), axes, sizeof...(Axes), KEEP)) \
    (lc::f(Operand(a, at), {Axes...}, KEEP));                                 \
  }
LC_REDUCE(nansum, SumOf<E>, false, )
LC_REDUCE(nansum, SumOf<E>, true, Keepdim, )
LC_REDUCE(nanmean, FloatOf<E>, false, )
LC_REDUCE(nanmean, FloatOf<E>, true, Keepdim, )
#undef LC_REDUCE

// ---- order ----------------------------------------------------------------------------------------------
#define LC_ROW(f, KEEP, ...)                                                  \
  template <int Axis, class E, Dim... A>                                      \
  auto f(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {                       \
    constexpr int axes[] = {Axis};                                            \
    constexpr Inferred r = infer_reduce(#f, LC_S(E, A), axes, 1, KEEP, true); \
    require<r.error>();                                                       \
    return both_of<E, r.out>(lc::f(Operand(a, at), Axis, KEEP));              \
  }
#define LC_MEDIAN(f)                                   \
  template <class E, Dim... A>                         \
  Tensor<E> f(const Tensor<E, A...>& a, LC_AT) {       \
    return wrap_as<E, Shape{}>(lc::f(Operand(a, at))); \
  }                                                    \
  LC_ROW(f, false, )                                   \
  LC_ROW(f, true, Keepdim, )
LC_MEDIAN(median)
LC_MEDIAN(nanmedian)
LC_ROW(mode, false, )
LC_ROW(mode, true, Keepdim, )
#undef LC_MEDIAN
#undef LC_ROW
template <class E, Dim... A>
auto mode(const Tensor<E, A...>& a, LC_AT) {
  return typed::mode<-1>(a, at);
}
#define LC_KTH(KEEP, ...)                                                  \
  template <int K, int Axis = -1, class E, Dim... A>                       \
  auto kthvalue(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {             \
    constexpr Inferred r = infer_kthvalue(LC_S(E, A), K, Axis, KEEP);      \
    require<r.error>();                                                    \
    return both_of<E, r.out>(lc::kthvalue(Operand(a, at), K, Axis, KEEP)); \
  }
LC_KTH(false, )
LC_KTH(true, Keepdim, )
#undef LC_KTH
// Over all elements or along an axis: quantile<1>(x, 0.5). q may be a tensor; several q form a new first axis.
#define LC_QUANTILE(f, KEEP, ...)                                                                                   \
  template <class E, Dim... A>                                                                                      \
  auto f(const Tensor<E, A...>& a, double q, __VA_ARGS__ std::string_view interpolation = "linear", LC_AT) {        \
    LC_OUT(E, infer_quantile(#f, LC_S(E, A), {}, nullptr, 0, KEEP))                                                 \
    (lc::f(Operand(a, at), q, std::nullopt, KEEP, interpolation));                                                  \
  }                                                                                                                 \
  template <int Axis, class E, Dim... A>                                                                            \
  auto f(const Tensor<E, A...>& a, double q, __VA_ARGS__ std::string_view interpolation = "linear", LC_AT) {        \
    constexpr int axes[] = {Axis};                                                                                  \
    LC_OUT(E, infer_quantile(#f, LC_S(E, A), {}, axes, 1, KEEP))                                                    \
    (lc::f(Operand(a, at), q, Axis, KEEP, interpolation));                                                          \
  }                                                                                                                 \
  template <class E, Dim... A, class F, Dim... Q>                                                                   \
  auto f(const Tensor<E, A...>& a, const Tensor<F, Q...>& q, __VA_ARGS__ std::string_view interpolation = "linear", \
         LC_AT) {                                                                                                   \
    require<same_elements<E, F>(#f)>();                                                                             \
    LC_OUT(E, infer_quantile(#f, LC_S(E, A), LC_S(F, Q), nullptr, 0, KEEP))                                         \
    (lc::f(Operand(a, at), q, std::nullopt, KEEP, interpolation));                                                  \
  }                                                                                                                 \
  template <int Axis, class E, Dim... A, class F, Dim... Q>                                                         \
  auto f(const Tensor<E, A...>& a, const Tensor<F, Q...>& q, __VA_ARGS__ std::string_view interpolation = "linear", \
         LC_AT) {                                                                                                   \
    require<same_elements<E, F>(#f)>();                                                                             \
    constexpr int axes[] = {Axis};                                                                                  \
    LC_OUT(E, infer_quantile(#f, LC_S(E, A), LC_S(F, Q), axes, 1, KEEP))                                            \
    (lc::f(Operand(a, at), q, Axis, KEEP, interpolation));                                                          \
  }
LC_QUANTILE(quantile, false, )
LC_QUANTILE(quantile, true, Keepdim, )
LC_QUANTILE(nanquantile, false, )
LC_QUANTILE(nanquantile, true, Keepdim, )
#undef LC_QUANTILE
template <class E, Dim... A, class F, Dim... B>
auto searchsorted(const Tensor<E, A...>& sorted, const Tensor<F, B...>& values, bool right = false, LC_AT) {
  require<same_elements<E, F>("searchsorted")>();
  LC_OUT(std::int64_t, infer_searchsorted(LC_S(E, A), LC_S(F, B)))
  (lc::searchsorted(Operand(sorted, at), values, right));
}
template <class E, Dim... A, class F, Dim... B>
auto bucketize(const Tensor<E, A...>& values, const Tensor<F, B...>& boundaries, bool right = false, LC_AT) {
  require<same_elements<E, F>("bucketize")>();
  LC_OUT(std::int64_t, infer_bucketize(LC_S(E, A), LC_S(F, B)))
  (lc::bucketize(Operand(values, at), boundaries, right));
}
template <class E, Dim... A, class F, Dim... B>
Tensor<bool, A...> isin(const Tensor<E, A...>& elements, const Tensor<F, B...>& test_elements, bool invert = false,
                        LC_AT) {
  require<same_elements<E, F>("isin")>();
  return wrap_as<bool, LC_S(E, A)>(lc::isin(Operand(elements, at), test_elements, invert));
}

// ---- counting: histc<10>(x, 0, 1), bincount<5>(ids) -------------------------------------------------------
template <int Bins, class E, Dim... A>
Tensor<E, Bins> histc(const Tensor<E, A...>& a, double min = 0, double max = 0, LC_AT) {
  static_assert(Bins >= 1, "histc: at least one bin");
  return wrap_as<E, Tensor<E, Bins>::static_shape>(lc::histc(Operand(a, at), Bins, min, max));
}
template <int Length, class I, Dim N>
Tensor<std::int64_t, Length> bincount(const Tensor<I, N>& ids, LC_AT) {
  static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "bincount: needs a vector of integers");
  return wrap_as<std::int64_t, Tensor<std::int64_t, Length>::static_shape>(lc::bincount(Operand(ids, at), Length));
}
template <int Length, class I, Dim N, class W, Dim M>
auto bincount(const Tensor<I, N>& ids, const Tensor<W, M>& weights, LC_AT) {
  static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "bincount: needs a vector of integers");
  static_assert(!differ(N, M), "bincount: as many weights as ids");
  using R = std::conditional_t<std::is_same_v<W, float>, float, double>;
  return wrap_as<R, Tensor<R, Length>::static_shape>(lc::bincount(Operand(ids, at), Operand(weights, at), Length));
}

// ---- statistics and grids ---------------------------------------------------------------------------------
template <class E, Dim... A>
auto cov(const Tensor<E, A...>& a, int correction = 1, LC_AT) {
  LC_OUT(FloatOf<E>, infer_cov("cov", LC_S(E, A)))(lc::cov(Operand(a, at), correction));
}
template <class E, Dim... A>
auto corrcoef(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(FloatOf<E>, infer_cov("corrcoef", LC_S(E, A)))(lc::corrcoef(Operand(a, at)));
}
#define LC_AREAS(f, RULE)                                                                             \
  template <int Axis = -1, class E, Dim... A>                                                         \
  auto f(const Tensor<E, A...>& y, double dx = 1, LC_AT) {                                            \
    LC_OUT(FloatOf<E>, RULE(LC_S(E, A), nullptr, Axis))(lc::f(Operand(y, at), dx, Axis));             \
  }                                                                                                   \
  template <int Axis = -1, class E, Dim... A, class F, Dim... B>                                      \
  auto f(const Tensor<E, A...>& y, const Tensor<F, B...>& x, LC_AT) {                                 \
    require<same_elements<E, F>(#f)>();                                                               \
    constexpr Shape points = LC_S(F, B);                                                              \
    LC_OUT(FloatOf<E>, RULE(LC_S(E, A), &points, Axis))(lc::f(Operand(y, at), Operand(x, at), Axis)); \
  }
LC_AREAS(trapezoid, infer_trapezoid)
LC_AREAS(cumulative_trapezoid, infer_cumulative_trapezoid)
#undef LC_AREAS
template <class E, int Steps>
Tensor<E, Steps> logspace(GraphOf in, double from, double to, double base = 10) {
  return wrap_as<E, Tensor<E, Steps>::static_shape>(
      lc::logspace(in.graph, from, to, Steps, base, dtype_of<E>::value, in.at));
}
template <int Steps>
Tensor<float, Steps> logspace(GraphOf in, double from, double to, double base = 10) {
  return typed::logspace<float, Steps>(in, from, to, base);
}
// Grids of vectors, in the order "ij".
template <class E, Dim N, class... More>
auto meshgrid(const Tensor<E, N>& first, const More&... more) {
  (require<same_elements<E, typename More::Element>("meshgrid")>(), ...);
  static_assert(((More::static_shape.rank == 1) && ...), "meshgrid: needs vectors");
  using Grid = Tensor<E, N, More::static_shape.d[0]...>;
  const std::vector<lc::Tensor> grids = lc::meshgrid({first, more...});
  std::array<Grid, 1 + sizeof...(More)> all;
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = wrap_as<E, Grid::static_shape>(grids[k]);
  return all;
}
#undef LC_OUT
#undef LC_S
#undef LC_AT

}  // namespace lc::typed
#include "lightcone/macros_on.h"
