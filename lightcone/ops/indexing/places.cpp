// Reading and writing places, diagonals and slices.
#include "lightcone/composites/composites.h"

#include <algorithm>
#include "lightcone/ops/indexing/internal.h"

namespace lc {
using namespace detail;
using namespace places;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor places::from_start(const Operand& index, const Dim& n, const char* op) {
  if (is_float(index->dtype()) || index->dtype() == DType::Bool)
    throw Error(op, str_cat("indices are integers, not ", name(index->dtype())));
  const Tensor i = prim::cast(index, DType::I64);
  const Tensor size =
      n.is_constant() ? full_like(i, static_cast<double>(*n.constant())) : i.graph().index(i.shape(), n);
  return in_range(prim::where(prim::less_than(i, full_like(i, 0)), prim::add(i, size), i), n);
}
Tensor places::place(const Tensor& like, int axis) {
  return like.graph().index(like.shape(), Dim::index(axis, like.extent(axis)));
}
Tensor places::flat(const Tensor& t) { return t.reshape({product(t.shape())}); }

void places::same_type(const Operand& a, const Operand& src, const char* op) {
  if (src->dtype() != a->dtype())
    throw Error(op, str_cat("the source is ", name(src->dtype()), ", the tensor ", name(a->dtype()), "; convert one"));
}

namespace {

// The indexed leading axes of a flattened into one, and the flat position of each index, -1 if out of range.
struct Indexed {
  Tensor rows;  // [positions, elements of a slice]
  Tensor at;    // i64 [m]
  Shape shape;  // shape of the result: that of the indices, then the other axes
};
Indexed indexed(const Operand& a, const std::vector<Tensor>& indices, const char* op) {
  if (indices.empty() || static_cast<int>(indices.size()) > a->rank())
    throw Error(op, str_cat(indices.size(), " indices for ", str(a->shape())));
  Shape to = indices[0].shape();
  for (const Tensor& t : indices) {
    if (t.dtype() == DType::Bool)
      throw Error(
          op, "an index is a mask: where(), masked_fill() and masked_scatter() write by masks, masked_select() reads");
    to = broadcast(to, t.shape(), op);
  }
  Tensor at, inside;
  Dim count = 1, inner = 1;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const Dim n = a->extent(static_cast<int>(k));
    const Tensor i = from_start(expand_to(indices[k], to), n, op);
    const Tensor size = i.graph().index(i.shape(), n);
    const Tensor fits = logical_and(prim::less_than(full_like(i, -1), i), prim::less_than(i, size));
    at = k ? prim::add(prim::mul(at, size), i) : i;
    inside = k ? logical_and(inside, fits) : fits;
    count = count * n;
  }
  Shape shape = to;
  for (int i = static_cast<int>(indices.size()); i < a->rank(); ++i)
    shape.push_back(a->extent(i)), inner = inner * a->extent(i);
  return {a->reshape({count, inner}), flat(prim::where(inside, at, full_like(at, -1))), shape};
}
Tensor across(const Tensor& index, const Dim& inner) { return index.unsqueeze(1).expand({index.extent(0), inner}); }

}  // namespace

Tensor index_put(Operand a, const std::vector<Tensor>& indices, Operand values, bool accumulate) {
  LC_SCOPE("index_put");
  const Indexed x = indexed(a, indices, "index_put");
  same_type(a, values, "index_put");
  if (broadcast(values->shape(), x.shape, "index_put") != x.shape)
    throw Error("index_put", str_cat("values ", str(values->shape()), " do not stretch to ", str(x.shape)));
  const Tensor src = expand_to(values, x.shape).reshape({x.at.extent(0), x.rows.extent(1)});
  const Tensor at = across(x.at, x.rows.extent(1));
  return (accumulate ? prim::scatter_add(x.rows, at, src, 0) : prim::scatter(x.rows, at, src, 0)).reshape(a->shape());
}
Tensor index_fill(Operand a, int axis, Operand index, Scalar value) {
  LC_SCOPE("index_fill");
  LC_RETURN_IF_NUMBER(a, axis, index_fill(a, 0, index, value));
  axis = wrap_axis(axis, a->rank(), a->shape(), "index_fill");
  if (index->rank() > 1) throw Error("index_fill", "the index has rank 1, not " + str(index->shape()));
  const Tensor i = flat(from_start(index, a->extent(axis), "index_fill"));
  Shape wide = a->shape(), s(wide.size(), 1);
  wide[axis] = s[axis] = i.extent(0);
  return prim::scatter(a, i.reshape(s).expand(wide), full(a->graph(), wide, value, a->dtype()), axis);
}
Tensor take(Operand a, Operand index) {
  LC_SCOPE("take");
  const Tensor row = flat(a);
  return prim::gather(row, flat(from_start(index, row.extent(0), "take")), 0).reshape(index->shape());
}
Tensor put(Operand a, Operand index, Operand source, bool accumulate) {
  LC_SCOPE("put");
  same_type(a, source, "put");
  const Tensor row = flat(a), i = flat(from_start(index, row.extent(0), "put"));
  if (!(product(source->shape()) == i.extent(0)))
    throw Error("put", str_cat("a source ", str(source->shape()), " for ", i.extent(0), " indices"));
  const Tensor src = flat(source);
  return (accumulate ? prim::scatter_add(row, i, src, 0) : prim::scatter(row, i, src, 0)).reshape(a->shape());
}
Tensor take_along_dim(Operand a, Operand indices, int axis) {
  LC_SCOPE("take_along_dim");
  axis = wrap_axis(axis, a->rank(), a->shape(), "take_along_dim");
  if (indices->rank() != a->rank())
    throw Error("take_along_dim",
                str_cat(str(a->shape()), " and indices ", str(indices->shape()), " have different ranks"));
  Shape x = a->shape(), y = indices->shape();
  const auto at = static_cast<std::size_t>(axis);
  x[at] = y[at] = 1;
  Shape both = broadcast(x, y, "take_along_dim"), of_a = both;
  both[at] = indices->extent(axis), of_a[at] = a->extent(axis);
  return prim::gather(a->expand(of_a), from_start(indices, a->extent(axis), "take_along_dim").expand(both), axis);
}
Tensor take_along_dim(Operand a, Operand indices) {
  LC_SCOPE("take_along_dim");
  return take_along_dim(flat(a), flat(indices), 0);
}

Tensor masked_scatter(Operand a, Operand mask, Operand source) {
  LC_SCOPE("masked_scatter");
  same_type(a, source, "masked_scatter");
  if (mask->dtype() != DType::Bool) throw Error("masked_scatter", str_cat("a mask is bool, not ", name(mask->dtype())));
  const Shape s = broadcast(a->shape(), mask->shape(), "masked_scatter");
  const Tensor m = expand_to(mask, s);
  const Tensor which = add(cumsum(flat(m), 0), -1).reshape(s);
  const Tensor from = prim::gather(flat(source), flat(which), 0).reshape(s);
  return prim::where(m, from, expand_to(a, s));
}

// ---- diagonals and slices -----------------------------------------------------------------------
namespace {

// src [.., n] expanded along a diagonal of [.., rows, columns], and the mask of that diagonal.
struct OnDiagonal {
  Tensor value, mask;
};
OnDiagonal on_diagonal(const Tensor& src, const Shape& to, int offset) {
  const int r = static_cast<int>(to.size());
  const Dim i = Dim::index(r - 2, to[to.size() - 2]), j = Dim::index(r - 1, to.back());
  Shape wide = src.shape();
  wide.insert(wide.end() - 1, to[to.size() - 2]);
  Graph& g = src.graph();
  const Tensor value = prim::gather(src.unsqueeze(r - 2).expand(wide), g.index(to, offset < 0 ? j : i), r - 1);
  const Dim from = i + offset;
  return {value, g.index(to, less(from, j + 1) * less(j, from + 1), DType::Bool)};
}
// Moves the last two axes to axis1 and axis2.
Tensor with_axes(const Tensor& t, int axis1, int axis2) {
  Axes order;
  int next = 0;
  for (int i = 0; i < t.rank(); ++i) order.push_back(i == axis1 ? t.rank() - 2 : i == axis2 ? t.rank() - 1 : next++);
  return t.permute(order);
}
Tensor axes_last(const Tensor& t, int axis1, int axis2) {
  Axes order;
  for (int i = 0; i < t.rank(); ++i)
    if (i != axis1 && i != axis2) order.push_back(i);
  order.insert(order.end(), {axis1, axis2});
  return t.permute(order);
}

}  // namespace

Tensor diag_embed(Operand a, int offset, int axis1, int axis2) {
  LC_SCOPE("diag_embed");
  if (a->rank() == 0) throw Error("diag_embed", "a scalar is no diagonal");
  Shape s = a->shape();
  s.back() = s.back() + std::abs(offset);
  s.push_back(s.back());
  axis1 = wrap_axis(axis1, a->rank() + 1, s, "diag_embed"), axis2 = wrap_axis(axis2, a->rank() + 1, s, "diag_embed");
  if (axis1 == axis2) throw Error("diag_embed", "the two axes are one");
  if (axis1 > axis2) std::swap(axis1, axis2), offset = -offset;
  const OnDiagonal d = on_diagonal(a, s, offset);
  return with_axes(prim::where(d.mask, d.value, full_like(d.value, 0)), axis1, axis2);
}
Tensor diag(Operand a, int offset) {
  LC_SCOPE("diag");
  if (a->rank() == 1) return diag_embed(a, offset);
  if (a->rank() == 2) return diagonal(a, offset);
  throw Error("diag", "needs a vector or a matrix, not " + str(a->shape()));
}
Tensor diagonal_scatter(Operand a, Operand src, int offset, int axis1, int axis2) {
  LC_SCOPE("diagonal_scatter");
  same_type(a, src, "diagonal_scatter");
  const Shape want = diagonal(a, offset, axis1, axis2).shape();
  if (src->shape() != want)
    throw Error("diagonal_scatter", str_cat("a source ", str(src->shape()), ", not ", str(want)));
  axis1 = wrap_axis(axis1, a->rank(), a->shape(), "diagonal_scatter");
  axis2 = wrap_axis(axis2, a->rank(), a->shape(), "diagonal_scatter");
  const Tensor t = axes_last(a, axis1, axis2);
  const OnDiagonal d = on_diagonal(src, t.shape(), offset);
  return with_axes(prim::where(d.mask, d.value, t), axis1, axis2);
}
Tensor select_scatter(Operand a, Operand src, int axis, std::int64_t index) {
  LC_SCOPE("select_scatter");
  same_type(a, src, "select_scatter");
  axis = wrap_axis(axis, a->rank(), a->shape(), "select_scatter");
  Shape want = a->shape();
  want.erase(want.begin() + axis);
  if (src->shape() != want) throw Error("select_scatter", str_cat("a source ", str(src->shape()), ", not ", str(want)));
  const Dim n = a->extent(axis), at = index < 0 ? n + index : Dim(index);
  if (at.bounds().hi < 0 || !provably_below(at, n))
    throw Error("select_scatter", str_cat("index ", index, " of axis ", axis, " of ", str(a->shape())));
  return prim::slice_scatter(a, src->unsqueeze(axis), axis, at);
}
Tensor slice_scatter(Operand a, Operand src, int axis, std::int64_t start, std::int64_t end, std::int64_t step) {
  LC_SCOPE("slice_scatter");
  same_type(a, src, "slice_scatter");
  axis = wrap_axis(axis, a->rank(), a->shape(), "slice_scatter");
  const auto n = a->extent(axis).constant();
  if (!n)
    throw Error("slice_scatter",
                str_cat("needs an axis whose extent is known when the graph is built, not ", a->extent(axis)));
  if (step < 1) throw Error("slice_scatter", str_cat("a step of ", step));
  const auto bound = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + *n : i, 0, *n); };
  const std::int64_t from = bound(start), to = std::max(from, bound(end)), count = (to - from + step - 1) / step;
  Shape want = a->shape();
  want[axis] = count;
  if (src->shape() != want) throw Error("slice_scatter", str_cat("a source ", str(src->shape()), ", not ", str(want)));
  if (count == 0) return a;
  if (step == 1) return prim::slice_scatter(a, src, axis, from);
  const Dim i = Dim::index(axis, *n);
  Graph& g = a->graph();
  const Tensor value = prim::gather(src, g.index(a->shape(), (i - from) / Dim(step)), axis);
  const Dim hit = less((i - from) % Dim(step), 1) * less(from - 1, i) * less(i, to);
  return prim::where(g.index(a->shape(), hit, DType::Bool), value, a);
}

namespace {
// A stable sort of the mask brings the selected positions to the front, in row-major order.
Tensor indices_where(Graph& g, std::int64_t rows, std::int64_t columns, const Dim& kept, std::int64_t count) {
  const Tensor mask = g.index({rows, columns}, kept, DType::U8).reshape({rows * columns});
  const Tensor at = prim::argsort(mask, 0, true).slice(0, 0, count),
               by = full_like(at, static_cast<double>(std::max<std::int64_t>(columns, 1)));
  const Tensor column = prim::mod(at, by), row = prim::div(prim::add(at, neg(column)), by);
  return stack({row, column}, 0);
}
void check_sizes(std::int64_t rows, std::int64_t columns, const char* op) {
  if (rows < 0 || columns < 0) throw Error(op, str_cat("a matrix of ", rows, " x ", columns));
}
std::int64_t below_diagonal(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < rows; ++i) count += std::clamp<std::int64_t>(i + offset + 1, 0, columns);
  return count;
}
}  // namespace

Tensor tril_indices(Graph& g, std::int64_t rows, std::int64_t columns, std::int64_t offset, const Tensor::At& at) {
  const OpScope scope("tril_indices", at);
  check_sizes(rows, columns, "tril_indices");
  const Dim i = Dim::index(0, rows), j = Dim::index(1, columns);
  return indices_where(g, rows, columns, less(j, i + (offset + 1)), below_diagonal(rows, columns, offset));
}
Tensor triu_indices(Graph& g, std::int64_t rows, std::int64_t columns, std::int64_t offset, const Tensor::At& at) {
  const OpScope scope("triu_indices", at);
  check_sizes(rows, columns, "triu_indices");
  const Dim i = Dim::index(0, rows), j = Dim::index(1, columns);
  return indices_where(g, rows, columns, less(i + (offset - 1), j),
                       rows * columns - below_diagonal(rows, columns, offset - 1));
}

}  // namespace lc
