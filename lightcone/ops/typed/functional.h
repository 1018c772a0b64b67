// The rest of torch.nn.functional, typed: transposed convolutions, adaptive pools, windows, images, embedding bags,
// attention (ops/ops.h, ops/conv.h, ops/functional/functional.h). Part of typed.h.
#pragma once

#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/typed/functional_shapes.h"
#include "lightcone/ops/typed/layers.h"
#include "lightcone/ops/typed/typed.h"

namespace lc::typed {

#define LC_AT const At& at = At::current()
#define LC_S(E, D) Tensor<E, D...>::static_shape
#define LC_OUT(R, RULE)        \
  constexpr Inferred r = RULE; \
  require<r.error>();          \
  return wrap_as<R, r.out>

// ---- activations and reductions in pairs ------------------------------------------------------------------
template <int Axis = -1, class E, Dim... A>
auto glu(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(FloatOf<E>, infer_glu(LC_S(E, A), Axis))(lc::glu(Operand(a, at), Axis));
}
template <class E, Dim... A, class F, Dim... W>
Tensor<E, A...> prelu(const Tensor<E, A...>& a, const Tensor<F, W...>& weight, LC_AT) {
  require<same_elements<E, F>("prelu")>();
  LC_OUT(E, infer_prelu(LC_S(E, A), LC_S(F, W)))(lc::prelu(Operand(a, at), weight));
}
#define LC_PAIR(f, RESULT, SOME, KEEP, CALL, ...)                                           \
  template <int... Axes, class E, Dim... A>                                                 \
  auto f(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {                                     \
    constexpr int axes[] = {Axes..., 0};                                                    \
    constexpr Inferred r = infer_reduce(#f, LC_S(E, A), axes, sizeof...(Axes), KEEP, SOME); \
    require<r.error>();                                                                     \
    const auto [first, second] = lc::f(Operand(a, at), {Axes...}, CALL);                    \
    return std::pair{wrap_as<RESULT, r.out>(first), wrap_as<RESULT, r.out>(second)};        \
  }
#define LC_COMMA ,
LC_PAIR(aminmax, E, true, false, false, )
LC_PAIR(aminmax, E, true, true, true, Keepdim, )
LC_PAIR(var_mean, FloatOf<E>, false, false, correction, int correction = 1, )
LC_PAIR(var_mean, FloatOf<E>, false, true, 1 LC_COMMA true, Keepdim, )
LC_PAIR(std_mean, FloatOf<E>, false, false, correction, int correction = 1, )
LC_PAIR(std_mean, FloatOf<E>, false, true, 1 LC_COMMA true, Keepdim, )
#undef LC_COMMA
#undef LC_PAIR

// ---- normalisation and distances ----------------------------------------------------------------------------
// Normalises each channel of each sample over its spatial axes; nn::InstanceNorm has running statistics.
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> instance_norm(const Tensor<E, A...>& x, LC_AT) {
  LC_OUT(FloatOf<E>, infer_instance_norm(LC_S(E, A)))(lc::instance_norm(Operand(x, at)));
}
template <class E, Dim... A, Dim W, Dim B>
Tensor<FloatOf<E>, A...> instance_norm(const Tensor<E, A...>& x, const Tensor<FloatOf<E>, W>& weight,
                                       const Tensor<FloatOf<E>, B>& bias, double eps = 1e-5, LC_AT) {
  constexpr Shape s = LC_S(E, A);
  require<infer_channels("instance_norm", s, Tensor<E, W>::static_shape)>();
  require<infer_channels("instance_norm", s, Tensor<E, B>::static_shape)>();
  LC_OUT(FloatOf<E>, infer_instance_norm(s))
  (lc::instance_norm(Operand(x, at), {}, {}, weight, bias, true, 0.1, eps));
}
template <int Axis, class E, Dim... A>
auto normalize(const Tensor<E, A...>& x, double p = 2, double eps = 1e-12, LC_AT) {
  LC_OUT(FloatOf<E>, infer_along("normalize", LC_S(E, A), Axis))(lc::normalize(Operand(x, at), p, Axis, eps));
}
template <int Axis, class E, Dim... A, class F, Dim... B>
auto cosine_similarity(const Tensor<E, A...>& a, const Tensor<F, B...>& b, double eps = 1e-8, LC_AT) {
  require<same_elements<E, F>("cosine_similarity")>();
  LC_OUT(FloatOf<E>, infer_along_both("cosine_similarity", LC_S(E, A), LC_S(F, B), Axis, false))
  (lc::cosine_similarity(Operand(a, at), b, Axis, eps));
}
#define LC_DISTANCE(KEEP, ...)                                                                    \
  template <class E, Dim... A, class F, Dim... B>                                                 \
  auto pairwise_distance(const Tensor<E, A...>& a, const Tensor<F, B...>& b, __VA_ARGS__ LC_AT) { \
    require<same_elements<E, F>("pairwise_distance")>();                                          \
    LC_OUT(FloatOf<E>, infer_along_both("pairwise_distance", LC_S(E, A), LC_S(F, B), -1, KEEP))   \
    (lc::pairwise_distance(Operand(a, at), b, p, eps, KEEP));                                     \
  }
LC_DISTANCE(false, double p = 2, double eps = 1e-6, )
LC_DISTANCE(true, double p, double eps, Keepdim, )
#undef LC_DISTANCE
// x is [.., d], the angles [.., d / 2].
template <class E, Dim... A, class F, Dim... C, class G, Dim... S>
Tensor<E, A...> rope(const Tensor<E, A...>& x, const Tensor<F, C...>& cos, const Tensor<G, S...>& sin, bool interleaved,
                     LC_AT) {
  require<same_elements<E, F>("rope")>();
  require<same_elements<E, G>("rope")>();
  LC_OUT(E, infer_rope(LC_S(E, A), LC_S(F, C), LC_S(G, S)))(lc::rope(Operand(x, at), cos, sin, interleaved));
}
template <class E, Dim... A>
Tensor<FloatOf<E>, A...> local_response_norm(const Tensor<E, A...>& x, int size, double alpha = 1e-4,
                                             double beta = 0.75, double k = 1, LC_AT) {
  LC_OUT(FloatOf<E>, infer_local_response_norm(LC_S(E, A)))
  (lc::local_response_norm(Operand(x, at), size, alpha, beta, k));
}
template <int Axis = -1, class E, Dim... A>
Tensor<E, A...> gumbel_softmax(Random& random, const Tensor<E, A...>& logits, double tau = 1, bool hard = false,
                               LC_AT) {
  LC_OUT(E, infer_along("gumbel_softmax", LC_S(E, A), Axis))
  (lc::gumbel_softmax(random, Operand(logits, at), tau, hard, Axis));
}

// ---- transposed convolutions: conv_transpose2d<2, 1>(x, w), conv_transpose2d<2, 1, 1>(x, w, bias) ----------------
#define LC_CONV(f, SPATIAL)                                                                                        \
  template <Each Stride = 1, Each Padding = 0, Each OutputPadding = 0, int Groups = 1, Each Dilation = 1, class E, \
            Dim... A, class F, Dim... W>                                                                           \
  auto f(const Tensor<E, A...>& x, const Tensor<F, W...>& weight, LC_AT) {                                         \
    static_assert(Stride.least(1, SPATIAL) && Padding.least(0, SPATIAL) && Dilation.least(1, SPATIAL),             \
                  "conv_transpose: stride and dilation are positive, the padding not negative");                   \
    require<same_elements<E, F>("conv_transpose")>();                                                              \
    constexpr Window o{Stride, Padding, Dilation, Groups};                                                         \
    LC_OUT(E, infer_conv_transpose(LC_S(E, A), LC_S(F, W), SPATIAL, o, OutputPadding))                             \
    (lc::conv_transpose(Operand(x, at), weight,                                                                    \
                        {.stride = numbers(Stride, SPATIAL),                                                       \
                         .padding = numbers(Padding, SPATIAL),                                                     \
                         .dilation = numbers(Dilation, SPATIAL),                                                   \
                         .groups = Groups,                                                                         \
                         .output_padding = numbers(OutputPadding, SPATIAL)}));                                     \
  }                                                                                                                \
  template <Each Stride = 1, Each Padding = 0, Each OutputPadding = 0, int Groups = 1, Each Dilation = 1, class E, \
            Dim... A, class F, Dim... W, Dim B>                                                                    \
  auto f(const Tensor<E, A...>& x, const Tensor<F, W...>& weight, const Tensor<E, B>& bias, LC_AT) {               \
    using Y = decltype(typed::f<Stride, Padding, OutputPadding, Groups, Dilation>(x, weight, at));                 \
    require<infer_channels("conv_transpose", Y::static_shape, Tensor<E, B>::static_shape)>();                      \
    return wrap_as<E, Y::static_shape>(lc::f(Operand(x, at), weight, bias, numbers(Stride, SPATIAL),               \
                                             numbers(Padding, SPATIAL), numbers(OutputPadding, SPATIAL), Groups,   \
                                             numbers(Dilation, SPATIAL)));                                         \
  }
LC_CONV(conv_transpose1d, 1)
LC_CONV(conv_transpose2d, 2)
LC_CONV(conv_transpose3d, 3)
#undef LC_CONV

// ---- pools --------------------------------------------------------------------------------------------------
#define LC_TO_SIZE(f, SPATIAL)                              \
  template <Each Size, class E, Dim... A>                   \
  auto f(const Tensor<E, A...>& x, LC_AT) {                 \
    LC_OUT(E, infer_to_size(#f, LC_S(E, A), SPATIAL, Size)) \
    (lc::f(Operand(x, at), numbers(Size, SPATIAL)));        \
  }
LC_TO_SIZE(adaptive_avg_pool1d, 1)
LC_TO_SIZE(adaptive_avg_pool2d, 2)
LC_TO_SIZE(adaptive_avg_pool3d, 3)
LC_TO_SIZE(adaptive_max_pool1d, 1)
LC_TO_SIZE(adaptive_max_pool2d, 2)
LC_TO_SIZE(adaptive_max_pool3d, 3)
#undef LC_TO_SIZE
// The rank of x determines the number of spatial axes.
template <Each Kernel, Each Stride = Kernel, class E, Dim... A>
auto lp_pool(const Tensor<E, A...>& x, double p, LC_AT) {
  constexpr int n = static_cast<int>(sizeof...(A)) - 2;
  LC_OUT(E, infer_pool("lp_pool", LC_S(E, A), n, Kernel, {Stride, 0, 1, 1}))
  (lc::lp_pool(Operand(x, at), p, numbers(Kernel, n), numbers(Stride, n)));
}
template <Each Kernel, Each Stride = Kernel, Each Padding = 0, class E, Dim... A>
auto max_pool_with_indices(const Tensor<E, A...>& x, LC_AT) {
  constexpr int n = static_cast<int>(sizeof...(A)) - 2;
  constexpr Inferred r = infer_pool("max_pool_with_indices", LC_S(E, A), n, Kernel, {Stride, Padding, 1, 1});
  require<r.error>();
  return both_of<E, r.out>(
      lc::max_pool_with_indices(Operand(x, at), numbers(Kernel, n), numbers(Stride, n), numbers(Padding, n)));
}
template <Each Kernel, Each Stride = Kernel, Each Padding = 0, class E, Dim... A, class I, Dim... N>
auto max_unpool(const Tensor<E, A...>& x, const Tensor<I, N...>& indices, LC_AT) {
  constexpr int n = static_cast<int>(sizeof...(A)) - 2;
  static_assert(std::is_integral_v<I>, "max_unpool: indices are integers");
  LC_OUT(E, infer_max_unpool(LC_S(E, A), LC_S(I, N), Kernel, Stride, Padding))
  (lc::max_unpool(Operand(x, at), indices, numbers(Kernel, n), numbers(Stride, n), numbers(Padding, n)));
}

// ---- windows and pixels -----------------------------------------------------------------------------------------
template <Each Kernel, Each Dilation = 1, Each Padding = 0, Each Stride = 1, class E, Dim... A>
auto unfold(const Tensor<E, A...>& x, LC_AT) {
  static_assert(Kernel.least(1, 2) && Dilation.least(1, 2) && Padding.least(0, 2) && Stride.least(1, 2),
                "unfold: kernel, dilation and stride are positive, the padding not negative");
  LC_OUT(E, infer_unfold(LC_S(E, A), {Kernel, Dilation, Padding, Stride}))
  (lc::unfold(Operand(x, at), numbers(Kernel, 2), numbers(Dilation, 2), numbers(Padding, 2), numbers(Stride, 2)));
}
template <Each Output, Each Kernel, Each Dilation = 1, Each Padding = 0, Each Stride = 1, class E, Dim... A>
auto fold(const Tensor<E, A...>& x, LC_AT) {
  static_assert(Kernel.least(1, 2) && Dilation.least(1, 2) && Padding.least(0, 2) && Stride.least(1, 2),
                "fold: kernel, dilation and stride are positive, the padding not negative");
  LC_OUT(E, infer_fold(LC_S(E, A), Output, {Kernel, Dilation, Padding, Stride}))
  (lc::fold(Operand(x, at), numbers(Output, 2), numbers(Kernel, 2), numbers(Dilation, 2), numbers(Padding, 2),
            numbers(Stride, 2)));
}
template <int Factor, class E, Dim... A>
auto pixel_shuffle(const Tensor<E, A...>& x, LC_AT) {
  LC_OUT(E, infer_pixels("pixel_shuffle", LC_S(E, A), Factor, true))(lc::pixel_shuffle(Operand(x, at), Factor));
}
template <int Factor, class E, Dim... A>
auto pixel_unshuffle(const Tensor<E, A...>& x, LC_AT) {
  LC_OUT(E, infer_pixels("pixel_unshuffle", LC_S(E, A), Factor, false))(lc::pixel_unshuffle(Operand(x, at), Factor));
}
template <int Groups, class E, Dim... A>
Tensor<E, A...> channel_shuffle(const Tensor<E, A...>& x, LC_AT) {
  LC_OUT(E, infer_channel_shuffle(LC_S(E, A), Groups))(lc::channel_shuffle(Operand(x, at), Groups));
}

// ---- images: interpolate<Each{8, 8}>(x, "bilinear") ---------------------------------------------------------------
template <Each Size, class E, Dim... A>
auto interpolate(const Tensor<E, A...>& x, std::string_view mode = "nearest", bool align_corners = false, LC_AT) {
  constexpr int n = static_cast<int>(sizeof...(A)) - 2;
  LC_OUT(E, infer_interpolate(LC_S(E, A), Size))
  (lc::interpolate(Operand(x, at),
                   InterpolateOptions{.size = numbers(Size, n), .mode = mode, .align_corners = align_corners}));
}
template <class E, Dim... A, class F, Dim... G>
auto grid_sample(const Tensor<E, A...>& x, const Tensor<F, G...>& grid, std::string_view mode = "bilinear",
                 std::string_view padding_mode = "zeros", bool align_corners = false, LC_AT) {
  require<same_elements<E, F>("grid_sample")>();
  LC_OUT(E, infer_grid_sample(LC_S(E, A), LC_S(F, G)))
  (lc::grid_sample(Operand(x, at), grid, mode, padding_mode, align_corners));
}
// affine_grid<"batch", 3, 8, 8>(theta): the grid for an image of that size.
template <Dim... Size, class E, Dim... T>
auto affine_grid(const Tensor<E, T...>& theta, bool align_corners = false, LC_AT) {
  LC_OUT(E, infer_affine_grid(LC_S(E, T), LC_S(E, Size)))
  (lc::affine_grid(Operand(theta, at), extents_in(theta, LC_S(E, Size)), align_corners));
}

// ---- embedding bags -------------------------------------------------------------------------------------------
template <class I, Dim... A, class E, Dim... W>
auto embedding_bag(const Tensor<I, A...>& ids, const Tensor<E, W...>& weight, const EmbeddingBagOptions& o = {},
                   LC_AT) {
  static_assert(std::is_integral_v<I>, "embedding_bag: ids come first, and are integers");
  LC_OUT(E, infer_bags(LC_S(I, A), LC_S(E, W), nullptr, false))(lc::embedding_bag(Operand(ids, at), weight, o));
}
// IncludeLastOffset, which affects the shape, is a template argument: embedding_bag<true>(ids, weight, offsets).
template <bool IncludeLastOffset = false, class I, Dim... A, class E, Dim... W, class J, Dim... B>
auto embedding_bag(const Tensor<I, A...>& ids, const Tensor<E, W...>& weight, const Tensor<J, B...>& offsets,
                   std::string_view mode = "mean", std::int64_t padding_idx = -1, LC_AT) {
  static_assert(std::is_integral_v<I> && std::is_integral_v<J>, "embedding_bag: ids and offsets are integers");
  constexpr Shape cuts = LC_S(J, B);
  LC_OUT(E, infer_bags(LC_S(I, A), LC_S(E, W), &cuts, IncludeLastOffset))
  (lc::embedding_bag(Operand(ids, at), weight, Operand(offsets, at),
                     {.mode = mode, .include_last_offset = IncludeLastOffset, .padding_idx = padding_idx}));
}
template <class I, Dim... A, class E, Dim... W, class F, Dim... S>
auto embedding_bag_weighted(const Tensor<I, A...>& ids, const Tensor<E, W...>& weight,
                            const Tensor<F, S...>& per_sample_weights, LC_AT) {
  static_assert(std::is_integral_v<I>, "embedding_bag: ids come first, and are integers");
  require<infer_sample_weights(LC_S(I, A), LC_S(F, S))>();
  LC_OUT(E, infer_bags(LC_S(I, A), LC_S(E, W), nullptr, false))
  (lc::embedding_bag_weighted(Operand(ids, at), weight, Operand(per_sample_weights, at)));
}
template <class I, Dim... A, class E, Dim... W, class J, Dim... B, class F, Dim... S>
auto embedding_bag_weighted(const Tensor<I, A...>& ids, const Tensor<E, W...>& weight, const Tensor<J, B...>& offsets,
                            const Tensor<F, S...>& per_sample_weights, LC_AT) {
  static_assert(std::is_integral_v<I> && std::is_integral_v<J>, "embedding_bag: ids and offsets are integers");
  require<infer_sample_weights(LC_S(I, A), LC_S(F, S))>();
  constexpr Shape cuts = LC_S(J, B);
  LC_OUT(E, infer_bags(LC_S(I, A), LC_S(E, W), &cuts, false))
  (lc::embedding_bag_weighted(Operand(ids, at), weight, Operand(offsets, at), Operand(per_sample_weights, at)));
}

// ---- attention ------------------------------------------------------------------------------------------------
// The weights are untyped, because options determine their shape: averaged or per head, and the number of keys.
template <class T>
struct Attended {
  T output;
  lc::Tensor weights;
};
template <class E, Dim... Q, class F, Dim... K, class G, Dim... V>
auto multi_head_attention_forward(const Tensor<E, Q...>& query, const Tensor<F, K...>& key,
                                  const Tensor<G, V...>& value, const MultiHeadAttentionArguments& o, LC_AT) {
  require<same_elements<E, F>("multi_head_attention_forward")>();
  require<same_elements<E, G>("multi_head_attention_forward")>();
  const lc::Attended both = lc::multi_head_attention_forward(Operand(query, at), key, value, o);
  return Attended<Tensor<E, Q...>>{Tensor<E, Q...>::from(both.output, at), both.weights};
}
#undef LC_OUT
#undef LC_S
#undef LC_AT

}  // namespace lc::typed
