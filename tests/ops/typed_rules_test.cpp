// On random shapes the typed face gives the shape or the error sentence of the untyped operation.
#include "typed_rules.h"

using namespace lc;
using namespace typed_rules;

TEST_F(Rules, MatrixProducts) {
  for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any(), b = i % 3 ? near(a) : any(), c = any(0, 2);
    const int axis = pick(-4, 3), dims = pick(-1, 3), x[] = {axis, pick(-3, 2)}, y[] = {pick(-3, 2), pick(-3, 2)};
    same(ty::infer_product("mm", a, 2, b, 2), [&] { return mm(tensor(a), tensor(b)); });
    same(ty::infer_product("mv", a, 2, b, 1), [&] { return mv(tensor(a), tensor(b)); });
    same(ty::infer_product("bmm", a, 3, b, 3), [&] { return bmm(tensor(a), tensor(b)); });
    same(ty::infer_outer("outer", a, b), [&] { return outer(tensor(a), tensor(b)); });
    same(ty::infer_tensordot(a, b, dims), [&] { return tensordot(tensor(a), tensor(b), dims); });
    same(ty::infer_tensordot("tensordot", a, b, x, y, 2), [&] {
      return tensordot(tensor(a), tensor(b), Axes{x[0], x[1]}, Axes{y[0], y[1]});
    });
    same(ty::infer_inner(a, b), [&] { return inner(tensor(a), tensor(b)); });
    same(ty::infer_vecdot(a, b, axis), [&] { return linalg::vecdot(tensor(a), tensor(b), axis); });
    same(ty::infer_cross(a, b, axis), [&] { return cross(tensor(a), tensor(b), axis); });
    same(ty::infer_cross(a, b), [&] { return cross(tensor(a), tensor(b)); });
    same(ty::infer_cdist(a, b), [&] { return cdist(tensor(a), tensor(b)); });
    same(ty::infer_added("addmm", c, ty::infer_product("addmm", a, 2, b, 2)),
         [&] { return addmm(tensor(c), tensor(a), tensor(b)); });
    const ty::Shape chain[] = {any(1, 2), near(a), any(1, 2)};
    same(ty::infer_chain(chain, 3), [&] {
      return chain_matmul({tensor(chain[0]), tensor(chain[1]), tensor(chain[2])});
    });
    same(ty::infer_matrix_power(a), [&] { return matrix_power(tensor(a), 2); });
    same(ty::infer_matrix_norm(a, axis, dims, i % 2), [&] {
      return matrix_norm(tensor(a), "fro", {axis, dims}, i % 2);
    });
    for (const char* equation : {"ij,jk->ik", "ij,ij", "bij,jk", "ab,ba->c", "ii,i->", "i j, j -> ijj", "ij,k-l"})
      same(ty::infer_einsum(equation, std::array{a, b}.data(), 2),
           [&] { return einsum(equation, tensor(a), tensor(b)); });
  }
}
TEST_F(Rules, Factorisations) {
  for (int i = 0; i < 800 && !HasFatalFailure(); ++i) {
    ty::Shape a = any(0, 3), b = i % 3 ? near(a) : any(0, 3);
    if (i % 4 && a.rank >= 2) a.d[a.rank - 1] = a.d[a.rank - 2];
    const bool left = i % 2;
    same(ty::infer_square("inv", a), [&] { return linalg::inv(tensor(a)); });
    same(ty::infer_square("det", a, 2), [&] { return det(tensor(a)); });
    same(ty::infer_qr(b, left), [&] {
      const linalg::Qr f = linalg::qr(tensor(b));
      return left ? f.q : f.r;
    });
    same(ty::infer_solve_vectors(a, b, left), [&] { return linalg::solve(tensor(a), tensor(b), left); });
    same(ty::infer_solve("solve_triangular", a, b, left),
         [&] { return linalg::solve_triangular(tensor(a), tensor(b), true, left); });
  }
}
TEST_F(Rules, Indices) {
  const auto whole = [&](const ty::Shape& s) { return to(tensor(s), DType::I64); };
  for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any(), b = near(a), c = i % 3 ? near(b) : any();
    const int axis = pick(-4, 3), other = pick(-4, 3), k = pick(-2, 2);
    same(ty::infer_take_along_dim(a, b, axis), [&] { return take_along_dim(tensor(a), whole(b), axis); });
    same(ty::infer_index_fill(a, axis, c), [&] { return index_fill(tensor(a), axis, whole(c), 1); });
    same(ty::infer_diag(a, k), [&] { return diag(tensor(a), k); });
    same(ty::infer_diag_embed(a, k, axis, other), [&] { return diag_embed(tensor(a), k, axis, other); });
    same(ty::infer_diagonal(a, k, axis, other), [&] { return diagonal(tensor(a), k, axis, other); });
    same(ty::infer_select_scatter(a, b, axis), [&] { return select_scatter(tensor(a), tensor(b), axis, 0); });
    same(ty::infer_source("diagonal_scatter", a, c, ty::infer_diagonal(a, k, axis, other, "diagonal_scatter")),
         [&] { return diagonal_scatter(tensor(a), tensor(c), k, axis, other); });
  }
}
TEST_F(Rules, ViewsAndStatistics) {
  for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any(), b = near(a), q = any(0, 2);
    const int axis = pick(-4, 3), other = pick(-4, 3), k = pick(-1, 4);
    const ty::Sizes counts{pick(-1, 2), pick(0, 3)};
    const std::vector<int> times(counts.begin(), counts.end());
    same(ty::infer_repeat("repeat", a, counts), [&] { return repeat(tensor(a), times); });
    same(ty::infer_tile(a, counts), [&] { return tile(tensor(a), times); });
    same(ty::infer_repeat_interleave(a, k, axis), [&] { return repeat_interleave(tensor(a), k, axis); });
    same(ty::infer_rot90(a, k, axis, other), [&] { return rot90(tensor(a), k, {axis, other}); });
    same(ty::infer_movedim(a, ty::Sizes{axis}, ty::Sizes{other}), [&] { return movedim(tensor(a), axis, other); });
    same(ty::infer_squeeze_all(a), [&] { return squeeze(tensor(a)); });
    same(ty::infer_kthvalue(a, k, axis, i % 2), [&] { return kthvalue(tensor(a), k, axis, i % 2).values; });
    same(ty::infer_quantile("quantile", a, q, &axis, 1, i % 2),
         [&] { return quantile(tensor(a), tensor(q), axis, i % 2); });
    same(ty::infer_searchsorted(a, b), [&] { return searchsorted(tensor(a), tensor(b)); });
    same(ty::infer_cov("cov", a), [&] { return cov(tensor(a)); });
    same(ty::infer_trapezoid(a, nullptr, axis), [&] { return trapezoid(tensor(a), 1, axis); });
    same(ty::infer_trapezoid(a, &b, axis), [&] { return trapezoid(tensor(a), tensor(b), axis); });
    same(ty::infer_glu(a, axis), [&] { return glu(tensor(a), axis); });
    same(ty::infer_prelu(a, q), [&] { return prelu(tensor(a), tensor(q)); });
    same(ty::infer_classes("cross_entropy", a, b, true),
         [&] { return cross_entropy(tensor(a), tensor(b), {.reduction = Reduction::None}); });
    same(ty::infer_pairs(a, b, q),
         [&] { return cosine_embedding_loss(tensor(a), tensor(b), tensor(q), 0, Reduction::None); });
  }
}
TEST_F(Rules, ImagesAndWindows) {
  for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) {
    ty::Shape x, w;
    x.push(2), x.push(pick(1, 4)), x.push(pick(1, 9)), x.push(pick(1, 9));
    w.push(pick(0, 3) ? x.d[1] : ty::Dim(pick(1, 4))), w.push(pick(1, 2)), w.push(pick(0, 3)), w.push(pick(1, 4));
    const auto each = [this](int low, int high) { return ty::Each{pick(low, high), pick(low, high)}; };
    const auto two = [](const ty::Each& e) { return ty::numbers(e, 2); };
    const ty::Each stride = each(1, 3), padding = each(0, 2), dilation = each(1, 2), extra = each(0, 1),
                   kernel = each(1, 4);
    const int groups = pick(0, 2), factor = pick(0, 3);
    same(ty::infer_conv_transpose(x, w, 2, {stride, padding, dilation, groups}, extra), [&] {
      return conv_transpose(tensor(x), tensor(w),
                            {.stride = two(stride),
                             .padding = two(padding),
                             .dilation = two(dilation),
                             .groups = groups,
                             .output_padding = two(extra)});
    });
    const ty::Shape a = any(1, 5);
    const ty::Columns columns{kernel, dilation, padding, stride};
    same(ty::infer_unfold(x, columns),
         [&] { return unfold(tensor(x), two(kernel), two(dilation), two(padding), two(stride)); });
    const ty::Shape folded = shape({2, pick(1, 2) * kernel[0] * kernel[1], pick(1, 12)});
    same(ty::infer_fold(folded, each(6, 6), columns), [&] {
      return fold(tensor(folded), {6, 6}, two(kernel), two(dilation), two(padding), two(stride));
    });
    same(ty::infer_pixels("pixel_shuffle", a, factor, true), [&] { return pixel_shuffle(tensor(a), factor); });
    same(ty::infer_pixels("pixel_unshuffle", a, factor, false), [&] { return pixel_unshuffle(tensor(a), factor); });
    same(ty::infer_channel_shuffle(a, groups), [&] { return channel_shuffle(tensor(a), groups); });
    same(ty::infer_instance_norm(a), [&] { return instance_norm(tensor(a)); });
    const ty::Shape grid = near(shape({2, 3, 4, 2}));
    same(ty::infer_grid_sample(x, grid), [&] { return grid_sample(tensor(x), tensor(grid)); });
  }
}
