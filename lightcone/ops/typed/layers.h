// Functions of layers, typed: linear, convolutions, pools, attention, normalisation. Part of typed.h.
#pragma once

#include "lightcone/ops/conv.h"
#include "lightcone/ops/typed/layer_shapes.h"
#include "lightcone/ops/typed/tensor.h"

namespace lc::typed {

#define LC_AT const At& at = At::current()
#define LC_OUT(R, RULE)        \
  constexpr Inferred r = RULE; \
  require<r.error>();          \
  return wrap_as<R, r.out>

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
inline std::vector<int> numbers(const Each& e, int axes) { return std::vector<int>(e.v, e.v + axes); }
#define LC_CONV(f, SPATIAL)                                                                                   \
  template <Each Stride = 1, Each Padding = 0, Each Dilation = 1, int Groups = 1, class E, Dim... A, class F, \
            Dim... W>                                                                                         \
  auto f(const Tensor<E, A...>& x, const Tensor<F, W...>& weight, LC_AT) {                                    \
    static_assert(Stride.least(1, SPATIAL) && Padding.least(0, SPATIAL) && Dilation.least(1, SPATIAL),        \
                  "conv: stride and dilation are positive, the padding not negative");                        \
    require<same_elements<E, F>("conv")>();                                                                   \
    constexpr Window o{Stride, Padding, Dilation, Groups};                                                    \
    LC_OUT(E, infer_conv(Tensor<E, A...>::static_shape, Tensor<F, W...>::static_shape, SPATIAL, o))           \
    (lc::conv(Operand(x, at), weight,                                                                         \
              {.stride = numbers(Stride, SPATIAL),                                                            \
               .padding = numbers(Padding, SPATIAL),                                                          \
               .dilation = numbers(Dilation, SPATIAL),                                                        \
               .groups = Groups}));                                                                           \
  }                                                                                                           \
  template <Each Stride = 1, Each Padding = 0, Each Dilation = 1, int Groups = 1, class E, Dim... A, class F, \
            Dim... W, Dim B>                                                                                  \
  auto f(const Tensor<E, A...>& x, const Tensor<F, W...>& weight, const Tensor<E, B>& bias, LC_AT) {          \
    auto y = typed::f<Stride, Padding, Dilation, Groups>(x, weight, at);                                      \
    require<infer_channels("conv", decltype(y)::static_shape, Tensor<E, B>::static_shape)>();                 \
    return wrap_as<E, decltype(y)::static_shape>(lc::conv(Operand(x, at), weight, bias,                       \
                                                          {.stride = numbers(Stride, SPATIAL),                \
                                                           .padding = numbers(Padding, SPATIAL),              \
                                                           .dilation = numbers(Dilation, SPATIAL),            \
                                                           .groups = Groups}));                               \
  }
LC_CONV(conv1d, 1)
LC_CONV(conv2d, 2)
LC_CONV(conv3d, 3)
#undef LC_CONV
#define LC_POOL(f, SPATIAL, OP)                                                                              \
  template <Each Kernel, Each Stride = Kernel, Each Padding = 0, class E, Dim... A>                          \
  auto f(const Tensor<E, A...>& x, LC_AT) {                                                                  \
    static_assert(Kernel.least(1, SPATIAL) && Stride.least(1, SPATIAL) && Padding.least(0, SPATIAL),         \
                  "pooling: kernel and stride are positive, the padding not negative");                      \
    constexpr Window o{Stride, Padding, 1, 1};                                                               \
    LC_OUT(E, infer_pool(#OP, Tensor<E, A...>::static_shape, SPATIAL, Kernel, o))                            \
    (lc::OP(Operand(x, at), numbers(Kernel, SPATIAL), numbers(Stride, SPATIAL), numbers(Padding, SPATIAL))); \
  }
LC_POOL(max_pool1d, 1, max_pool)
LC_POOL(max_pool2d, 2, max_pool)
LC_POOL(max_pool3d, 3, max_pool)
LC_POOL(avg_pool1d, 1, avg_pool)
LC_POOL(avg_pool2d, 2, avg_pool)
LC_POOL(avg_pool3d, 3, avg_pool)
#undef LC_POOL
// q is [..., h, s, d], k and v are [..., kv, t, d]; there is no mask.
template <class E, Dim... Q, class F, Dim... K, class G, Dim... V>
auto scaled_dot_product_attention(const Tensor<E, Q...>& q, const Tensor<F, K...>& k, const Tensor<G, V...>& v, LC_AT) {
  require<same_elements<E, F>("scaled_dot_product_attention")>();
  require<same_elements<E, G>("scaled_dot_product_attention")>();
  LC_OUT(E,
         infer_attention(Tensor<E, Q...>::static_shape, Tensor<F, K...>::static_shape, Tensor<G, V...>::static_shape))
  (lc::scaled_dot_product_attention(Operand(q, at), k, v));
}
// With options (is_causal, scale, ...); their mask is untyped.
template <class E, Dim... Q, class F, Dim... K, class G, Dim... V>
auto scaled_dot_product_attention(const Tensor<E, Q...>& q, const Tensor<F, K...>& k, const Tensor<G, V...>& v,
                                  const AttentionOptions& o, LC_AT) {
  require<same_elements<E, F>("scaled_dot_product_attention")>();
  require<same_elements<E, G>("scaled_dot_product_attention")>();
  LC_OUT(E,
         infer_attention(Tensor<E, Q...>::static_shape, Tensor<F, K...>::static_shape, Tensor<G, V...>::static_shape))
  (lc::scaled_dot_product_attention(Operand(q, at), k, v, o));
}
// With a mask that broadcasts to [..., h, s, t]; it is bool, or added to the scores.
template <class E, Dim... Q, class F, Dim... K, class G, Dim... V, class H, Dim... M>
auto scaled_dot_product_attention(const Tensor<E, Q...>& q, const Tensor<F, K...>& k, const Tensor<G, V...>& v,
                                  const Tensor<H, M...>& mask, LC_AT) {
  static_assert(std::is_same_v<H, bool> || kFloating<H>, "scaled_dot_product_attention: the mask is bool or floating");
  require<same_elements<E, F>("scaled_dot_product_attention")>();
  require<same_elements<E, G>("scaled_dot_product_attention")>();
  constexpr Shape a = Tensor<E, Q...>::static_shape, b = Tensor<F, K...>::static_shape;
  constexpr Inferred scores = infer_scores(a, b, Tensor<H, M...>::static_shape);
  require<scores.error>();
  LC_OUT(E, infer_attention(a, b, Tensor<G, V...>::static_shape))
  (lc::scaled_dot_product_attention(Operand(q, at), k, v, mask));
}

// ---- normalisation: over the last axis; over the last axis; channels in groups --------------------------
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> layer_norm(const Tensor<E, A...>& a, double eps = 1e-5, LC_AT) {
  LC_OUT(FloatOf<E>, infer_along("layer_norm", Tensor<E, A...>::static_shape, -1))
  (lc::layer_norm(Operand(a, at), {a.extent(-1)}, {}, {}, eps));
}
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> rms_norm(const Tensor<E, A...>& a, double eps = 1e-6, LC_AT) {
  LC_OUT(FloatOf<E>, infer_along("rms_norm", Tensor<E, A...>::static_shape, -1))
  (lc::rms_norm(Operand(a, at), {a.extent(-1)}, {}, eps));
}
template <int Groups, class E, Dim... A>
Tensor<FloatOf<E>, A...> group_norm(const Tensor<E, A...>& a, double eps = 1e-5, LC_AT) {
  LC_OUT(FloatOf<E>, infer_group_norm(Tensor<E, A...>::static_shape, Groups))
  (lc::group_norm(Operand(a, at), Groups, {}, {}, eps));
}

template <class E, Dim... A, Dim... W, Dim... B>
Tensor<FloatOf<E>, A...> layer_norm(const Tensor<E, A...>& a, const Tensor<FloatOf<E>, W...>& weight,
                                    const Tensor<FloatOf<E>, B...>& bias, double eps = 1e-5, LC_AT) {
  constexpr Shape s = Tensor<E, A...>::static_shape;
  require<infer_affine("layer_norm", s, Tensor<E, W...>::static_shape)>();
  require<infer_affine("layer_norm", s, Tensor<E, B...>::static_shape)>();
  return wrap_as<FloatOf<E>, s>(lc::layer_norm(Operand(a, at), weight.shape(), weight, bias, eps));
}
template <class E, Dim... A, Dim... W>
Tensor<FloatOf<E>, A...> rms_norm(const Tensor<E, A...>& a, const Tensor<FloatOf<E>, W...>& weight, double eps = 1e-6,
                                  LC_AT) {
  constexpr Shape s = Tensor<E, A...>::static_shape;
  require<infer_affine("rms_norm", s, Tensor<E, W...>::static_shape)>();
  return wrap_as<FloatOf<E>, s>(lc::rms_norm(Operand(a, at), weight.shape(), weight, eps));
}
template <int Groups, class E, Dim... A, Dim W, Dim B>
Tensor<FloatOf<E>, A...> group_norm(const Tensor<E, A...>& a, const Tensor<FloatOf<E>, W>& weight,
                                    const Tensor<FloatOf<E>, B>& bias, double eps = 1e-5, LC_AT) {
  constexpr Shape s = Tensor<E, A...>::static_shape;
  require<infer_channels("group_norm", s, Tensor<E, W>::static_shape)>();
  require<infer_channels("group_norm", s, Tensor<E, B>::static_shape)>();
  LC_OUT(FloatOf<E>, infer_group_norm(s, Groups))(lc::group_norm(Operand(a, at), Groups, weight, bias, eps));
}
// Normalises by running statistics; nn::BatchNorm has training.
template <class E, Dim... A, Dim M, Dim V, Dim W, Dim B>
Tensor<FloatOf<E>, A...> batch_norm(const Tensor<E, A...>& x, const Tensor<FloatOf<E>, M>& running_mean,
                                    const Tensor<FloatOf<E>, V>& running_var, const Tensor<FloatOf<E>, W>& weight,
                                    const Tensor<FloatOf<E>, B>& bias, double eps = 1e-5, LC_AT) {
  constexpr Shape s = Tensor<E, A...>::static_shape;
  require<infer_channels("batch_norm", s, Tensor<E, M>::static_shape)>();
  require<infer_channels("batch_norm", s, Tensor<E, V>::static_shape)>();
  require<infer_channels("batch_norm", s, Tensor<E, W>::static_shape)>();
  require<infer_channels("batch_norm", s, Tensor<E, B>::static_shape)>();
  return wrap_as<FloatOf<E>, s>(
      lc::batch_norm(Operand(x, at), running_mean, running_var, weight, bias, false, 0.1, eps));
}
#undef LC_OUT
#undef LC_AT

}  // namespace lc::typed
