// LU with partial pivoting, and what is solved with it.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/linalg/blocks.h"

namespace lc {
using namespace detail;
using namespace blocks;

namespace {

// P A = L U, packed. Row k is row `order[k]` of A; step k swapped row k with row `pivots[k]`.
struct Factors {
  Tensor lu;             // [b, n, n]
  Tensor order, pivots;  // i32 [b, n]
};

// Returns row `at` (i32 [b, 1]) of t [b, n, m], as [b, 1, m].
Tensor row_at(const Tensor& t, const Tensor& at) {
  const Shape s{t.extent(0), 1, t.extent(2)};
  return prim::gather(t, at.unsqueeze(2).expand(s), 1);
}
// Permutes the rows of t [b, n, m] by order [b, n], i32.
Tensor in_order(const Tensor& t, const Tensor& order) {
  return prim::gather(t, order.unsqueeze(2).expand(t.shape()), 1);
}

// Eliminates the columns [first, first + size) of a matrix, held in `panel` [b, n, size], from row `first` on.
struct Panel {
  Tensor lu, order, pivots;  // pivots [b, size]
};
Panel eliminate(const Tensor& panel, const Tensor& order, const Tensor& first) {
  const Dim batch = panel.extent(0), n = panel.extent(1), size = panel.extent(2);
  const Tensor row = place(panel, 1, {batch, n, 1}), column = place(panel, 2, {batch, 1, size});
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
    const Tensor here = prim::add(x[0], first);  // index of the pivot row
    const Tensor own = prim::gather(s[0], x[0].reshape({1, 1, 1}).expand({batch, n, 1}), 2);
    const Tensor too_early = prim::less_than(row, here.reshape({1, 1, 1}).expand(row.shape()));
    const Tensor size_of_own = prim::where(too_early, full_like(own, -1), abs(own));
    const Tensor pivot = prim::cast(argmax(size_of_own.squeeze(2), 1, true), DType::I32);  // [b, 1]
    const Tensor here_row = here.reshape({1, 1}).expand({batch, 1});
    const Tensor top = row_at(s[0], pivot), moved = row_at(s[0], here_row);
    const Tensor is_here = same(row, here), is_pivot = prim::equal(row, pivot.unsqueeze(2).expand(row.shape()));
    const auto exchanged = [&](const Tensor& t, const Tensor& high, const Tensor& low) {
      return prim::where(is_here.expand(t.shape()), high.expand(t.shape()),
                         prim::where(is_pivot.expand(t.shape()), low.expand(t.shape()), t));
    };
    const Tensor swapped = exchanged(s[0], top, moved);
    const auto at_own = [&](const Tensor& t) {
      return prim::gather(t, x[0].reshape({1, 1, 1}).expand({batch, 1, 1}), 2);
    };
    const Tensor divisor = at_own(top), zero = full_like(divisor, 0);
    // a zero pivot leaves nothing to eliminate
    const Tensor by = prim::where(prim::equal(divisor, zero), zero, prim::recip(divisor));
    const Tensor factor = prim::mul(exchanged(own, divisor, at_own(moved)), by.expand(own.shape()));
    const Tensor rest = prim::add(swapped, neg(prim::mul(factor.expand(swapped.shape()), top.expand(swapped.shape()))));
    const Shape to = swapped.shape();
    const Tensor is_own = same(column, x[0]).expand(to), after = above(column, x[0]).expand(to);
    const Tensor next = prim::where(above(row, here).expand(to),
                                    prim::where(is_own, factor.expand(to), prim::where(after, rest, swapped)), swapped);
    const Tensor wide = s[1].unsqueeze(2);
    const Tensor next_order = exchanged(wide, row_at(wide, pivot), row_at(wide, here_row)).squeeze(2);
    return {.state = {next, next_order}, .ys = {pivot.squeeze(1)}};
  };
  const std::int64_t steps = *size.constant();
  const Scanned r = loop(step, {panel, order}, {place(panel, 0, {steps})}, steps);
  return {r.state[0], r.state[1], r.ys[0].permute({1, 0})};
}

Factors factors(const Tensor& a) {
  const std::int64_t n = *a.extent(1).constant();
  const Dim batch = a.extent(0);
  if (n == 0 || batch == Dim(0)) return {a, place(a, 1, {batch, n}), place(a, 1, {batch, n})};
  const Blocks blocks(n);
  const std::int64_t size = blocks.size, whole = blocks.padded();
  const Tensor t = padded(a, whole), order = place(a, 1, {batch, whole});
  const auto cut = [&](const Tensor& lu, const Tensor& o, const Tensor& p) -> Factors {
    return {lu.slice(1, 0, n).slice(2, 0, n), o.slice(1, 0, n), p.slice(1, 0, n)};
  };
  if (blocks.count == 1) {
    const Panel p = eliminate(t, order, place(a, 0, {1}).squeeze(0));
    return cut(p.lu, p.order, p.pivots);
  }
  const Shape rows{batch, size, whole}, columns{batch, whole, size}, square{batch, whole, whole};
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
    const Tensor first = x[0], last = prim::add(first, full_like(first, static_cast<double>(size - 1)));
    const auto offset = [&](const Tensor& at, int sign) {  // block indices to matrix indices (+1) or back (-1)
      const Tensor by = first.reshape({1, 1, 1}).expand(at.shape());
      return prim::add(at, sign < 0 ? neg(by) : by);
    };
    const Tensor own = prim::gather(s[0], offset(place(t, 2, columns), 1), 2);
    const Panel p = eliminate(own, place(t, 1, {batch, whole}), first);
    const Tensor row = place(t, 1, square), column = place(t, 2, square);
    const auto in_block = [&](const Tensor& at) {
      const Tensor from = first.reshape({1, 1, 1}).expand(at.shape());
      return logical_and(logical_not(prim::less_than(at, from)), logical_not(above(at, last)));
    };
    const Tensor swapped = in_order(s[0], p.order);
    const Tensor corner = prim::gather(p.lu, offset(place(t, 1, {batch, size, size}), 1), 1);
    const Tensor strip = prim::gather(swapped, offset(place(t, 1, rows), 1), 1);
    const Tensor u = matmul(inverse_of_lower(corner, true), strip);  // U to the right of the block
    const Tensor below = prim::where(above(place(t, 1, columns), last), p.lu, full_like(p.lu, 0));
    const Tensor rest = prim::add(swapped, neg(matmul(below, u)));
    const Tensor right =
        prim::where(above(row, last), rest, prim::where(in_block(row), prim::gather(u, offset(row, -1), 1), swapped));
    const Tensor next = prim::where(in_block(column), prim::gather(p.lu, offset(column, -1), 2),
                                    prim::where(above(column, last), right, swapped));
    return {.state = {next, prim::gather(s[1], p.order, 1)}, .ys = {p.pivots}};
  };
  const Tensor firsts = t.graph().index({blocks.count}, Dim::index(0, blocks.count) * Dim(size), DType::I32);
  const Scanned r = loop(step, {t, order}, {firsts}, blocks.count);
  return cut(r.state[0], r.state[1], r.ys[0].permute({1, 0, 2}).reshape({batch, whole}));
}

// Solves A X = B, or A^T X = B, from P A = L U. All operands are [b, n, .].
Tensor solved(const Tensor& lu, const Tensor& order, const Tensor& b, bool transposed) {
  if (b.extent(2) == Dim(0)) return b;
  if (!transposed) return solve_upper(triu(lu), solve_lower(tril(lu, -1), in_order(b, order), true), false);
  const Tensor first = solve_lower(mirrored(triu(lu)), b, false);
  const Tensor second = solve_upper(mirrored(tril(lu, -1)), first, true);
  return prim::scatter(full_like(second, 0), order.unsqueeze(2).expand(second.shape()), second, 1);
}

// Multiplies by the inverse of [b, n, n]; the derivative reuses the factors.
Tensor solution(const Tensor& a, const Factors& f, const Tensor& b) {
  const Tensor y = prim::contiguous(solved(f.lu, f.order, b, false));
  return with_vjp(y, {a, b, f.lu, f.order}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Factors again{c.in[2], c.in[3], Tensor()};
    const Tensor x = c.y();
    const Tensor db = prim::contiguous(solved(again.lu, again.order, c.g(), true));
    // db has a derivative, too: A^T db = g
    with_vjp(db, {c.in[0], c.g(), again.lu, again.order}, [](const VjpCall& d) -> std::vector<Tensor> {
      const Tensor dg = solution(d.in[0], {d.in[2], d.in[3], Tensor()}, d.g());
      return {neg(matmul(d.y(), mirrored(dg))), dg, Tensor(), Tensor()};
    });
    return {neg(matmul(db, mirrored(x))), db, Tensor(), Tensor()};
  });
}

// Returns (-1)^(number of row swaps), [b].
Tensor sign_of(const Factors& f, DType type) {
  const Tensor moved = prim::cast(logical_not(prim::equal(f.pivots, place(f.pivots, 1, f.pivots.shape()))), DType::I64);
  const Tensor odd = prim::mod(prim::sum_reduce(moved, 1), full_like(prim::sum_reduce(moved, 1), 2));
  return prim::cast(lc::detail::add(lc::detail::mul(odd, -2), 1), type);
}

Tensor inverse_of(const Tensor& a, const Factors& f) {
  return solution(a, f, blocks::identity(a, *a.extent(1).constant()));
}

// Scales each matrix [b, n, n] by its own number.
Tensor times(const Tensor& m, const Tensor& each) {
  return prim::mul(m, each.reshape({m.extent(0), 1, 1}).expand(m.shape()));
}

}  // namespace

namespace linalg {

Lu lu_factor(Operand a) {
  const OpScope scope("lu_factor", a.at);
  if (const DType half = a->dtype(); is_narrow(half)) {
    const Lu wide = lu_factor(Operand(prim::cast(a, DType::F32), a.at));
    return {prim::cast(wide.lu, half), wide.pivots};
  }
  const Matrix m = square(a, "lu_factor");
  const Factors f = factors(m.t);
  return {with_batch(f.lu, m.batch), with_batch(prim::cast(lc::detail::add(f.pivots, 1), DType::I32), m.batch)};
}

Tensor lu_solve(Operand lu, Operand pivots, Operand b) {
  const OpScope scope("lu_solve", lu.at);
  LC_RETURN_IF_EITHER_HALF(lu, b, lu_solve(lu, pivots, b));
  const Pair p = matched(lu, b, "lu_solve");
  if (is_float(pivots->dtype()) || pivots->rank() + 1 != lu->rank())
    throw Error("lu_solve",
                str_cat("pivots are integers [.., n], not ", name(pivots->dtype()), " ", str(pivots->shape())));
  const Matrix m = square(p.a, "lu_solve"), right = matrix(p.b, "lu_solve");
  Shape s = m.batch;
  s.push_back(m.rows);
  const Tensor exchanged = expand_to(pivots, s).reshape({m.t.extent(0), m.rows});
  // applies all swaps to get the row order
  const Tensor first = place(m.t, 1, {m.t.extent(0), m.rows});
  const auto step = [&](const std::vector<Tensor>& o, const std::vector<Tensor>& x) -> Scanned {
    const Tensor from = lc::detail::add(prim::cast(x[0], DType::I32), -1).unsqueeze(1);
    const Tensor here = x[1].reshape({1, 1}).expand(from.shape());
    const auto at = [&](const Tensor& k) { return prim::gather(o[0], k, 1).expand(first.shape()); };
    const Tensor is_here = prim::equal(first, here.expand(first.shape())),
                 is_from = prim::equal(first, from.expand(first.shape()));
    return {.state = {prim::where(is_here, at(from), prim::where(is_from, at(here), o[0]))}, .ys = {}};
  };
  if (m.rows == 0) return p.b;
  const Tensor order = loop(step, {first}, {exchanged.permute({1, 0}), place(m.t, 0, {m.rows})}, m.rows).state[0];
  return with_batch(solved(m.t, order, right.t, false), m.batch);
}

Tensor solve(Operand a, Operand b, bool left) {
  const OpScope scope("solve", a.at);
  LC_RETURN_IF_EITHER_HALF(a, b, solve(a, b, left));
  const Shape s = a->shape(), of_b = b->shape();
  // b is a vector [n], or one vector per matrix
  if (b->rank() == 1 || (a->rank() == b->rank() + 1 && Shape(s.begin(), s.end() - 1) == of_b)) {
    if (!left) throw Error("solve", "X A = B of a vector B: give it two axes, or solve with the transposed matrix");
    return solve(a, Operand(b->unsqueeze(-1), b.at), true).squeeze(-1);
  }
  if (!left) {
    if (a->rank() < 2 || b->rank() < 2)
      throw Error("solve", str_cat("needs matrices, not ", str(s), " and ", str(of_b)));
    return mirrored(solve(mirrored(a), mirrored(b), true));
  }
  const Pair p = matched(a, b, "solve");
  const Matrix m = square(p.a, "solve"), right = matrix(p.b, "solve");
  return with_batch(solution(m.t, factors(m.t), right.t), m.batch);
}

Tensor inv(Operand a) {
  const OpScope scope("inv", a.at);
  LC_RETURN_IF_HALF(a, inv(a));
  const Matrix m = square(a, "inv");
  return with_batch(inverse_of(m.t, factors(m.t)), m.batch);
}

}  // namespace linalg

Tensor inverse(Operand a) {
  const OpScope scope("inverse", a.at);
  return linalg::inv(a);
}
Tensor det(Operand a) {
  const OpScope scope("det", a.at);
  LC_RETURN_IF_HALF(a, det(a));
  const Matrix m = square(a, "det");
  if (m.rows == 0) return full(a->graph(), m.batch, 1, a->dtype());
  const Factors f = factors(m.t);
  const Tensor y = prim::mul(prod(diagonal(f.lu, 0, 1, 2), 1), sign_of(f, m.t.dtype()));
  with_vjp(y, {m.t, f.lu, f.order}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor inverse = inverse_of(c.in[0], {c.in[1], c.in[2], Tensor()});
    return {times(mirrored(inverse), prim::mul(c.g(), c.y())), Tensor(), Tensor()};
  });
  return y.reshape(m.batch);
}

SignLogDet slogdet(Operand a) {
  const OpScope scope("slogdet", a.at);
  if (const DType half = a->dtype(); is_narrow(half)) {
    const SignLogDet wide = slogdet(Operand(prim::cast(a, DType::F32), a.at));
    return {prim::cast(wide.sign, half), prim::cast(wide.logabsdet, half)};
  }
  const Matrix m = square(a, "slogdet");
  const Graph& g = a->graph();
  if (m.rows == 0) return {full(g, m.batch, 1, a->dtype()), full(g, m.batch, 0, a->dtype())};
  const Factors f = factors(m.t);
  const Tensor d = diagonal(f.lu, 0, 1, 2);
  const Tensor size = prim::contiguous(prim::sum_reduce(log(abs(d)), 1));
  with_vjp(size, {m.t, f.lu, f.order}, [](const VjpCall& c) -> std::vector<Tensor> {
    return {times(mirrored(inverse_of(c.in[0], {c.in[1], c.in[2], Tensor()})), c.g()), Tensor(), Tensor()};
  });
  const Tensor of_diagonal = prod(sign(d), 1);
  const Tensor signs = with_vjp(prim::mul(of_diagonal, sign_of(f, m.t.dtype())), {m.t},
                                [](const VjpCall& c) -> std::vector<Tensor> { return {full_like(c.x(), 0)}; });
  return {signs.reshape(m.batch), size.reshape(m.batch)};
}

Tensor logdet(Operand a) {
  const OpScope scope("logdet", a.at);
  LC_RETURN_IF_HALF(a, logdet(a));
  const SignLogDet d = slogdet(a);
  return where(d.sign < 0, full_like(d.sign, kNaN), d.logabsdet);
}

Tensor matrix_power(Operand a, int n) {
  const OpScope scope("matrix_power", a.at);
  LC_RETURN_IF_HALF(a, matrix_power(a, n));
  if (a->rank() < 2 || !(a->extent(-1) == a->extent(-2)))
    throw Error("matrix_power", "needs a square matrix, not " + str(a->shape()));
  if (n < 0) return matrix_power(linalg::inv(a), -n);
  if (n == 0) {
    const int r = a->rank();
    const Dim i = Dim::index(r - 2, a->extent(-2)), j = Dim::index(r - 1, a->extent(-1));
    return a->graph().index(a->shape(), less(i, j + 1) * less(j, i + 1), a->dtype());
  }
  Tensor result, power = a;
  for (int bits = n; bits > 0; bits /= 2) {
    if (bits % 2) result = result.defined() ? matmul(result, power) : power;
    if (bits > 1) power = matmul(power, power);
  }
  return result;
}

}  // namespace lc
