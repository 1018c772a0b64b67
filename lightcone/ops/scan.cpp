// Running sums, products and maxima.
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

// x combined with itself shifted by 1, 2, 4, ...: a scan in log2(n) steps, whatever n will be.
Tensor scan(const Tensor& x, int axis, double identity, Tensor (*combine)(Operand, Operand)) {
  const Dim n = x.extent(axis);
  Tensor t = x;
  for (std::int64_t step = 1; step < n.bounds().hi; step *= 2) {
    const Dim i = Dim::index(axis, n);
    const Tensor inside = x.graph().index(x.shape(), less(Dim(step) - 1, i), DType::Bool);
    const Tensor shifted = t.pad(axis, step, 0).slice(axis, 0, n);
    t = combine(t, prim::where(inside, shifted, full_like(t, identity)));
  }
  return t;
}

}  // namespace

Tensor cumsum(Operand a, int axis) {
  LC_SCOPE("cumsum");
  LC_RETURN_IF_HALF(a, cumsum(a, axis));
  const bool narrow = !is_float(a->dtype());
  axis = wrap_axis(axis, a->rank(), a->shape(), "cumsum");
  const Tensor x = narrow ? prim::cast(a, DType::I64) : a.tensor;
  return with_vjp(scan(x, axis, 0, prim::add), {x}, [axis](const VjpCall& c) -> std::vector<Tensor> {
    return {cumsum(c.g().flip(axis), axis).flip(axis)};
  });
}
Tensor cumprod(Operand a, int axis) {
  LC_SCOPE("cumprod");
  LC_RETURN_IF_HALF(a, cumprod(a, axis));
  const bool narrow = !is_float(a->dtype());
  return scan(narrow ? prim::cast(a, DType::I64) : a.tensor, wrap_axis(axis, a->rank(), a->shape(), "cumprod"), 1,
              prim::mul);
}
namespace {
// Each maximum or minimum so far belongs to the last element that is as large.
std::vector<Tensor> vjp_of_last(const VjpCall& c, int axis) {
  const Tensor &x = c.x(), place = x.graph().index(x.shape(), Dim::index(axis, x.extent(axis)));
  const Tensor hit = logical_or(prim::equal(x, c.y()), isnan(x));
  const Tensor chosen = cummax(prim::where(hit, place, full_like(place, 0)), axis);
  return {prim::scatter_add(full_like(x, 0), chosen, c.g(), axis)};
}
}  // namespace
Tensor cummax(Operand a, int axis) {
  LC_SCOPE("cummax");
  const double lowest = is_float(a->dtype()) ? -kInf : static_cast<double>(info(a->dtype()).lowest);
  axis = wrap_axis(axis, a->rank(), a->shape(), "cummax");
  return with_vjp(scan(a, axis, lowest, prim::maximum), {a}, [axis](const VjpCall& c) { return vjp_of_last(c, axis); });
}

Tensor cummin(Operand a, int axis) {
  LC_SCOPE("cummin");
  const double highest = is_float(a->dtype()) ? kInf : static_cast<double>(info(a->dtype()).highest);
  axis = wrap_axis(axis, a->rank(), a->shape(), "cummin");
  return with_vjp(scan(a, axis, highest, prim::minimum), {a}, [axis](const VjpCall& c) { return vjp_of_last(c, axis); });
}
Tensor logcumsumexp(Operand a, int axis) {
  LC_SCOPE("logcumsumexp");
  LC_RETURN_IF_HALF(a, logcumsumexp(a, axis));
  return scan(as_float(a), wrap_axis(axis, a->rank(), a->shape(), "logcumsumexp"), -kInf, logaddexp);
}

}  // namespace lc
