// New tensors, and views, concatenation and splitting beyond typed.h (ops/creation.h, ops/shape.h). Part of typed.h.
#pragma once

#include <array>
#include <tuple>

#include "lightcone/ops/typed/tensor.h"
#include "lightcone/ops/typed/view_shapes.h"

namespace lc::typed {

#define LC_AT const At& at = At::current()
#define LC_S(E, D) Tensor<E, D...>::static_shape
#define LC_OUT(R, RULE)        \
  constexpr Inferred r = RULE; \
  require<r.error>();          \
  return wrap_as<R, r.out>

// ---- creation: zeros<2, 3>(g), zeros<double, "batch", 3>(x); the default element type is f32 ----------
#define LC_FILLED(f)                                                                          \
  template <class E, Dim... D>                                                                \
  Tensor<E, D...> f(GraphOf in) {                                                             \
    return wrap_as<E, LC_S(E, D)>(lc::f(in, extents_in(in, LC_S(E, D)), dtype_of<E>::value)); \
  }                                                                                           \
  template <Dim... D>                                                                         \
  Tensor<float, D...> f(GraphOf in) {                                                         \
    return typed::f<float, D...>(in);                                                         \
  }
LC_FILLED(zeros)
LC_FILLED(ones)
LC_FILLED(empty)
#undef LC_FILLED
template <class E, Dim... D>
Tensor<E, D...> full(GraphOf in, Scalar fill_value) {
  return wrap_as<E, LC_S(E, D)>(lc::full(in, extents_in(in, LC_S(E, D)), fill_value, dtype_of<E>::value));
}
template <Dim... D>
Tensor<float, D...> full(GraphOf in, Scalar fill_value) {
  return typed::full<float, D...>(in, fill_value);
}
template <class E, Dim... A>
Tensor<E, A...> empty_like(const Tensor<E, A...>& a, LC_AT) {
  return wrap_as<E, LC_S(E, A)>(lc::empty_like(Operand(a, at)));
}
template <class E, Dim... A>
Tensor<E, A...> full_like(const Tensor<E, A...>& a, Scalar fill_value, LC_AT) {
  return wrap_as<E, LC_S(E, A)>(lc::full_like(Operand(a, at), fill_value, dtype_of<E>::value));
}
// 0, 1, ..., End - 1, where End may be a name: arange<10>(g), arange<float, "tokens">(x).
template <class E, Dim End>
Tensor<E, End> arange(GraphOf in) {
  constexpr Shape s = Tensor<E, End>::static_shape;
  return wrap_as<E, s>(lc::arange(in, extents_in(in, s)[0], dtype_of<E>::value));
}
template <Dim End>
Tensor<std::int64_t, End> arange(GraphOf in) {
  return typed::arange<std::int64_t, End>(in);
}
// Start, Start + Step, ... below End (above, for a negative step).
template <class E, int Start, int End, int Step = 1>
auto arange(GraphOf in) {
  LC_OUT(E, infer_arange(Start, End, Step))
  (lc::arange(in, Scalar(Start), Scalar(End), Scalar(Step), dtype_of<E>::value));
}
template <int Start, int End, int Step = 1>
auto arange(GraphOf in) {
  return typed::arange<std::int64_t, Start, End, Step>(in);
}
template <class E, int Steps>
Tensor<E, Steps> linspace(GraphOf in, double start, double end) {
  return wrap_as<E, Tensor<E, Steps>::static_shape>(lc::linspace(in, start, end, Steps, dtype_of<E>::value));
}
template <int Steps>
Tensor<float, Steps> linspace(GraphOf in, double start, double end) {
  return typed::linspace<float, Steps>(in, start, end);
}
template <class E, Dim N, Dim M = N>
Tensor<E, N, M> eye(GraphOf in) {
  constexpr Shape s = Tensor<E, N, M>::static_shape;
  const lc::Shape extents = extents_in(in, s);
  return wrap_as<E, s>(lc::eye(in, extents[0], extents[1], dtype_of<E>::value));
}
template <Dim N, Dim M = N>
Tensor<float, N, M> eye(GraphOf in) {
  return typed::eye<float, N, M>(in);
}

// ---- views ------------------------------------------------------------------------------------------
template <int I, int J, class E, Dim... A>
auto swapdims(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_transpose(LC_S(E, A), I, J))(lc::swapdims(Operand(a, at), I, J));
}
template <class E, Dim... A>
auto squeeze(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_squeeze_all(LC_S(E, A)))(lc::squeeze(Operand(a, at)));
}
template <class E, Dim... A, class F, Dim... B>
auto view_as(const Tensor<E, A...>& a, const Tensor<F, B...>& other, LC_AT) {
  LC_OUT(E, infer_reshape(LC_S(E, A), LC_S(F, B)))(lc::view_as(Operand(a, at), other));
}
template <class E, Dim... A, class F, Dim... B>
auto expand_as(const Tensor<E, A...>& a, const Tensor<F, B...>& other, LC_AT) {
  LC_OUT(E, infer_broadcast_to(LC_S(E, A), LC_S(F, B)))(lc::expand_as(Operand(a, at), other));
}
// Expands all tensors to their common broadcast shape.
template <class E, Dim... A, class... More>
auto broadcast_tensors(const Tensor<E, A...>& a, const More&... more) {
  constexpr Inferred r = [] {
    Inferred all{LC_S(E, A), {}};
    ((all = all.ok() ? infer_broadcast("broadcast_tensors", all.out, More::static_shape) : all), ...);
    return all;
  }();
  require<r.error>();
  const std::vector<lc::Tensor> parts = lc::broadcast_tensors({a, more...});
  auto next = parts.begin();
  const auto part = [&next] { return *next++; };
  return std::tuple<TensorOf<E, r.out>, TensorOf<typename More::Element, r.out>...>{
      wrap_as<E, r.out>(part()), wrap_as<typename More::Element, r.out>(part())...};
}
template <class E, Dim... A>
auto ravel(const Tensor<E, A...>& a, LC_AT) {
  return wrap_as<E, infer_ravel(LC_S(E, A))>(lc::ravel(Operand(a, at)));
}
// A single size may be dyn and is inferred.
template <int Axis, Dim... To, class E, Dim... A>
auto unflatten(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_unflatten(LC_S(E, A), Axis, LC_S(E, To)))
  (lc::unflatten(Operand(a, at), Axis, extents_in(a, LC_S(E, To))));
}
#define LC_MOVED(f)                                                        \
  template <Sizes Source, Sizes Destination, class E, Dim... A>            \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                \
    LC_OUT(E, infer_movedim(LC_S(E, A), Source, Destination))              \
    (lc::f(Operand(a, at), std::vector<int>(Source.begin(), Source.end()), \
           std::vector<int>(Destination.begin(), Destination.end())));     \
  }                                                                        \
  template <int Source, int Destination, class E, Dim... A>                \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                \
    return typed::f<Sizes{Source}, Sizes{Destination}>(a, at);             \
  }
LC_MOVED(movedim)
LC_MOVED(moveaxis)
#undef LC_MOVED
template <int Offset = 0, int Axis1 = 0, int Axis2 = 1, class E, Dim... A>
auto diagonal(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_diagonal(LC_S(E, A), Offset, Axis1, Axis2))(lc::diagonal(Operand(a, at), Offset, Axis1, Axis2));
}
#define LC_ATLEAST(f, RANK)                                                    \
  template <class E, Dim... A>                                                 \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                    \
    return wrap_as<E, infer_atleast(LC_S(E, A), RANK)>(lc::f(Operand(a, at))); \
  }
LC_ATLEAST(atleast_1d, 1)
LC_ATLEAST(atleast_2d, 2)
LC_ATLEAST(atleast_3d, 3)
#undef LC_ATLEAST

// ---- concatenation ----------------------------------------------------------------------------------
template <int Axis = 0, std::derived_from<lc::Tensor>... Parts>
auto concatenate(const Parts&... parts) {
  return typed::concat<Axis>(parts...);
}
#define LC_JOINED(f, AXIS, WIDE)                                                                  \
  template <class E, Dim... A, std::derived_from<lc::Tensor>... More>                             \
  auto f(const Tensor<E, A...>& first, const More&... more) {                                     \
    constexpr int axis = WIDE(LC_S(E, A)).rank > AXIS ? AXIS : 0;                                 \
    constexpr Inferred r = infer_joined<axis>(#f, WIDE(LC_S(E, A)), WIDE(More::static_shape)...); \
    require<r.error>();                                                                           \
    (require<same_elements<E, typename More::Element>("concat")>(), ...);                         \
    return wrap_as<E, r.out>(lc::f({first, more...}));                                            \
  }
#define LC_WIDE1(s) infer_atleast(s, 1)
#define LC_WIDE2(s) infer_atleast(s, 2)
#define LC_WIDE3(s) infer_atleast(s, 3)
LC_JOINED(hstack, 1, LC_WIDE1)
LC_JOINED(vstack, 0, LC_WIDE2)
LC_JOINED(dstack, 2, LC_WIDE3)
LC_JOINED(column_stack, 1, infer_column)
#undef LC_WIDE1
#undef LC_WIDE2
#undef LC_WIDE3
#undef LC_JOINED

// ---- splitting: an array of equal pieces, or a tuple; auto [q, k, v] = chunk<3, -1>(x) -----------------
template <class E, Shape S, int Axis, Pieces P, int K>
struct PieceOf {  // g++ 12 cannot expand such shapes in place
  static constexpr Shape shape = P.piece(S, Axis, K);
  using type = TensorOf<E, shape>;
  static type of(const std::vector<lc::Tensor>& parts) { return wrap_as<E, shape>(parts[K]); }
};
template <class E, Shape S, int Axis, Pieces P, int... K>
auto pieces_of(const std::vector<lc::Tensor>& parts, std::integer_sequence<int, K...>) {
  if constexpr (P.alike())
    return std::array<typename PieceOf<E, S, Axis, P, 0>::type, P.count>{PieceOf<E, S, Axis, P, K>::of(parts)...};
  else return std::tuple<typename PieceOf<E, S, Axis, P, K>::type...>{PieceOf<E, S, Axis, P, K>::of(parts)...};
}
#define LC_PIECES(RULE)            \
  constexpr Cut cut = RULE;        \
  require<cut.error>();            \
  constexpr Pieces p = cut.pieces; \
  return pieces_of<E, LC_S(E, A), Axis, p>
#define LC_EACH std::make_integer_sequence<int, p.count>()
template <int Size, int Axis = 0, class E, Dim... A>
auto split(const Tensor<E, A...>& a, LC_AT) {
  LC_PIECES(infer_split("split", LC_S(E, A), Size, Axis))(lc::split(Operand(a, at), Size, Axis), LC_EACH);
}
template <int Chunks, int Axis = 0, class E, Dim... A>
auto chunk(const Tensor<E, A...>& a, LC_AT) {
  LC_PIECES(infer_chunk(LC_S(E, A), Chunks, Axis))(lc::chunk(Operand(a, at), Chunks, Axis), LC_EACH);
}
template <int Sections, int Axis = 0, class E, Dim... A>
auto tensor_split(const Tensor<E, A...>& a, LC_AT) {
  LC_PIECES(infer_tensor_split(LC_S(E, A), Sections, Axis))
  (lc::tensor_split(Operand(a, at), Sections, Axis), LC_EACH);
}
// split<Sizes{2, 3}>(x) returns pieces of 2 and 3 elements.
template <Sizes Parts, int Axis = 0, class E, Dim... A>
auto split(const Tensor<E, A...>& a, LC_AT) {
  LC_PIECES(infer_split(LC_S(E, A), Parts, Axis))
  (lc::split(Operand(a, at), std::vector<lc::Dim>(Parts.begin(), Parts.end()), Axis), LC_EACH);
}
// tensor_split<Sizes{2, 5}>(x) splits before elements 2 and 5.
template <Sizes Places, int Axis = 0, class E, Dim... A>
auto tensor_split(const Tensor<E, A...>& a, LC_AT) {
  LC_PIECES(infer_tensor_split(LC_S(E, A), Places, Axis))
  (lc::tensor_split(Operand(a, at), std::vector<std::int64_t>(Places.begin(), Places.end()), Axis), LC_EACH);
}
template <int Axis = 0, class E, Dim... A>
auto unbind(const Tensor<E, A...>& a, LC_AT) {
  LC_PIECES(infer_unbind(LC_S(E, A), Axis))(lc::unbind(Operand(a, at), Axis), LC_EACH);
}
#undef LC_EACH
#undef LC_PIECES

// ---- padding, shifting and repeating ----------------------------------------------------------------
template <class E, Dim... A>
Tensor<E, A...> roll(const Tensor<E, A...>& a, std::int64_t shift, LC_AT) {
  return wrap_as<E, LC_S(E, A)>(lc::roll(Operand(a, at), shift));
}
template <int... Times, class E, Dim... A>
auto repeat(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_repeat("repeat", LC_S(E, A), Sizes{Times...}))(lc::repeat(Operand(a, at), {Times...}));
}
template <int... Times, class E, Dim... A>
auto tile(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_tile(LC_S(E, A), Sizes{Times...}))(lc::tile(Operand(a, at), {Times...}));
}
template <int Times, int Axis, class E, Dim... A>
auto repeat_interleave(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_repeat_interleave(LC_S(E, A), Times, Axis))(lc::repeat_interleave(Operand(a, at), Times, Axis));
}
template <int Times, class E, Dim... A>
auto repeat_interleave(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_repeat_interleave(infer_ravel(LC_S(E, A)), Times, 0))(lc::repeat_interleave(Operand(a, at), Times));
}
template <class E, Dim... A>
Tensor<E, A...> fliplr(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_along("fliplr", LC_S(E, A), 1))(lc::fliplr(Operand(a, at)));
}
template <class E, Dim... A>
Tensor<E, A...> flipud(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_along("flipud", LC_S(E, A), 0))(lc::flipud(Operand(a, at)));
}
template <int K = 1, int From = 0, int To = 1, class E, Dim... A>
auto rot90(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_rot90(LC_S(E, A), K, From, To))(lc::rot90(Operand(a, at), K, {From, To}));
}
#undef LC_OUT
#undef LC_S
#undef LC_AT

}  // namespace lc::typed
