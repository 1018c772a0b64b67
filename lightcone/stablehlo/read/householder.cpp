// JAX's QR factorisation: custom calls "Qr" and "ProductOfElementaryHouseholderReflectors", which pass a matrix in the
// form of LAPACK's geqrf: R above the diagonal, and below it the vectors of the reflections without their first
// element, 1. Reflection k is I - tau[k] v v^T (G. H. Golub and C. F. Van Loan, Matrix Computations, 5.1).
#include "lightcone/ops/loop.h"

#include <algorithm>
#include "lightcone/ops/shape.h"
#include "lightcone/ops/special/special.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

struct Matrices {  // [batch, rows, columns]
  Tensor t;
  Shape batch;
  std::int64_t rows, columns, reflections;

  Tensor with_batch(const Tensor& x) const {
    const Shape own = x.shape();
    Shape s = batch;
    s.insert(s.end(), own.begin() + 1, own.end());
    return x.reshape(s);
  }
};
Matrices matrices(const Call& c) {
  if (c.x().rank() < 2 || !is_float(c.x().dtype())) c.refuse("is of matrices of floats");
  const Integers e = extents(c.x());
  Shape batch = c.x().shape();
  batch.resize(batch.size() - 2);
  const std::int64_t rows = e[e.size() - 2], columns = e.back();
  const Tensor t = c.x().reshape({product(batch), rows, columns});
  return {prim::cast(t, is_narrow(t.dtype()) ? DType::F32 : t.dtype()), batch, rows, columns, std::min(rows, columns)};
}

// Indices along the axes of [batch, rows, columns], and the number of a step, a scalar.
struct Masks {
  Tensor row, column, step;
  Masks(const Tensor& like, const Tensor& k)
      : row(index_along(like.graph(), like.shape(), 1)),
        column(index_along(like.graph(), like.shape(), 2)),
        step(k.reshape({1, 1, 1}).expand(like.shape())) {}
  Tensor below() const { return prim::less_than(step, row); }
  Tensor on_row() const { return prim::equal(step, row); }
  Tensor on_column() const { return prim::equal(step, column); }
  Tensor right() const { return prim::less_than(step, column); }
};
Tensor zeros_of(const Tensor& t) { return scalar_like(t, 0); }
Tensor spread(const Tensor& t, const Tensor& like) { return t.expand(like.shape()); }

// Applies one reflection: returns the next [b, m, n] and tau [b].
Scanned reflect(const Tensor& a, const Tensor& k) {
  const Masks at(a, k);
  const auto column = [&](const Tensor& mask) {  // column k as [b, m, 1]
    return sum(prim::where(logical_and(at.on_column(), mask), a, zeros_of(a)), {2}, true);
  };
  const Tensor below = column(at.below());
  const Tensor alpha = sum(column(at.on_row()), {1}, true), squares = sum(below * below, {1}, true);  // [b, 1, 1]
  const Tensor length = copysign(sqrt(alpha * alpha + squares), alpha);
  const Tensor none = prim::equal(squares, zeros_of(squares));  // tau is 0: there is nothing to reflect
  const Tensor beta = prim::where(none, alpha, neg(length)), one = scalar_like(alpha, 1);
  const Tensor tau = prim::where(none, zeros_of(alpha), (beta - alpha) / prim::where(none, one, beta));
  const Tensor v = below / spread(prim::where(none, one, alpha - beta), below);
  const Tensor with_one = prim::where(at.on_row().slice(2, 0, 1), scalar_like(v, 1), v);
  const Tensor dots = sum(spread(with_one, a) * a, {1}, true);  // [b, 1, n]
  const Tensor rest = a - spread(spread(tau, with_one) * with_one, a) * spread(dots, a);
  const Tensor kept = prim::where(at.on_row(), spread(beta, a), prim::where(at.below(), spread(v, a), a));
  const Tensor next = prim::where(at.on_column(), kept, prim::where(at.right(), rest, a));
  return {.state = {next}, .ys = {tau.reshape({a.extent(0)})}};
}

std::vector<Tensor> factors(const Call& c) {
  const Matrices m = matrices(c);
  const Tensor steps = m.t.graph().index({m.reflections}, Dim::index(0, m.reflections), DType::I64);
  const auto step = [](const std::vector<Tensor>& s, const std::vector<Tensor>& x) { return reflect(s[0], x[0]); };
  const Scanned r = scan(step, {m.t}, {steps});
  const Tensor tau = m.with_batch(r.ys[0].transpose(0, 1));
  return {prim::cast(m.with_batch(r.state[0]), c.dtype(0)), prim::cast(tau, c.dtype(1))};
}

// Computes Q's columns by applying the reflections, from the last to the first, to those of I.
std::vector<Tensor> product_of_reflections(const Call& c) {
  const Matrices m = matrices(c);
  if (c.in.size() != 2 || c.in[1].rank() != c.x().rank() - 1 || m.rows < m.columns) c.refuse("its operands do not fit");
  const std::int64_t count = extents(c.in[1]).back();
  if (count > m.columns) c.refuse("has more reflections than columns");
  const Dim b = m.t.extent(0);
  const Tensor tau = prim::cast(c.in[1], m.t.dtype()).reshape({b, count}).transpose(0, 1);
  const Tensor steps = m.t.graph().index({count}, Dim::index(0, count), DType::I64);
  const Tensor rows = index_along(c.graph(), m.t.shape(), 1), columns = index_along(c.graph(), m.t.shape(), 2);
  const Tensor identity = prim::cast(prim::equal(rows, columns), m.t.dtype());
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
    const Masks at(m.t, x[0]);
    const Tensor below = prim::where(logical_and(at.on_column(), at.below()), m.t, zeros_of(m.t));
    const Tensor v =
        prim::where(at.on_row().slice(2, 0, 1), scalar_like(below.slice(2, 0, 1), 1), sum(below, {2}, true));
    const Tensor dots = sum(spread(v, s[0]) * s[0], {1}, true);
    const Tensor scale = x[1].reshape({b, 1, 1}).expand(v.shape());
    return {.state = {s[0] - spread(scale * v, s[0]) * spread(dots, s[0])}, .ys = {}};
  };
  const Scanned r = scan(step, {identity}, {steps, tau}, {.reverse = true});
  return {prim::cast(m.with_batch(r.state[0]), c.dtype())};
}

}  // namespace

void add_factorisation_calls(Rules& targets) {
  targets["Qr"] = factors;
  targets["ProductOfElementaryHouseholderReflectors"] = product_of_reflections;
}

}  // namespace lc::stablehlo
