#include "lightcone/ops/linalg/blocks.h"
#include "lightcone/composites/composites.h"

#include <algorithm>
#include <bit>

namespace lc::blocks {
using namespace lc::detail;

Matrix matrix(const Tensor& a, std::string_view op) {
  const Shape s = a.shape();
  if (s.size() < 2) throw Error(op, "needs a matrix, not " + str(s));
  if (!is_float(a.dtype()))
    throw Error(op, str_cat("of ", name(a.dtype()), " there are no fractions; convert to a floating type"));
  for (const Dim& d : s)
    if (!d.is_constant())
      throw Error(op, str_cat("needs extents that are known when the graph is built, not ", str(s), ": ", d,
                              " is a symbol, and the blocks are counted"));
  const std::int64_t rows = *s[s.size() - 2].constant(), columns = *s[s.size() - 1].constant();
  const Shape batch(s.begin(), s.end() - 2);
  return {a.reshape({product(batch), rows, columns}), batch, rows, columns};
}

Matrix square(const Tensor& a, std::string_view op) {
  Matrix m = matrix(a, op);
  if (m.rows != m.columns) throw Error(op, "needs a square matrix, not " + str(a.shape()));
  return m;
}

Tensor with_batch(const Tensor& t, const Shape& batch) {
  Shape s = batch;
  const Shape own = t.shape();
  s.insert(s.end(), own.begin() + 1, own.end());
  return t.reshape(s);
}

Blocks::Blocks(std::int64_t n)
    : size(std::min(
          kBlock, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1)))))),
      count(std::max<std::int64_t>(1, (n + size - 1) / size)) {}

Tensor place(const Tensor& t, int axis, const Shape& shape) {
  return t.graph().index(shape, Dim::index(axis, shape[axis]), DType::I32);
}
Tensor whole_of(const Tensor& number, const Shape& shape) {
  return number.reshape(Shape(shape.size(), 1)).expand(shape);
}
Tensor same(const Tensor& place, const Tensor& number) { return prim::equal(place, whole_of(number, place.shape())); }
Tensor above(const Tensor& place, const Tensor& number) {
  return prim::less_than(whole_of(number, place.shape()), place);
}

Tensor mask(const Tensor& t, const Dim& expression) { return t.graph().index(t.shape(), expression, DType::Bool); }

Tensor identity(const Tensor& like, std::int64_t n) {
  const Dim i = Dim::index(1, n), j = Dim::index(2, n);
  return like.graph().index({like.extent(0), n, n}, less(i, j + 1) * less(j, i + 1), like.dtype());
}

Tensor padded(const Tensor& t, std::int64_t to) {
  const std::int64_t n = *t.extent(-1).constant();
  if (n == to) return t;
  const Tensor wide = t.pad(1, 0, to - n).pad(2, 0, to - n);
  const Dim i = Dim::index(1, to), j = Dim::index(2, to);
  return prim::where(mask(wide, less(i, n) * less(j, n)), wide, identity(t, to));
}

Tensor inverse_of_lower(const Tensor& t, bool unit) {
  const int r = t.rank();
  const std::int64_t n = *t.extent(-1).constant();
  const Dim i = Dim::index(r - 2, n), j = Dim::index(r - 1, n);
  const Tensor zero = full_like(t, 0), diagonal = mask(t, less(i, j + 1) * less(j, i + 1));
  Tensor x = prim::where(diagonal, unit ? full_like(t, 1) : prim::recip(t), zero);
  for (std::int64_t b = 1; b < n; b *= 2) {  // x holds the inverses of blocks of size b
    // in each block of size 2 b, the quarter below the diagonal
    const Dim same = less(i / Dim(2 * b), j / Dim(2 * b) + 1) * less(j / Dim(2 * b), i / Dim(2 * b) + 1);
    const Dim below = less(j / Dim(b), i / Dim(b));
    const Tensor c = prim::where(mask(t, same * below), t, zero);
    x = prim::add(x, neg(matmul(matmul(x, c), x)));
  }
  return x;
}

Scanned loop(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, std::int64_t length, bool reverse) {
  return scan(f, std::move(state), std::move(xs), {.reverse = reverse, .length = length, .keep_states = false});
}

Tensor solve_lower(const Tensor& l, const Tensor& b, bool unit) {
  const std::int64_t n = *l.extent(1).constant(), k = *b.extent(2).constant();
  const Dim batch = l.extent(0);
  if (n == 0 || k == 0 || batch == Dim(0)) return b;
  const Blocks blocks(n);
  const std::int64_t size = blocks.size, whole = blocks.padded();
  const Tensor t = padded(l, whole), right = b.pad(1, 0, whole - n);
  // inverts all diagonal blocks at once: [count, batch, size, size]
  const Tensor rows = t.reshape({batch, blocks.count, size, whole}).permute({1, 0, 2, 3});
  const Dim step = Dim::index(0, blocks.count), column = Dim::index(3, size);
  const Tensor own =
      prim::gather(rows, t.graph().index({blocks.count, batch, size, size}, step * Dim(size) + column), 3);
  const Tensor inverse = inverse_of_lower(own, unit);
  if (blocks.count == 1) return matmul(inverse.squeeze(0), right).slice(1, 0, n);
  // the columns below each diagonal block, shifted to the top: [count, batch, whole, size]
  const Tensor columns = t.reshape({batch, whole, blocks.count, size}).permute({2, 0, 1, 3});
  const Dim row = Dim::index(2, whole);
  const Tensor below = prim::gather(columns, t.graph().index(columns.shape(), row + (step + 1) * Dim(size)), 2);
  const Scanned r = loop(
      [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
        const Tensor y = matmul(x[0], s[0].slice(1, 0, size));
        const Tensor rest = s[0].slice(1, size, whole).pad(1, 0, size);
        return {.state = {prim::add(rest, neg(matmul(x[1], y)))}, .ys = {y}};
      },
      {right}, {inverse, below}, blocks.count);
  return r.ys[0].permute({1, 0, 2, 3}).reshape({batch, whole, k}).slice(1, 0, n);
}

// Flipping both axes makes the matrix lower triangular.
Tensor solve_upper(const Tensor& u, const Tensor& b, bool unit) {
  return solve_lower(u.flip(1).flip(2), b.flip(1), unit).flip(1);
}

}  // namespace lc::blocks
