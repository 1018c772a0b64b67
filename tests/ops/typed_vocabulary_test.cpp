// Every typed function promises the shape and element type that its node has.
//
// tools/typed_table.py finds functions that have no typed form.
#include "typed_rules.h"

using namespace lc;
using namespace typed_rules;

namespace {

int count = 0;
template <class E, ty::Dim... D>
ty::Tensor<E, D...> in(Graph& g) {
  return ty::input<E, D...>(g, str_cat("in", count++).c_str());
}
template <class E>
inline constexpr bool kInteger = is_integer(dtype_of<E>::value);

}  // namespace

template <class E>
class Vocabulary : public ::testing::Test {
 protected:
  Graph g;
};
using Elements = ::testing::Types<float, double, f16, std::int32_t, std::int64_t, std::uint8_t, bool>;
TYPED_TEST_SUITE(Vocabulary, Elements);
template <class E>
class FloatingVocabulary : public ::testing::Test {
 protected:
  Graph g;
};
using Floating = ::testing::Types<float, double, bf16>;
TYPED_TEST_SUITE(FloatingVocabulary, Floating);

TYPED_TEST(Vocabulary, Creation) {
  using E = TypeParam;
  Graph& g = this->g;
  const auto a = in<E, "batch", 3>(g);
  KEPT((ty::zeros<E, 2, 3>(g))), KEPT((ty::ones<E, "batch", 3>(a))), KEPT((ty::empty<E, 4>(g))),
      KEPT((ty::full<E, 2, 2>(g, 1))), KEPT((ty::zeros<2, 3>(g))), KEPT((ty::full<2, "batch">(a, 0.5)));
  KEPT(ty::zeros_like(a)), KEPT(ty::ones_like(a)), KEPT(ty::empty_like(a)), KEPT(ty::full_like(a, 1));
  KEPT((ty::arange<E, 10>(g))), KEPT(ty::arange<10>(g)), KEPT(ty::arange<"batch">(a)), KEPT((ty::arange<2, 9, 3>(g))),
      KEPT((ty::arange<E, 9, 2, -2>(g)));
  KEPT((ty::linspace<E, 5>(g, 0, 1))), KEPT(ty::linspace<1>(g, 0, 1)), KEPT((ty::eye<E, 3>(g))),
      KEPT((ty::eye<2, "batch">(a)));
  EXPECT_EQ((ty::zeros<"batch">(a)).extent(0), a.extent(0));
}

TYPED_TEST(Vocabulary, Views) {
  using E = TypeParam;
  Graph& g = this->g;
  const auto a = in<E, "batch", 6, 4>(g);
  const auto m = in<E, 4, 3>(g);
  KEPT(ty::swapdims<0, 2>(a)), KEPT(ty::squeeze(ty::unsqueeze<0>(a))), KEPT(ty::ravel(m)), KEPT(ty::atleast_1d(a));
  KEPT(ty::view_as(m, in<float, 2, 6>(g))), KEPT(ty::expand_as(in<E, 1, 3>(g), in<bool, 4, 3>(g)));
  KEPT(ty::broadcast_tensors(m, in<float, 3>(g), in<E, 2, 1, 1>(g)));
  KEPT((ty::unflatten<1, 2, ty::dyn>(a))), KEPT((ty::unflatten<0, "batch", 1>(a))), KEPT((ty::unflatten<-1, 2, 2>(a)));
  KEPT((ty::movedim<0, -1>(a))), KEPT((ty::moveaxis<ty::Sizes{0, 1}, ty::Sizes{2, 0}>(a)));
  KEPT((ty::diagonal<1, 1, 2>(a))), KEPT(ty::diagonal<-2>(m)), KEPT(ty::diagonal<9>(m));
  KEPT(ty::atleast_1d(in<E>(g))), KEPT(ty::atleast_2d(in<E>(g))), KEPT(ty::atleast_2d(in<E, 3>(g))),
      KEPT(ty::atleast_3d(in<E>(g))), KEPT(ty::atleast_3d(in<E, 3>(g))), KEPT(ty::atleast_3d(m));
}

TYPED_TEST(Vocabulary, JointsAndPieces) {
  using E = TypeParam;
  Graph& g = this->g;
  const auto a = in<E, "batch", 6, 4>(g);
  const auto m = in<E, 4, 3>(g), v = in<E, 3>(g);
  const auto s = in<E>(g);
  KEPT(ty::concatenate<1>(m, m)), KEPT(ty::hstack(m, m)), KEPT(ty::hstack(v, v, s)), KEPT(ty::vstack(v, v)),
      KEPT(ty::vstack(m, v)), KEPT(ty::dstack(m, m)), KEPT(ty::dstack(v, v)), KEPT(ty::column_stack(v, in<E, 3, 2>(g))),
      KEPT(ty::column_stack(s, s));
  KEPT((ty::split<2, 1>(a))), KEPT((ty::split<4, -2>(a))), KEPT((ty::split<ty::Sizes{1, 0, 5}, 1>(a))),
      KEPT(ty::split<9>(m));
  KEPT((ty::chunk<3, 1>(a))), KEPT((ty::chunk<4, 1>(a))), KEPT(ty::chunk<3>(in<E, 0, 2>(g))), KEPT(ty::chunk<5>(m));
  KEPT((ty::tensor_split<4, 1>(a))), KEPT((ty::tensor_split<ty::Sizes{2, -1, 1, 99}, 1>(a)));
  KEPT(ty::unbind<1>(a)), KEPT(ty::unbind(m));
  static_assert(std::is_same_v<decltype(ty::chunk<3, 1>(a)), std::array<ty::Tensor<E, "batch", 2, 4>, 3>>);
  static_assert(std::is_same_v<decltype(ty::split<4, 1>(a)),
                               std::tuple<ty::Tensor<E, "batch", 4, 4>, ty::Tensor<E, "batch", 2, 4>>>);
  KEPT(ty::roll(m, 2)), KEPT((ty::repeat<2, 1, 3>(m))), KEPT(ty::tile<2>(m)), KEPT((ty::tile<2, 1, 1>(m)));
  KEPT((ty::repeat_interleave<2, 1>(a))), KEPT(ty::repeat_interleave<3>(m)), KEPT(ty::fliplr(a)), KEPT(ty::flipud(m));
  KEPT(ty::rot90(m)), KEPT((ty::rot90<2, 1, 2>(a))), KEPT((ty::rot90<-1, 1, 2>(a)));
}

TYPED_TEST(Vocabulary, Products) {
  using E = TypeParam;
  Graph& g = this->g;
  const auto b = in<E, "batch", 3, 3>(g);
  const auto m = in<E, 3, 3>(g);
  const auto w = in<E, 3, 4>(g);
  const auto v = in<E, 3>(g);
  KEPT(ty::mm(m, w)), KEPT(ty::bmm(b, b)), KEPT(ty::mv(m, v)), KEPT(ty::dot(v, v)), KEPT(ty::vdot(v, v)),
      KEPT(ty::inner(m, v)), KEPT(ty::outer(v, v)), KEPT(ty::kron(v, w)), KEPT(ty::trace(w));
  KEPT(ty::addmm(w, m, w)), KEPT(ty::addmm(in<E, 4>(g), m, w, 2, 3)), KEPT(ty::addmv(v, m, v)), KEPT(ty::addr(v, v, v)),
      KEPT(ty::baddbmm(m, b, b)), KEPT(ty::addbmm(v, b, b));
  KEPT(ty::chain_matmul(v, m, w)), KEPT(ty::multi_dot(m, m, v)), KEPT(ty::tensordot<1>(b, w)),
      KEPT(ty::tensordot(b, m)), KEPT((ty::tensordot<ty::Sizes{1, 2}, ty::Sizes{1, 0}>(b, m)));
  KEPT(ty::einsum<"bij,jk->bik">(b, w)), KEPT(ty::einsum<"ii">(m)), KEPT(ty::einsum<" ji , j -> i ">(w, v)),
      KEPT(ty::einsum<"bij->jb">(b)), KEPT(ty::einsum<"i,j">(v, v));
  KEPT(ty::matrix_power(m, 3)), KEPT(ty::matrix_power(b, 0));
  if constexpr (!std::is_same_v<E, bool>)
    KEPT(ty::cross(m, v)), KEPT(ty::cross<0>(w, w)), KEPT(ty::vecdot(b, v)), KEPT(ty::vecdot<0>(w, w)),
        KEPT(linalg::cross(m, m)), KEPT(ty::cdist(b, m)), KEPT(ty::cdist(m, m, 1));
  KEPT(ty::vector_norm<-1>(b)), KEPT(ty::vector_norm(m, 3)), KEPT(ty::vector_norm<0, 1>(m, 1, ty::keepdim)),
      KEPT(ty::matrix_norm(b)), KEPT(ty::matrix_norm<0, 1>(b, 1.0)), KEPT(ty::matrix_norm(b, "fro", ty::keepdim)),
      KEPT(ty::matrix_norm(m, -1.0, ty::keepdim));
}

TYPED_TEST(FloatingVocabulary, Factorisations) {
  using E = TypeParam;
  Graph& g = this->g;
  const auto a = in<E, 2, 3, 3>(g);
  const auto m = in<E, 3, 3>(g);
  const auto w = in<E, 3, 4>(g);
  const auto v = in<E, 3>(g);
  KEPT(ty::cholesky(a)), KEPT(ty::cholesky(m, true)), KEPT(ty::cholesky_solve(w, a)), KEPT(ty::cholesky_inverse(a)),
      KEPT(ty::inverse(a)), KEPT(ty::inv(m)), KEPT(ty::det(a)), KEPT(ty::logdet(m)), KEPT(ty::slogdet(a).sign),
      KEPT(ty::slogdet(m).logabsdet), KEPT(ty::matrix_power(a, -2));
  KEPT(ty::solve(a, w)), KEPT(ty::solve(m, v)), KEPT(ty::solve(a, in<E, 2, 3>(g))),
      KEPT(ty::solve<false>(m, in<E, 5, 3>(g))), KEPT(ty::solve_triangular(a, w, true)),
      KEPT((ty::solve_triangular<false, true>(m, in<E, 5, 3>(g), false)));
  KEPT(ty::lstsq(in<E, 2, 5, 3>(g), in<E, 5, 2>(g))), KEPT(ty::lstsq(w, in<E, 3, 2>(g)));
  const auto lu = ty::lu_factor(a);
  KEPT(lu.lu), KEPT(lu.pivots), KEPT(ty::lu_solve(lu.lu, lu.pivots, w));
  KEPT(ty::qr(w).q), KEPT(ty::qr(in<E, 2, 5, 3>(g)).r), KEPT(ty::qr(in<E, 2, 5, 3>(g)).q);
  const auto wide = in<E, 2, 3, 5>(g), tall = in<E, 2, 5, 3>(g);
  KEPT(ty::eigh(a).eigenvalues), KEPT(ty::eigh(m, "U").eigenvectors), KEPT(ty::eigvalsh(a)), KEPT(ty::svdvals(wide));
  KEPT(ty::svd(wide).u), KEPT(ty::svd(wide).s), KEPT(ty::svd(wide).vh), KEPT(ty::svd<false>(wide).u),
      KEPT(ty::svd<false>(wide).vh), KEPT(ty::svd(tall).u), KEPT(ty::svd<false>(tall).u), KEPT(ty::svd(tall).vh);
  KEPT(ty::pinv(wide)), KEPT(ty::pinv(w, 0.1)), KEPT(ty::matrix_rank(wide)), KEPT(ty::cond(m)), KEPT(linalg::cond(a)),
      KEPT(linalg::eigvalsh(a)), KEPT(linalg::svd(w).u), KEPT(linalg::pinv(m)), KEPT(linalg::matrix_rank(m));
  KEPT(linalg::inv(a)), KEPT(linalg::cholesky(a)), KEPT(linalg::det(a)), KEPT(linalg::solve(a, w)),
      KEPT(linalg::qr(w).r), KEPT(linalg::multi_dot(m, w)), KEPT(linalg::vector_norm<0>(w)), KEPT(linalg::lstsq(m, w)),
      KEPT(linalg::slogdet(m).sign), KEPT(linalg::lu_factor(m).pivots), KEPT(linalg::matrix_norm(w)),
      KEPT(linalg::solve_triangular(m, w, false)), KEPT(linalg::vecdot(w, w));
}

TYPED_TEST(Vocabulary, Indexing) {
  using E = TypeParam;
  Graph& g = this->g;
  const auto a = in<E, 4, 3>(g);
  const auto s = in<E, 2, 3>(g);
  const auto i = in<std::int64_t, 2, 3>(g);
  const auto j = in<std::int32_t, 2>(g);
  const auto m = in<bool, 4, 1>(g);
  KEPT(ty::gather<0>(a, i)), KEPT(ty::take(a, i)), KEPT(ty::take_along_dim<0>(a, in<std::int64_t, 5, 1>(g))),
      KEPT(ty::take_along_dim(a, i));
  KEPT(ty::scatter<0>(a, i, s)), KEPT(ty::scatter<0>(a, i, 1.0)), KEPT(ty::index_copy<0>(a, j, s)),
      KEPT(ty::index_fill<-1>(a, j, 1)), KEPT(ty::index_put(a, {j}, s)), KEPT(ty::put(a, i, s)),
      KEPT(ty::masked_scatter(a, m, s)), KEPT(ty::scatter_reduce<0>(a, i, s, "amax")),
      KEPT(ty::index_reduce<0>(a, j, s, "amin", false));
  KEPT(ty::scatter_add<0>(a, i, s)), KEPT(ty::index_add<0>(a, j, s));
  KEPT(ty::diag(in<E, 3>(g))), KEPT(ty::diag<-2>(in<E, 3>(g))), KEPT(ty::diag<1>(a)), KEPT(ty::diag_embed(a)),
      KEPT((ty::diag_embed<-1, 0, 2>(a)));
  KEPT(ty::diagonal_scatter(a, in<E, 3>(g))), KEPT(ty::diagonal_scatter<-1>(a, in<E, 3>(g))),
      KEPT(ty::select_scatter<1>(a, in<E, 4>(g), -1)), KEPT((ty::slice_scatter<0, 1, -1>(a, s))),
      KEPT((ty::slice_scatter<0, 0, 4, 2>(a, s)));
  KEPT((ty::tril_indices<3, 4>(g))), KEPT((ty::tril_indices<3, 4, -2>(a))), KEPT((ty::triu_indices<3, 4, 1>(g)));
  KEPT(ty::nonzero(a).indices), KEPT(ty::nonzero<5>(a).count), KEPT(ty::argwhere<5>(a).indices),
      KEPT(ty::masked_select(a, m).values), KEPT(ty::masked_select<2>(a, m).values),
      KEPT(ty::masked_select(a, m).count);
  const auto u = ty::unique(a);
  const auto rows = ty::unique_dim<0>(a);
  KEPT(rows.values), KEPT(rows.inverse), KEPT(rows.counts), KEPT(ty::unique_dim<-1, 1>(a).values);
  KEPT(u.values), KEPT(u.inverse), KEPT(u.counts), KEPT(u.count), KEPT(ty::unique_consecutive<5>(a).counts);
}

TYPED_TEST(Vocabulary, Special) {
  using E = TypeParam;
  Graph& g = this->g;
  const auto a = in<E, 4, 3>(g);
  const auto b = in<E, 3>(g);
  KEPT(ty::lgamma(a)), KEPT(ty::digamma(a)), KEPT(ty::polygamma(1, a)), KEPT(ty::erfinv(a)), KEPT(ty::i0(a)),
      KEPT(ty::sinc(a)), KEPT(ty::deg2rad(a)), KEPT(ty::rad2deg(a)), KEPT(ty::clip(a, 0, 1)), KEPT(ty::clip(a, 0.5, 1)),
      KEPT(ty::template bitcast<E>(a)), KEPT(ty::threshold(a, 1, 0));
  KEPT(ty::copysign(a, b)), KEPT(ty::copysign(a, -1)), KEPT(ty::heaviside(a, b)), KEPT(ty::fmax(a, b)),
      KEPT(ty::fmin(a, b)), KEPT(ty::isclose(a, b)), KEPT(ty::allclose(a, b)), KEPT(ty::ldexp(a, b)),
      KEPT(ty::ldexp(a, in<std::int32_t, 3>(g))), KEPT(ty::ldexp(a, in<std::int32_t>(g))), KEPT(ty::addcmul(a, b, b)),
      KEPT(ty::addcmul(b, a, b, 2));
  if constexpr (std::is_integral_v<E>)
    KEPT(ty::bitwise_not(a)), KEPT(ty::bitwise_and(a, b)), KEPT(ty::bitwise_or(a, b)), KEPT(ty::bitwise_xor(a, b));
  if constexpr (kInteger<E>) {
    KEPT(ty::bitwise_left_shift(a, b)), KEPT(ty::bitwise_right_shift(a, b)), KEPT(ty::gcd(a, b)), KEPT(ty::lcm(a, b)),
        KEPT(ty::population_count(a)), KEPT(ty::count_leading_zeros(a));
    KEPT(ty::bincount<7>(b)), KEPT(ty::bincount<7>(b, in<float, 3>(g))), KEPT(ty::bincount<7>(b, in<E, 3>(g)));
  }
  KEPT(ty::nansum<0>(a)), KEPT(ty::nansum(a, ty::keepdim)), KEPT(ty::median(a)), KEPT(ty::median<1>(a).values),
      KEPT(ty::nanmedian<0>(a, ty::keepdim).indices), KEPT(ty::nanmedian(a)), KEPT(ty::mode(a).values),
      KEPT(ty::mode<0>(a, ty::keepdim).indices), KEPT(ty::kthvalue<2>(a).values),
      KEPT((ty::kthvalue<3, 0>(a, ty::keepdim)).indices);
  KEPT(ty::searchsorted(b, a)), KEPT(ty::searchsorted(a, in<E, 4, 9>(g), true)), KEPT(ty::bucketize(a, b)),
      KEPT(ty::isin(a, b));
  KEPT(ty::cov(a)), KEPT(ty::cov(b, 0)), KEPT(ty::corrcoef(a)), KEPT(ty::corrcoef(b));
  KEPT(ty::trapezoid(a)), KEPT(ty::trapezoid<0>(a, 0.5)), KEPT(ty::trapezoid(a, b)), KEPT(ty::trapezoid<0>(a, a)),
      KEPT(ty::cumulative_trapezoid<0>(a)), KEPT(ty::cumulative_trapezoid(a, b));
  KEPT(ty::meshgrid(b, in<E, 5>(g)));
  KEPT(ty::aminmax<1>(a)), KEPT(ty::aminmax(a, ty::keepdim)), KEPT(ty::var_mean<1>(a, 0)), KEPT(ty::var_mean(a)),
      KEPT(ty::std_mean<0>(a)), KEPT(ty::std_mean<0>(a, ty::keepdim));
}

TYPED_TEST(Vocabulary, ReductionsThatKeepTheirAxes) {
  using E = TypeParam;
  const auto a = in<E, 4, 3>(this->g);
  KEPT(ty::sum<0>(a, keepdim)), KEPT(ty::prod(a)), KEPT(ty::prod<1>(a, keepdim)), KEPT(ty::argmax(a)),
      KEPT(ty::argmin<0>(a, keepdim)), KEPT(ty::max<1>(a, keepdim).values), KEPT(ty::min<0>(a, keepdim).indices),
      KEPT(ty::norm<0>(a, 2, keepdim)), KEPT((ty::flip<0, -1>(a)));
  // found by argument-dependent lookup, without lc::typed
  KEPT(sum<0>(a, keepdim)), KEPT(max<1>(a, keepdim).values);
}

TYPED_TEST(FloatingVocabulary, RandomNumbers) {
  using E = TypeParam;
  Random rng(this->g, 1);
  const auto a = in<E, "batch", 3>(this->g);
  KEPT((ty::bits<2, 3>(rng))), KEPT((ty::uniform<"batch", 3>(rng))), KEPT(ty::normal<4>(rng, 1, 2)),
      KEPT(ty::truncated_normal<4>(rng)), KEPT(ty::bernoulli<4>(rng, 0.5)), KEPT(ty::bernoulli(rng, a)),
      KEPT((ty::randint<2, 2>(rng, 0, 9))), KEPT(ty::categorical(rng, a)), KEPT(ty::permutation<7>(rng)),
      KEPT(ty::dropout(rng, a, 0.1));
}

TYPED_TEST(FloatingVocabulary, Special) {
  using E = TypeParam;
  Graph& g = this->g;
  const auto a = in<E, 4, 3>(g);
  const auto b = in<E, 3>(g);
  KEPT(ty::frexp(a)), KEPT(ty::nextafter(a, b)), KEPT(ty::addcdiv(a, b, b)), KEPT(ty::nanmean<0>(a)),
      KEPT(ty::nanmean(a, ty::keepdim)), KEPT(ty::histc<10>(a)), KEPT((ty::logspace<E, 5>(g, 0, 1))),
      KEPT(ty::logspace<3>(g, 0, 1));
  KEPT(ty::quantile(a, 0.5)), KEPT(ty::quantile<1>(a, 0.5, "lower")), KEPT(ty::quantile(a, b)),
      KEPT(ty::quantile<0>(a, b)), KEPT(ty::quantile(a, 0.5, ty::keepdim)), KEPT(ty::quantile<0>(a, 0.5, ty::keepdim)),
      KEPT(ty::quantile(a, b, ty::keepdim)), KEPT(ty::quantile<-1>(a, b, ty::keepdim)), KEPT(ty::nanquantile(a, 0.5)),
      KEPT(ty::nanquantile<1>(a, b));
}

TYPED_TEST(FloatingVocabulary, Functional) {
  using E = TypeParam;
  Graph& g = this->g;
  Random random(g, 1);
  const auto x = in<E, "n", 4, 8, 8>(g);
  const auto a = in<E, 2, 6>(g), b = in<E, 2, 6>(g);
  const auto four = in<E, 4>(g);
  const auto w = in<E, 4, 5, 3, 3>(g);
  KEPT(ty::glu(a)), KEPT(ty::glu<0>(a)), KEPT(ty::prelu(x, four)), KEPT(ty::instance_norm(x)),
      KEPT(ty::instance_norm(x, four, four)), KEPT(ty::normalize<1>(a)), KEPT(ty::cosine_similarity<1>(a, b)),
      KEPT(ty::pairwise_distance(a, b)), KEPT(ty::pairwise_distance(a, b, 2, 1e-6, ty::keepdim)),
      KEPT(ty::local_response_norm(x, 2)), KEPT(ty::gumbel_softmax(random, a)),
      KEPT(ty::rope(x, in<E, 8, 4>(g), in<E, 8, 4>(g), true));
  KEPT((ty::conv_transpose2d<2, 1, 1>(x, w))),
      KEPT((ty::conv_transpose2d<ty::Each{1, 2}, 0, 0, 2>(x, w, in<E, 10>(g)))),
      KEPT((ty::conv_transpose1d<2, 0, 1, 1, 2>(in<E, 2, 3, 7>(g), in<E, 3, 2, 4>(g)))),
      KEPT(ty::conv_transpose3d<2>(in<E, 1, 2, 3, 3, 3>(g), in<E, 2, 2, 2, 2, 2>(g)));
  KEPT(ty::adaptive_avg_pool2d<3>(x)), KEPT((ty::adaptive_max_pool2d<ty::Each{2, 3}>(x))),
      KEPT(ty::adaptive_avg_pool1d<3>(in<E, 2, 3, 7>(g))), KEPT(ty::adaptive_max_pool1d<2>(in<E, 2, 3, 7>(g))),
      KEPT(ty::adaptive_avg_pool3d<2>(in<E, 1, 2, 3, 3, 3>(g))),
      KEPT(ty::adaptive_max_pool3d<2>(in<E, 1, 2, 3, 3, 3>(g)));
  KEPT(ty::lp_pool<3>(x, 2)), KEPT((ty::lp_pool<3, 2>(x, 2)));
  const auto pooled = ty::max_pool_with_indices<ty::Each{2, 3}>(x);
  KEPT(pooled.values), KEPT(pooled.indices), KEPT((ty::max_unpool<ty::Each{2, 3}>(pooled.values, pooled.indices)));
  KEPT(ty::unfold<3>(x)), KEPT((ty::unfold<ty::Each{2, 3}, 1, 1, 2>(in<E, 3, 8, 8>(g)))),
      KEPT((ty::fold<8, 3>(ty::unfold<3>(x)))), KEPT((ty::fold<ty::Each{4, 5}, 2>(in<E, 8, 12>(g))));
  KEPT(ty::pixel_shuffle<2>(x)), KEPT(ty::pixel_unshuffle<2>(x)), KEPT(ty::channel_shuffle<2>(x));
  KEPT(ty::interpolate<16>(x)), KEPT((ty::interpolate<ty::Each{5, 6}>(x, "bilinear", true))),
      KEPT(ty::grid_sample(x, in<E, "n", 3, 5, 2>(g))), KEPT((ty::affine_grid<"n", 3, 8, 9>(in<E, "n", 2, 3>(g)))),
      KEPT((ty::affine_grid<2, 3, 4, 5, 6>(in<E, 2, 3, 4>(g), true)));
  const auto ids = in<std::int64_t, 3, 5>(g);
  const auto row = in<std::int32_t, 7>(g);
  const auto offsets = in<std::int64_t, 3>(g);
  const auto e = in<E, 10, 6>(g);
  KEPT(ty::embedding_bag(ids, e)), KEPT(ty::embedding_bag(row, e, offsets)),
      KEPT(ty::embedding_bag<true>(row, e, offsets, "max")), KEPT(ty::embedding_bag_weighted(ids, e, in<E, 3, 5>(g))),
      KEPT(ty::embedding_bag_weighted(row, e, offsets, in<E, 7>(g)));
  const auto q = in<E, 5, 2, 4>(g);
  const MultiHeadAttentionArguments heads{.num_heads = 2,
                                          .in_proj_weight = in<E, 12, 4>(g),
                                          .in_proj_bias = in<E, 12>(g),
                                          .out_proj_weight = in<E, 4, 4>(g),
                                          .out_proj_bias = four};
  KEPT(ty::multi_head_attention_forward(q, q, q, heads).output);
}

TYPED_TEST(FloatingVocabulary, Losses) {
  using E = TypeParam;
  Graph& g = this->g;
  constexpr Reduction kNone = Reduction::None;
  const auto x = in<E, "n", 5>(g), y = in<E, "n", 5>(g);
  const auto classes = in<std::int64_t, "n">(g);
  const auto labels = in<std::int32_t, "n", 5>(g);
  const auto image = in<E, 2, 5, 3, 3>(g);
  KEPT(ty::mse_loss(x, y)), KEPT(ty::mse_loss<kNone>(x, y)), KEPT(ty::l1_loss<Reduction::Sum>(x, y)),
      KEPT(ty::huber_loss<kNone>(x, y, 2)), KEPT(ty::smooth_l1_loss(x, y)), KEPT(ty::binary_cross_entropy<kNone>(x, y)),
      KEPT(ty::binary_cross_entropy_with_logits(x, y)), KEPT(ty::kl_div<Reduction::BatchMean>(x, y)),
      KEPT(ty::kl_div<kNone>(x, y, true)), KEPT(ty::poisson_nll_loss<kNone>(x, y, {.full = true})),
      KEPT(ty::gaussian_nll_loss<kNone>(x, y, in<E, "n", 1>(g))), KEPT(ty::gaussian_nll_loss(x, y, in<E, "n">(g)));
  KEPT(ty::cross_entropy(x, classes)), KEPT(ty::cross_entropy<kNone>(x, classes)), KEPT(ty::cross_entropy<kNone>(x, y)),
      KEPT(ty::cross_entropy<kNone>(image, in<std::int64_t, 2, 3, 3>(g))), KEPT(ty::nll_loss<kNone>(x, classes)),
      KEPT(ty::cross_entropy(in<E, 5>(g), in<std::int64_t>(g), {.reduction = Reduction::Sum}));
  KEPT(ty::hinge_embedding_loss<kNone>(x, y)), KEPT(ty::soft_margin_loss<kNone>(x, labels)),
      KEPT(ty::multilabel_margin_loss<kNone>(x, labels)), KEPT(ty::multilabel_soft_margin_loss<kNone>(x, labels)),
      KEPT(ty::multi_margin_loss<kNone>(x, classes)), KEPT(ty::cosine_embedding_loss<kNone>(x, y, classes)),
      KEPT(ty::margin_ranking_loss<kNone>(x, y, labels)), KEPT(ty::triplet_margin_loss<kNone>(x, y, y)),
      KEPT(ty::triplet_margin_loss(x, y, y));
  const auto lengths = in<std::int64_t, 2>(g);
  KEPT(ty::ctc_loss<kNone>(in<E, 12, 2, 5>(g), in<std::int64_t, 2, 4>(g), lengths, lengths)),
      KEPT(ty::ctc_loss(in<E, 12, 5>(g), in<std::int64_t, 4>(g), in<std::int64_t>(g), in<std::int64_t>(g)));
  EXPECT_EQ(problem_of([&] { ty::mse_loss<Reduction::BatchMean>(x, y); }),
            "mse_loss: Reduction::BatchMean belongs to kl_div; use None, Mean or Sum");
  EXPECT_EQ(problem_of([&] { ty::cross_entropy(x, classes, {.reduction = kNone}); }),
            "cross_entropy: a typed loss of each element is cross_entropy<Reduction::None>(...)");
}
