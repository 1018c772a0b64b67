// Reductions into places.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/indexing/internal.h"

namespace lc {
using namespace detail;
using namespace places;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

enum class Reduce : std::int64_t { Sum, Prod, Mean, Amax, Amin };

Reduce named(std::string_view reduce, const char* op, bool sums) {
  if (reduce == "sum" && sums) return Reduce::Sum;
  if (reduce == "prod") return Reduce::Prod;
  if (reduce == "mean") return Reduce::Mean;
  if (reduce == "amax") return Reduce::Amax;
  if (reduce == "amin") return Reduce::Amin;
  throw Error(op, str_cat("reduce is ", sums ? "\"sum\", " : "", "\"prod\", \"mean\", \"amax\" or \"amin\", not \"",
                          reduce, "\""));
}

Tensor combined(Reduce r, const Tensor& a, const Tensor& b) {
  return r == Reduce::Prod ? prim::mul(a, b) : r == Reduce::Amax ? prim::maximum(a, b) : prim::minimum(a, b);
}

// Combines the values for each position of `base` along an axis. Sorting by position makes equal positions adjacent;
// combining each with elements 1, 2, 4, ... before it (a segmented scan) leaves the total in the last of each run.
Tensor arriving(Reduce r, const Tensor& base, int axis, const Tensor& index, const Tensor& src) {
  const Tensor order = prim::argsort(index, axis), at = prim::gather(index, order, axis);
  Tensor t = prim::gather(src, order, axis);
  const Dim n = index.extent(axis);
  const auto moved = [&](const Tensor& x, std::int64_t step) { return x.pad(axis, step, 0).slice(axis, 0, n); };
  const Tensor place = places::place(index, axis);
  for (std::int64_t step = 1; step < n.bounds().hi; step *= 2) {
    const Tensor behind = prim::less_than(full_like(place, static_cast<double>(step - 1)), place);
    const Tensor same = logical_and(behind, prim::equal(moved(at, step), at));
    t = prim::where(same, combined(r, moved(t, step), t), t);
  }
  const Tensor next = at.pad(axis, 0, 1).slice(axis, 1, n + 1);
  const Tensor last =
      logical_or(prim::equal(place, place.graph().index(place.shape(), n - 1)), logical_not(prim::equal(next, at)));
  return prim::scatter(full_like(base, 0), prim::where(last, at, full_like(at, -1)), t, axis);
}
Tensor touched(const Tensor& base, int axis, const Tensor& index) {
  const Tensor none = full(base.graph(), base.shape(), 0, DType::Bool);
  return prim::scatter(none, index, full(base.graph(), index.shape(), 1, DType::Bool), axis);
}
Tensor read(const Tensor& t, int axis, const Tensor& index) { return prim::gather(t, index, axis); }

Tensor reduced(Reduce r, const Tensor& base, int axis, const Tensor& index, const Tensor& src, bool include_self);

// Equal elements split the gradient of an extreme. As in PyTorch, base counts even if not include_self.
std::vector<Tensor> vjp_of_extreme(const VjpCall& c, int axis, bool include_self) {
  const Tensor &base = c.in[0], &index = c.in[1], &src = c.in[2], &y = c.y();
  const auto number = [&](const Tensor& b) { return prim::cast(b, y.dtype()); };
  const Tensor hit = touched(base, axis, index), none = full_like(y, 0);
  const Tensor own = number(prim::equal(base, y));
  const Tensor theirs = number(prim::equal(src, read(y, axis, index)));
  const Tensor share = prim::div(c.g(), prim::scatter_add(own, index, theirs, axis));
  const Tensor of_base = prim::where(prim::equal(own, none), none, share);
  return {include_self ? of_base : prim::where(hit, none, of_base), Tensor(),
          prim::where(prim::equal(theirs, full_like(theirs, 0)), full_like(theirs, 0), read(share, axis, index))};
}

// The derivative is the product of the other factors: the quotient, unless there are zeros to exclude.
std::vector<Tensor> vjp_of_product(const VjpCall& c, int axis, bool include_self) {
  const Tensor &base = c.in[0], &index = c.in[1], &src = c.in[2], &y = c.y();
  const auto is_zero = [](const Tensor& t) { return prim::equal(t, full_like(t, 0)); };
  const auto without = [&](const Tensor& t) { return prim::where(is_zero(t), full_like(t, 1), t); };
  const Tensor hit = touched(base, axis, index), none = full_like(y, 0);
  const Tensor own_zero = prim::cast(is_zero(base), y.dtype());
  const Tensor zeros = prim::scatter_add(include_self ? own_zero : prim::where(hit, none, own_zero), index,
                                         prim::cast(is_zero(src), y.dtype()), axis);
  const Tensor rest = reduced(Reduce::Prod, without(base), axis, index, without(src), include_self);
  const auto slope = [&](const Tensor& x, const Tensor& zeros_there, const Tensor& rest_there, const Tensor& g) {
    const Tensor zero = full_like(x, 0), others = prim::add(zeros_there, neg(prim::cast(is_zero(x), x.dtype())));
    return prim::where(is_zero(others), prim::mul(g, prim::div(rest_there, without(x))), zero);
  };
  Tensor of_base = slope(base, zeros, rest, c.g());
  if (!include_self) of_base = prim::where(hit, none, of_base);
  of_base = prim::where(hit, of_base, c.g());
  return {of_base, Tensor(), slope(src, read(zeros, axis, index), read(rest, axis, index), read(c.g(), axis, index))};
}

// Reduces operands of one type; the index has the shape of src.
Tensor reduced(Reduce r, const Tensor& base, int axis, const Tensor& index, const Tensor& src, bool include_self) {
  const Tensor hit = touched(base, axis, index);
  if (r == Reduce::Sum || r == Reduce::Mean) {
    const Tensor start = include_self ? base : prim::where(hit, full_like(base, 0), base);
    const Tensor total = prim::scatter_add(start, index, src, axis);
    if (r == Reduce::Sum) return total;
    const Tensor ones = full(base.graph(), index.shape(), 1, DType::I64);
    const Tensor own =
        include_self ? full(base.graph(), base.shape(), 1, DType::I64) : prim::cast(logical_not(hit), DType::I64);
    const Tensor count = prim::cast(prim::scatter_add(own, index, ones, axis), base.dtype());
    return is_float(base.dtype()) ? prim::div(total, count) : floor_divide(total, count);
  }
  const Tensor come = arriving(r, base, axis, index, src);
  const Tensor y = prim::where(hit, include_self ? combined(r, base, come) : come, base);
  return with_vjp(y, {base, index, src}, [r, axis, include_self](const VjpCall& c) {
    return r == Reduce::Prod ? vjp_of_product(c, axis, include_self) : vjp_of_extreme(c, axis, include_self);
  });
}

}  // namespace

Tensor scatter_reduce(Operand a, int axis, Operand index, Operand src, std::string_view reduce, bool include_self) {
  LC_SCOPE("scatter_reduce");
  const char* op = "scatter_reduce";
  const Reduce r = named(reduce, op, true);
  same_type(a, src, op);
  if (is_number(a, axis) && index->rank() <= 1 && src->rank() <= 1)
    return scatter_reduce(a->reshape({1}), 0, index->reshape({1}), src->reshape({1}), reduce, include_self).reshape({});
  axis = wrap_axis(axis, a->rank(), a->shape(), op);
  if (index->rank() != a->rank() || src->rank() != a->rank())
    throw Error(op, str_cat(str(a->shape()), ", index ", str(index->shape()), " and source ", str(src->shape()),
                            " have different ranks"));
  if (is_narrow(a->dtype())) {
    const auto wide = [](const Operand& t) { return Operand(prim::cast(t, DType::F32), t.at); };
    return prim::cast(scatter_reduce(wide(a), axis, index, wide(src), reduce, include_self), a->dtype());
  }
  Tensor at = from_start(index, a->extent(axis), op), from = src;
  for (int i = 0; i < a->rank(); ++i) {
    const Dim n = index->extent(i);
    if (provably_below(src->extent(i), n))
      throw Error(op, str_cat("a source ", str(src->shape()), " is smaller than its index ", str(index->shape())));
    if (!(src->extent(i) == n)) from = from.slice(i, 0, n);
    if (i == axis || a->extent(i) == n) continue;
    const auto more = (a->extent(i) - n).constant();
    if (!more || *more < 0) throw Error(op, str_cat("an index ", str(index->shape()), " leaves ", str(a->shape())));
    at = pad(at, i, 0, static_cast<int>(*more), PadMode::Constant, -1);  // -1 writes nothing
    from = from.pad(i, 0, *more);
  }
  return reduced(r, a, axis, at, from, include_self);
}

Tensor index_reduce(Operand a, int axis, Operand index, Operand source, std::string_view reduce, bool include_self) {
  LC_SCOPE("index_reduce");
  named(reduce, "index_reduce", false);
  index.tensor = row_of(index);
  if (is_number(a, axis) && source->rank() == 0)
    return number_of(index_reduce(row_of(a), 0, index, row_of(source), reduce, include_self));
  axis = wrap_axis(axis, a->rank(), a->shape(), "index_reduce");
  if (index->rank() != 1) throw Error("index_reduce", "the index has rank 1, not " + str(index->shape()));
  if (source->rank() != a->rank() || !(source->extent(axis) == index->extent(0)))
    throw Error("index_reduce", str_cat("a source ", str(source->shape()), " does not fit ", index->extent(0),
                                        " places of axis ", axis, " of ", str(a->shape())));
  Shape s(static_cast<std::size_t>(a->rank()), 1);
  s[axis] = index->extent(0);
  return scatter_reduce(a, axis, index->reshape(s).expand(source->shape()), source, reduce, include_self);
}

}  // namespace lc
