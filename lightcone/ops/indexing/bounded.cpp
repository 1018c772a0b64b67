// Operations with a number of results that depends on data, such as nonzero(): results have room for `capacity` of
// them.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/indexing/internal.h"

namespace lc {
using namespace detail;
using namespace places;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

Dim room(const Tensor& row, const std::optional<Dim>& capacity, const char* op) {
  if (capacity && capacity->bounds().hi < 0) throw Error(op, str_cat("a capacity of ", *capacity));
  return capacity.value_or(row.extent(0));
}
Tensor count_of(const Tensor& mask) { return prim::sum_reduce(prim::cast(mask, DType::I64), 0); }
// Returns the indices of the true elements of a mask [n], in order, followed by n.
Tensor places_of(const Tensor& mask, const Dim& capacity) {
  const Tensor number = add(cumsum(mask, 0), -1);
  const Tensor to = prim::where(mask, number, full_like(number, -1));
  const Tensor none = mask.graph().index({capacity}, mask.extent(0));
  return prim::scatter(none, to, place(mask, 0), 0);
}

}  // namespace

Nonzero nonzero(Operand a, std::optional<Dim> capacity) {
  LC_SCOPE("nonzero");
  const Tensor mask = flat(prim::cast(a, DType::Bool));
  const Dim n = room(mask, capacity, "nonzero");
  Tensor rest = places_of(mask, n);
  const Tensor inside = prim::less_than(rest, rest.graph().index(rest.shape(), mask.extent(0)));
  std::vector<Tensor> columns(static_cast<std::size_t>(a->rank()));
  for (int i = a->rank() - 1; i >= 0; --i) {
    const Tensor extent = rest.graph().index(rest.shape(), a->extent(i));
    const Tensor own = prim::mod(rest, extent);
    columns[i] = prim::where(inside, own, extent);
    rest = prim::div(prim::add(rest, neg(own)), extent);
  }
  if (columns.empty()) return {full(a->graph(), {n, 0}, 0, DType::I64), count_of(mask)};
  return {stack(columns, 1), count_of(mask)};
}

Selected masked_select(Operand a, Operand mask, std::optional<Dim> capacity) {
  LC_SCOPE("masked_select");
  if (mask->dtype() != DType::Bool) throw Error("masked_select", str_cat("a mask is bool, not ", name(mask->dtype())));
  const Shape s = broadcast(a->shape(), mask->shape(), "masked_select");
  const Tensor m = flat(expand_to(mask, s));
  return {prim::gather(flat(expand_to(a, s)), places_of(m, room(m, capacity, "masked_select")), 0), count_of(m)};
}

namespace {

// Finds the distinct elements of a row in which equal elements are adjacent; `order` holds their original indices.
Unique distinct(const Tensor& row, const Tensor& order, const Shape& shape, const Dim& capacity) {
  const Dim n = row.extent(0);
  const Tensor at = place(row, 0), before = row.pad(0, 1, 0).slice(0, 0, n);
  const Tensor first = logical_or(prim::equal(at, full_like(at, 0)), logical_not(prim::equal(row, before)));
  const Tensor number = add(cumsum(first, 0), -1);
  const Tensor none = full(row.graph(), {capacity}, 0, DType::I64);
  return {prim::gather(row, places_of(first, capacity), 0),
          prim::scatter(full_like(number, 0), order, number, 0).reshape(shape),
          prim::scatter_add(none, number, full_like(number, 1), 0), count_of(first)};
}

}  // namespace

Unique unique(Operand a, std::optional<Dim> capacity) {
  LC_SCOPE("unique");
  const Tensor row = flat(a), order = prim::argsort(row, 0);
  return distinct(prim::gather(row, order, 0), order, a->shape(), room(row, capacity, "unique"));
}
namespace {
// How many slices of an axis [n] are less than each, in lexicographic order: equal for equal ones.
Tensor ranks(const Tensor& a, int axis) {
  Axes order = {axis};
  Shape others;
  for (int k = 0; k < a.rank(); ++k)
    if (k != axis) order.push_back(k), others.push_back(a.extent(k));
  const Dim n = a.extent(axis), m = product(others);
  const Tensor rows = (a.dtype() == DType::Bool ? prim::cast(a, DType::U8) : a).permute(order).reshape({n, m});
  const Tensor x = rows.unsqueeze(1).expand({n, n, m}), y = rows.unsqueeze(0).expand({n, n, m});
  const auto nan = [](const Tensor& t) { return is_float(t.dtype()) ? isnan(t) : full(t, t.shape(), 0, DType::Bool); };
  const Tensor less = logical_or(y < x, logical_and(nan(x), logical_not(nan(y))));  // NaN is the largest
  const Tensor differ = logical_and(ne(x, y), logical_not(logical_and(nan(x), nan(y))));
  // The first difference of two slices has the largest number, which is odd if the second slice is less there.
  const Tensor place = a.graph().index({n, n, m}, (m - Dim::index(2, m)) * Dim(2));
  const Tensor number = prim::where(differ, prim::add(place, prim::cast(less, DType::I64)), full_like(place, 0));
  return sum(remainder(prim::max_reduce(number.pad(2, 0, 1), 2), 2), {1});  // the element of 0 is for empty slices
}
}  // namespace

Unique unique_dim(Operand a, int dim, std::optional<Dim> capacity) {
  LC_SCOPE("unique_dim");
  const int axis = wrap_axis(dim, a->rank(), a->shape(), "unique_dim");
  const Unique u = unique(ranks(a, axis), capacity);
  // Slices with one number are equal: the one that is written last is as good as any.
  const Dim n = a->extent(axis);
  Shape s(static_cast<std::size_t>(a->rank()), 1), to = a->shape();
  s[axis] = to[axis] = u.values.extent(0);
  const Tensor beyond = a->graph().index({u.values.extent(0)}, n);
  const Tensor from = prim::scatter(beyond, u.inverse, place(u.inverse, 0), 0);
  return {prim::gather(a, from.reshape(s).expand(to), axis), u.inverse, u.counts, u.count};
}
Unique unique_consecutive(Operand a, std::optional<Dim> capacity) {
  LC_SCOPE("unique_consecutive");
  const Tensor row = flat(a);
  return distinct(row, place(row, 0), a->shape(), room(row, capacity, "unique_consecutive"));
}

}  // namespace lc
