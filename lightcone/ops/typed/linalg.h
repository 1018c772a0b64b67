// Linear algebra, typed (ops/linalg/linalg.h): products, norms, factorisations. Part of typed.h.
#pragma once

#include "lightcone/ops/linalg/linalg.h"
#include "lightcone/ops/typed/linalg_shapes.h"
#include "lightcone/ops/typed/typed.h"
#include "lightcone/ops/typed/view_shapes.h"

namespace lc::typed {

#define LC_AT const At& at = At::current()
#define LC_S(E, D) Tensor<E, D...>::static_shape
#define LC_OUT(R, RULE)        \
  constexpr Inferred r = RULE; \
  require<r.error>();          \
  return wrap_as<R, r.out>

// ---- products -----------------------------------------------------------------------------------------
#define LC_PRODUCT(f, RULE)                                           \
  template <class E, Dim... A, class F, Dim... B>                     \
  auto f(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) { \
    require<same_elements<E, F>(#f)>();                               \
    constexpr Shape x = LC_S(E, A), y = LC_S(F, B);                   \
    LC_OUT(E, RULE)(lc::f(Operand(a, at), b));                        \
  }
LC_PRODUCT(mm, infer_product("mm", x, 2, y, 2))
LC_PRODUCT(bmm, infer_product("bmm", x, 3, y, 3))
LC_PRODUCT(mv, infer_product("mv", x, 2, y, 1))
LC_PRODUCT(dot, infer_product("dot", x, 1, y, 1))
LC_PRODUCT(vdot, infer_product("vdot", x, 1, y, 1))
LC_PRODUCT(outer, infer_outer("outer", x, y))
LC_PRODUCT(inner, infer_inner(x, y))
LC_PRODUCT(cross, infer_cross(x, y))
LC_PRODUCT(kron, (Inferred{infer_kron(x, y), {}}))
#undef LC_PRODUCT
// Computes beta * input + alpha * product.
#define LC_ADDED(f, RULE)                                                                                   \
  template <class E, Dim... I, class F, Dim... A, class G, Dim... B>                                        \
  auto f(const Tensor<E, I...>& input, const Tensor<F, A...>& a, const Tensor<G, B...>& b, double beta = 1, \
         double alpha = 1, LC_AT) {                                                                         \
    require<same_elements<E, F>(#f)>();                                                                     \
    require<same_elements<E, G>(#f)>();                                                                     \
    constexpr Shape x = LC_S(F, A), y = LC_S(G, B);                                                         \
    LC_OUT(E, infer_added(#f, LC_S(E, I), RULE))(lc::f(Operand(input, at), a, b, beta, alpha));             \
  }
LC_ADDED(addmm, infer_product("addmm", x, 2, y, 2))
LC_ADDED(addmv, infer_product("addmv", x, 2, y, 1))
LC_ADDED(addr, infer_outer("addr", x, y))
LC_ADDED(baddbmm, infer_product("baddbmm", x, 3, y, 3))
LC_ADDED(addbmm, without_batch(infer_product("addbmm", x, 3, y, 3)))
#undef LC_ADDED
// Multiplies matrices; the first and the last operand may be vectors.
template <class E, Dim... A, class... More>
auto chain_matmul(const Tensor<E, A...>& first, const More&... more) {
  (require<same_elements<E, typename More::Element>("chain_matmul")>(), ...);
  constexpr Shape shapes[] = {LC_S(E, A), More::static_shape...};
  LC_OUT(E, infer_chain(shapes, 1 + sizeof...(More)))(lc::chain_matmul({first, more...}));
}
template <class E, Dim... A, class... More>
auto multi_dot(const Tensor<E, A...>& first, const More&... more) {
  return typed::chain_matmul(first, more...);
}
template <int Dims = 2, class E, Dim... A, class F, Dim... B>
auto tensordot(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  require<same_elements<E, F>("tensordot")>();
  LC_OUT(E, infer_tensordot(LC_S(E, A), LC_S(F, B), Dims))(lc::tensordot(Operand(a, at), b, Dims));
}
// tensordot<Sizes{0, 1}, Sizes{1, 0}>(a, b) sums axes 0 and 1 of a with axes 1 and 0 of b.
template <Sizes OfA, Sizes OfB, class E, Dim... A, class F, Dim... B>
auto tensordot(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  static_assert(OfA.count == OfB.count, "tensordot: as many axes of the first tensor as of the second");
  require<same_elements<E, F>("tensordot")>();
  LC_OUT(E, infer_tensordot("tensordot", LC_S(E, A), LC_S(F, B), OfA.v, OfB.v, OfA.count))
  (lc::tensordot(Operand(a, at), b, std::vector<int>(OfA.begin(), OfA.end()),
                 std::vector<int>(OfB.begin(), OfB.end())));
}
template <int Axis, class E, Dim... A, class F, Dim... B>
auto cross(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  require<same_elements<E, F>("cross")>();
  LC_OUT(E, infer_cross(LC_S(E, A), LC_S(F, B), Axis))(lc::cross(Operand(a, at), b, Axis));
}
template <int Axis = -1, class E, Dim... A, class F, Dim... B>
auto vecdot(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  require<same_elements<E, F>("vecdot")>();
  LC_OUT(E, infer_vecdot(LC_S(E, A), LC_S(F, B), Axis))(lc::linalg::vecdot(Operand(a, at), b, Axis));
}
template <class E, Dim... A, class F, Dim... B>
auto cdist(const Tensor<E, A...>& a, const Tensor<F, B...>& b, double p = 2, LC_AT) {
  require<same_elements<E, F>("cdist")>();
  LC_OUT(FloatOf<E>, infer_cdist(LC_S(E, A), LC_S(F, B)))(lc::cdist(Operand(a, at), b, p));
}
template <class E, Dim... A>
auto trace(const Tensor<E, A...>& a, LC_AT) {
  LC_OUT(SumOf<E>, infer_trace(LC_S(E, A)))(lc::trace(Operand(a, at)));
}
// einsum<"bij,bjk->bik">(a, b)
template <Text Equation, class E, Dim... A, class... More>
auto einsum(const Tensor<E, A...>& first, const More&... more) {
  (require<same_elements<E, typename More::Element>("einsum")>(), ...);
  constexpr Shape shapes[] = {LC_S(E, A), More::static_shape...};
  LC_OUT(E, infer_einsum(Equation, shapes, 1 + sizeof...(More)))(lc::einsum(Equation.s, {first, more...}));
}

// ---- norms --------------------------------------------------------------------------------------------
#define LC_NORM(f, KEEP, ...)                                                                \
  template <int... Axes, class E, Dim... A>                                                  \
  auto f(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {                                      \
    constexpr int axes[] = {Axes..., 0};                                                     \
    LC_OUT(FloatOf<E>, infer_reduce("vector_norm", LC_S(E, A), axes, sizeof...(Axes), KEEP)) \
    (lc::f(Operand(a, at), p, {Axes...}, KEEP));                                             \
  }
LC_NORM(vector_norm, false, double p = 2, )
LC_NORM(vector_norm, true, double p, Keepdim, )
#undef LC_NORM
// "fro", or 1, -1, inf and -inf, for the matrices spanned by two axes.
#define LC_NORM(KEEP, ...)                                                \
  template <int Axis1 = -2, int Axis2 = -1, class E, Dim... A>            \
  auto matrix_norm(const Tensor<E, A...>& a, __VA_ARGS__ LC_AT) {         \
    LC_OUT(FloatOf<E>, infer_matrix_norm(LC_S(E, A), Axis1, Axis2, KEEP)) \
    (lc::matrix_norm(Operand(a, at), ord, {Axis1, Axis2}, KEEP));         \
  }
LC_NORM(false, std::string_view ord = "fro", )
LC_NORM(true, std::string_view ord, Keepdim, )
LC_NORM(false, double ord, )
LC_NORM(true, double ord, Keepdim, )
#undef LC_NORM

// ---- factorisations -----------------------------------------------------------------------------------
template <class E>
consteval Text fractions(const char* op) {
  Text e;
  if (kFloating<E>) return e;
  return e.add(op)
      .add(": of ")
      .add(name(dtype_of<E>::value).data())
      .add(" there are no fractions; convert to a floating type");
}
#define LC_SQUARE(f, FULL, LESS)                                         \
  template <class E, Dim... A>                                           \
  auto f(const Tensor<E, A...>& a, LC_AT) {                              \
    require<fractions<E>(#f)>();                                         \
    LC_OUT(E, infer_square(#f, LC_S(E, A), LESS))(FULL(Operand(a, at))); \
  }
LC_SQUARE(inverse, lc::inverse, 0)
LC_SQUARE(inv, lc::linalg::inv, 0)
LC_SQUARE(det, lc::det, 2)
LC_SQUARE(logdet, lc::logdet, 2)
#undef LC_SQUARE
#define LC_SQUARE(f)                                                       \
  template <class E, Dim... A>                                             \
  auto f(const Tensor<E, A...>& a, bool upper = false, LC_AT) {            \
    require<fractions<E>(#f)>();                                           \
    LC_OUT(E, infer_square(#f, LC_S(E, A)))(lc::f(Operand(a, at), upper)); \
  }
LC_SQUARE(cholesky)
LC_SQUARE(cholesky_inverse)
#undef LC_SQUARE
// Solves A X = B given the Cholesky factor of A; B comes first, as in PyTorch.
template <class E, Dim... B, class F, Dim... L>
auto cholesky_solve(const Tensor<E, B...>& b, const Tensor<F, L...>& l, bool upper = false, LC_AT) {
  require<same_elements<E, F>("cholesky_solve")>();
  require<fractions<E>("cholesky_solve")>();
  LC_OUT(E, infer_solve("cholesky_solve", LC_S(F, L), LC_S(E, B), true))
  (lc::cholesky_solve(Operand(b, at), l, upper));
}
template <class E, Dim... A>
auto matrix_power(const Tensor<E, A...>& a, int n, LC_AT) {
  LC_OUT(E, infer_matrix_power(LC_S(E, A)))(lc::matrix_power(Operand(a, at), n));
}
template <class T>
struct SignLogDet {
  T sign, logabsdet;
};
template <class E, Dim... A>
auto slogdet(const Tensor<E, A...>& a, LC_AT) {
  require<fractions<E>("slogdet")>();
  constexpr Inferred r = infer_square("slogdet", LC_S(E, A), 2);
  require<r.error>();
  const lc::SignLogDet both = lc::slogdet(Operand(a, at));
  return SignLogDet<TensorOf<E, r.out>>{wrap_as<E, r.out>(both.sign), wrap_as<E, r.out>(both.logabsdet)};
}
// Solves A X = B, or X A = B for Left = false.
template <bool Left = true, class E, Dim... A, class F, Dim... B>
auto solve(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  require<same_elements<E, F>("solve")>();
  require<fractions<E>("solve")>();
  LC_OUT(E, infer_solve_vectors(LC_S(E, A), LC_S(F, B), Left))(lc::linalg::solve(Operand(a, at), b, Left));
}
template <bool Left = true, bool Unitriangular = false, class E, Dim... A, class F, Dim... B>
auto solve_triangular(const Tensor<E, A...>& a, const Tensor<F, B...>& b, bool upper, LC_AT) {
  require<same_elements<E, F>("solve_triangular")>();
  require<fractions<E>("solve_triangular")>();
  LC_OUT(E, infer_solve("solve_triangular", LC_S(E, A), LC_S(F, B), Left))
  (lc::linalg::solve_triangular(Operand(a, at), b, upper, Left, Unitriangular));
}
template <class E, Dim... A, class F, Dim... B>
auto lstsq(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  require<same_elements<E, F>("lstsq")>();
  require<fractions<E>("lstsq")>();
  LC_OUT(E, infer_lstsq(LC_S(E, A), LC_S(F, B)))(lc::linalg::lstsq(Operand(a, at), b));
}
template <class T, class P>
struct Lu {
  T lu;      // [.., n, n]
  P pivots;  // i32 [.., n], counted from 1
};
template <class E, Dim... A>
auto lu_factor(const Tensor<E, A...>& a, LC_AT) {
  require<fractions<E>("lu_factor")>();
  constexpr Inferred r = infer_square("lu_factor", LC_S(E, A)), p = infer_square("lu_factor", LC_S(E, A), 1);
  require<r.error>();
  const lc::linalg::Lu f = lc::linalg::lu_factor(Operand(a, at));
  return Lu<TensorOf<E, r.out>, TensorOf<std::int32_t, p.out>>{wrap_as<E, r.out>(f.lu),
                                                               wrap_as<std::int32_t, p.out>(f.pivots)};
}
template <class E, Dim... A, class I, Dim... P, class F, Dim... B>
auto lu_solve(const Tensor<E, A...>& lu, const Tensor<I, P...>& pivots, const Tensor<F, B...>& b, LC_AT) {
  require<same_elements<E, F>("lu_solve")>();
  require<fractions<E>("lu_solve")>();
  static_assert(std::is_integral_v<I> && sizeof...(P) + 1 == sizeof...(A), "lu_solve: pivots are integers [.., n]");
  LC_OUT(E, infer_solve("lu_solve", LC_S(E, A), LC_S(F, B), true))(lc::linalg::lu_solve(Operand(lu, at), pivots, b));
}
template <class Q, class R>
struct Qr {
  Q q;
  R r;
};
template <class E, Dim... A>
auto qr(const Tensor<E, A...>& a, LC_AT) {
  require<fractions<E>("qr")>();
  constexpr Inferred q = infer_qr(LC_S(E, A), true), r = infer_qr(LC_S(E, A), false);
  require<q.error>();
  const lc::linalg::Qr f = lc::linalg::qr(Operand(a, at));
  return Qr<TensorOf<E, q.out>, TensorOf<E, r.out>>{wrap_as<E, q.out>(f.q), wrap_as<E, r.out>(f.r)};
}
template <class W, class V>
struct Eigh {
  W eigenvalues;
  V eigenvectors;
};
template <class E, Dim... A>
auto eigh(const Tensor<E, A...>& a, std::string_view uplo = "L", LC_AT) {
  require<fractions<E>("eigh")>();
  constexpr Inferred v = infer_square("eigh", LC_S(E, A)), w = infer_square("eigh", LC_S(E, A), 1);
  require<v.error>();
  const lc::linalg::Eigh f = lc::linalg::eigh(Operand(a, at), uplo);
  return Eigh<TensorOf<E, w.out>, TensorOf<E, v.out>>{wrap_as<E, w.out>(f.eigenvalues),
                                                      wrap_as<E, v.out>(f.eigenvectors)};
}
template <class E, Dim... A>
auto eigvalsh(const Tensor<E, A...>& a, std::string_view uplo = "L", LC_AT) {
  return typed::eigh(a, uplo, at).eigenvalues;
}
template <class U, class S, class V>
struct Svd {
  U u;
  S s;
  V vh;
};
template <bool FullMatrices = true, class E, Dim... A>
auto svd(const Tensor<E, A...>& a, LC_AT) {
  require<fractions<E>("svd")>();
  constexpr Inferred u = infer_svd("svd", LC_S(E, A), SvdPart::U, FullMatrices),
                     s = infer_svd("svd", LC_S(E, A), SvdPart::S, FullMatrices),
                     v = infer_svd("svd", LC_S(E, A), SvdPart::Vh, FullMatrices);
  require<u.error>();
  const lc::linalg::Svd f = lc::linalg::svd(Operand(a, at), FullMatrices);
  return Svd<TensorOf<E, u.out>, TensorOf<E, s.out>, TensorOf<E, v.out>>{wrap_as<E, u.out>(f.u), wrap_as<E, s.out>(f.s),
                                                                         wrap_as<E, v.out>(f.vh)};
}
template <class E, Dim... A>
auto svdvals(const Tensor<E, A...>& a, LC_AT) {
  return typed::svd<false>(a, at).s;
}
template <class E, Dim... A>
auto pinv(const Tensor<E, A...>& a, std::optional<double> rtol = {}, LC_AT) {
  require<fractions<E>("pinv")>();
  LC_OUT(E, infer_pinv(LC_S(E, A)))(lc::linalg::pinv(Operand(a, at), rtol));
}
template <class E, Dim... A>
auto matrix_rank(const Tensor<E, A...>& a, std::optional<double> rtol = {}, LC_AT) {
  require<fractions<E>("matrix_rank")>();
  LC_OUT(std::int64_t, infer_batch_of("matrix_rank", LC_S(E, A)))(lc::linalg::matrix_rank(Operand(a, at), rtol));
}
template <class E, Dim... A>
auto cond(const Tensor<E, A...>& a, LC_AT) {
  require<fractions<E>("cond")>();
  LC_OUT(E, infer_batch_of("cond", LC_S(E, A)))(lc::linalg::cond(Operand(a, at)));
}
#undef LC_OUT
#undef LC_S
#undef LC_AT

}  // namespace lc::typed

// Makes linalg::inv(x) and similar calls typed for a typed x.
namespace lc::linalg {
using typed::cholesky;
using typed::cond;
using typed::det;
using typed::eigh;
using typed::eigvalsh;
using typed::inv;
using typed::lstsq;
using typed::lu_factor;
using typed::lu_solve;
using typed::matrix_norm;
using typed::matrix_power;
using typed::matrix_rank;
using typed::multi_dot;
using typed::pinv;
using typed::qr;
using typed::slogdet;
using typed::solve;
using typed::solve_triangular;
using typed::svd;
using typed::svdvals;
using typed::vecdot;
using typed::vector_norm;
template <int Axis = -1, class E, typed::Dim... A, class F, typed::Dim... B>
auto cross(const typed::Tensor<E, A...>& a, const typed::Tensor<F, B...>& b,
           const typed::At& at = typed::At::current()) {
  return typed::cross<Axis>(a, b, at);
}
}  // namespace lc::linalg
