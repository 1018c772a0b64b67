// Reading and writing by index, typed (ops/ops.h, ops/indexing/indexing.h). Part of typed.h.
#pragma once

#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/ops/typed/indexing_shapes.h"
#include "lightcone/ops/typed/typed.h"

namespace lc::typed {

#define LC_AT const At& at = At::current()
#define LC_S(E, D) Tensor<E, D...>::static_shape
#define LC_OUT(R, RULE)        \
  constexpr Inferred r = RULE; \
  require<r.error>();          \
  return wrap_as<R, r.out>
template <class I>
consteval Text whole_indices(const char* op) {
  return std::is_integral_v<I> && !std::is_same_v<I, bool> ? Text() : Text(op).add(": indices are integers");
}

// ---- reading ------------------------------------------------------------------------------------------
template <int Axis, class E, Dim... A, class I, Dim... N>
auto gather(const Tensor<E, A...>& a, const Tensor<I, N...>& index, LC_AT) {
  require<whole_indices<I>("gather")>();
  LC_OUT(E, infer_gather(LC_S(E, A), Axis, LC_S(I, N)))(lc::gather(Operand(a, at), Axis, index));
}
// Reads elements of a, flattened.
template <class E, Dim... A, class I, Dim... N>
Tensor<E, N...> take(const Tensor<E, A...>& a, const Tensor<I, N...>& index, LC_AT) {
  require<whole_indices<I>("take")>();
  return wrap_as<E, LC_S(I, N)>(lc::take(Operand(a, at), index));
}
template <int Axis, class E, Dim... A, class I, Dim... N>
auto take_along_dim(const Tensor<E, A...>& a, const Tensor<I, N...>& indices, LC_AT) {
  require<whole_indices<I>("take_along_dim")>();
  LC_OUT(E, infer_take_along_dim(LC_S(E, A), LC_S(I, N), Axis))(lc::take_along_dim(Operand(a, at), indices, Axis));
}
template <class E, Dim... A, class I, Dim... N>
auto take_along_dim(const Tensor<E, A...>& a, const Tensor<I, N...>& indices, LC_AT) {
  require<whole_indices<I>("take_along_dim")>();
  return wrap_as<E, infer_ravel(LC_S(I, N))>(lc::take_along_dim(Operand(a, at), indices));
}

// ---- writing: a copy of a, with values written by index --------------------------------------------------
#define LC_WRITE(f, RULE)                                                                                        \
  template <int Axis, class E, Dim... A, class I, Dim... N, class F, Dim... S>                                   \
  Tensor<E, A...> f(const Tensor<E, A...>& a, const Tensor<I, N...>& index, const Tensor<F, S...>& src, LC_AT) { \
    require<whole_indices<I>(#f)>();                                                                             \
    require<same_elements<E, F>(#f)>();                                                                          \
    LC_OUT(E, RULE(#f, LC_S(E, A), Axis, LC_S(I, N), LC_S(F, S)))(lc::f(Operand(a, at), Axis, index, src));      \
  }
LC_WRITE(scatter, infer_scatter)
LC_WRITE(scatter_add, infer_scatter)
LC_WRITE(index_add, infer_index_write)
LC_WRITE(index_copy, infer_index_write)
#undef LC_WRITE
template <int Axis, class E, Dim... A, class I, Dim... N>
Tensor<E, A...> scatter(const Tensor<E, A...>& a, const Tensor<I, N...>& index, Scalar value, LC_AT) {
  require<whole_indices<I>("scatter")>();
  LC_OUT(E, infer_scatter("scatter", LC_S(E, A), Axis, LC_S(I, N), LC_S(I, N)))
  (lc::scatter(Operand(a, at), Axis, index, value));
}
// Reduces the values for each position by "sum", "prod", "mean", "amax" or "amin".
#define LC_REDUCED(f, RULE)                                                                             \
  template <int Axis, class E, Dim... A, class I, Dim... N, class F, Dim... S>                          \
  Tensor<E, A...> f(const Tensor<E, A...>& a, const Tensor<I, N...>& index, const Tensor<F, S...>& src, \
                    std::string_view reduce, bool include_self = true, LC_AT) {                         \
    require<whole_indices<I>(#f)>();                                                                    \
    require<same_elements<E, F>(#f)>();                                                                 \
    LC_OUT(E, RULE(#f, LC_S(E, A), Axis, LC_S(I, N), LC_S(F, S)))                                       \
    (lc::f(Operand(a, at), Axis, index, src, reduce, include_self));                                    \
  }
LC_REDUCED(scatter_reduce, infer_scatter)
LC_REDUCED(index_reduce, infer_index_write)
#undef LC_REDUCED
template <int Axis, class E, Dim... A, class I, Dim... N>
Tensor<E, A...> index_fill(const Tensor<E, A...>& a, const Tensor<I, N...>& index, Scalar value, LC_AT) {
  require<whole_indices<I>("index_fill")>();
  LC_OUT(E, infer_index_fill(LC_S(E, A), Axis, LC_S(I, N)))(lc::index_fill(Operand(a, at), Axis, index, value));
}
// Accepts any number of indices; the shape of values is checked when the graph is built.
template <class E, Dim... A, class F, Dim... V>
Tensor<E, A...> index_put(const Tensor<E, A...>& a, const std::vector<lc::Tensor>& indices,
                          const Tensor<F, V...>& values, bool accumulate = false, LC_AT) {
  require<same_elements<E, F>("index_put")>();
  return wrap_as<E, LC_S(E, A)>(lc::index_put(Operand(a, at), indices, values, accumulate));
}
template <class E, Dim... A, class I, Dim... N, class F, Dim... S>
Tensor<E, A...> put(const Tensor<E, A...>& a, const Tensor<I, N...>& index, const Tensor<F, S...>& source,
                    bool accumulate = false, LC_AT) {
  require<whole_indices<I>("put")>();
  require<same_elements<E, F>("put")>();
  LC_OUT(E, infer_put(LC_S(E, A), LC_S(I, N), LC_S(F, S)))(lc::put(Operand(a, at), index, source, accumulate));
}
template <class E, Dim... A, class M, Dim... N, class F, Dim... S>
auto masked_scatter(const Tensor<E, A...>& a, const Tensor<M, N...>& mask, const Tensor<F, S...>& source, LC_AT) {
  static_assert(std::is_same_v<M, bool>, "masked_scatter: a mask is bool");
  require<same_elements<E, F>("masked_scatter")>();
  LC_OUT(E, infer_broadcast("masked_scatter", LC_S(E, A), LC_S(M, N)))
  (lc::masked_scatter(Operand(a, at), mask, source));
}

// ---- diagonals and slices -------------------------------------------------------------------------------
template <int Diagonal = 0, class E, Dim... A>
auto diag(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(E, infer_diag(LC_S(E, A), Diagonal))(lc::diag(Operand(a, at), Diagonal));
}
template <int Offset = 0, int Axis1 = -2, int Axis2 = -1, class E, Dim... A>
auto diag_embed(const Tensor<E, A...>& a, LC_AT) {
  static_assert(sizeof...(A) < kMaxRank, "diag_embed: a typed tensor has at most 8 axes");
  LC_OUT(E, infer_diag_embed(LC_S(E, A), Offset, Axis1, Axis2))(lc::diag_embed(Operand(a, at), Offset, Axis1, Axis2));
}
template <int Offset = 0, int Axis1 = 0, int Axis2 = 1, class E, Dim... A, class F, Dim... S>
Tensor<E, A...> diagonal_scatter(const Tensor<E, A...>& a, const Tensor<F, S...>& src, LC_AT) {
  require<same_elements<E, F>("diagonal_scatter")>();
  LC_OUT(E, infer_source("diagonal_scatter", LC_S(E, A), LC_S(F, S),
                         infer_diagonal(LC_S(E, A), Offset, Axis1, Axis2, "diagonal_scatter")))
  (lc::diagonal_scatter(Operand(a, at), src, Offset, Axis1, Axis2));
}
template <int Axis, class E, Dim... A, class F, Dim... S>
Tensor<E, A...> select_scatter(const Tensor<E, A...>& a, const Tensor<F, S...>& src, std::int64_t index, LC_AT) {
  require<same_elements<E, F>("select_scatter")>();
  LC_OUT(E, infer_select_scatter(LC_S(E, A), LC_S(F, S), Axis))(lc::select_scatter(Operand(a, at), src, Axis, index));
}
// Replaces the elements read by slice<Axis, Begin, End, Step>(a) by src.
template <int Axis, std::int64_t Begin, std::int64_t End, std::int64_t Step = 1, class E, Dim... A, class F, Dim... S>
Tensor<E, A...> slice_scatter(const Tensor<E, A...>& a, const Tensor<F, S...>& src, LC_AT) {
  require<same_elements<E, F>("slice_scatter")>();
  LC_OUT(E, infer_slice_scatter(LC_S(E, A), LC_S(F, S), Axis, Begin, End, Step))
  (lc::slice_scatter(Operand(a, at), src, Axis, Begin, End, Step));
}
// i64 [2, count]: rows and columns of the elements on and below a diagonal.
template <int Rows, int Columns, int Offset = 0>
auto tril_indices(GraphOf in) {
  static_assert(Rows >= 0 && Columns >= 0, "tril_indices: a matrix has no negative extent");
  constexpr auto count = static_cast<long>(on_and_below(Rows, Columns, Offset));
  return wrap_as<std::int64_t, Tensor<std::int64_t, 2, count>::static_shape>(
      lc::tril_indices(in.graph, Rows, Columns, Offset, in.at));
}
template <int Rows, int Columns, int Offset = 0>
auto triu_indices(GraphOf in) {
  static_assert(Rows >= 0 && Columns >= 0, "triu_indices: a matrix has no negative extent");
  constexpr auto count = static_cast<long>(Rows * Columns - on_and_below(Rows, Columns, Offset - 1));
  return wrap_as<std::int64_t, Tensor<std::int64_t, 2, count>::static_shape>(
      lc::triu_indices(in.graph, Rows, Columns, Offset, in.at));
}

// ---- data-dependent sizes, bounded by a capacity: nonzero<10>(x), or by default the size of x --------------
inline constexpr int kAll = -1;
constexpr Dim room_for(int capacity, const Shape& a) { return capacity == kAll ? infer_ravel(a).d[0] : Dim(capacity); }
inline std::optional<lc::Dim> capacity_of(int capacity) {
  return capacity == kAll ? std::nullopt : std::optional<lc::Dim>(capacity);
}
template <class I>
struct Nonzero {
  I indices;
  Tensor<std::int64_t> count;
};
#define LC_NONZERO(f)                                                                                     \
  template <int Capacity = kAll, class E, Dim... A>                                                       \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                               \
    constexpr Shape s = Tensor<std::int64_t, room_for(Capacity, LC_S(E, A)), sizeof...(A)>::static_shape; \
    const lc::Nonzero both = lc::f(Operand(a, at), capacity_of(Capacity));                                \
    return Nonzero<TensorOf<std::int64_t, s>>{wrap_as<std::int64_t, s>(both.indices),                     \
                                              wrap_as<std::int64_t, Shape{}>(both.count)};                \
  }
LC_NONZERO(nonzero)
LC_NONZERO(argwhere)
#undef LC_NONZERO
template <class T>
struct Selected {
  T values;
  Tensor<std::int64_t> count;
};
template <int Capacity = kAll, class E, Dim... A, class M, Dim... N>
auto masked_select(const Tensor<E, A...>& a, const Tensor<M, N...>& mask, LC_AT) {
  static_assert(std::is_same_v<M, bool>, "masked_select: a mask is bool");
  constexpr Inferred r = infer_broadcast("masked_select", LC_S(E, A), LC_S(M, N));
  require<r.error>();
  constexpr Shape s = Tensor<E, room_for(Capacity, r.out)>::static_shape;
  const lc::Selected both = lc::masked_select(Operand(a, at), mask, capacity_of(Capacity));
  return Selected<TensorOf<E, s>>{wrap_as<E, s>(both.values), wrap_as<std::int64_t, Shape{}>(both.count)};
}
template <class T, class I, class C>
struct Unique {
  T values;
  I inverse;
  C counts;
  Tensor<std::int64_t> count;
};
#define LC_UNIQUE(f)                                                                                               \
  template <int Capacity = kAll, class E, Dim... A>                                                                \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                                        \
    constexpr Shape s = Tensor<E, room_for(Capacity, LC_S(E, A))>::static_shape;                                   \
    const lc::Unique u = lc::f(Operand(a, at), capacity_of(Capacity));                                             \
    return Unique<TensorOf<E, s>, Tensor<std::int64_t, A...>, TensorOf<std::int64_t, s>>{                          \
        wrap_as<E, s>(u.values), wrap_as<std::int64_t, LC_S(E, A)>(u.inverse), wrap_as<std::int64_t, s>(u.counts), \
        wrap_as<std::int64_t, Shape{}>(u.count)};                                                                  \
  }
LC_UNIQUE(unique)
LC_UNIQUE(unique_consecutive)
#undef LC_UNIQUE
template <int Axis, int Capacity = kAll, class E, Dim... A>
auto unique_dim(const Tensor<E, A...>& a, LC_AT) {
  constexpr int rank = static_cast<int>(sizeof...(A)), axis = Axis < 0 ? Axis + rank : Axis;
  static_assert(axis >= 0 && axis < rank, "unique_dim: there is no such axis");
  constexpr Dim n = LC_S(E, A).d[axis], room = Capacity == kAll ? n : Dim(Capacity);
  constexpr Shape s = [] {
    Shape with_room = LC_S(E, A);
    with_room.d[axis] = Capacity == kAll ? with_room.d[axis] : Dim(Capacity);
    return with_room;
  }();
  using Rows = Tensor<std::int64_t, n>;
  using Room = Tensor<std::int64_t, room>;
  const lc::Unique u = lc::unique_dim(Operand(a, at), axis, capacity_of(Capacity));
  return Unique<TensorOf<E, s>, Rows, Room>{
      wrap_as<E, s>(u.values), wrap_as<std::int64_t, Rows::static_shape>(u.inverse),
      wrap_as<std::int64_t, Room::static_shape>(u.counts), wrap_as<std::int64_t, Shape{}>(u.count)};
}
#undef LC_OUT
#undef LC_S
#undef LC_AT

}  // namespace lc::typed
