// Running sums, products and maxima.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

// Shifts elements by `step`, filling the start with `none`.
Tensor before(const Tensor& t, int axis, std::int64_t step, double none) {
  const Dim n = t.extent(axis), i = Dim::index(axis, n);
  const Tensor inside = t.graph().index(t.shape(), less(Dim(step) - 1, i), DType::Bool);
  return prim::where(inside, t.pad(axis, step, 0).slice(axis, 0, n), full_like(t, none));
}
// Combines x with itself shifted by 1, 2, 4, ...: a scan in log2(n) steps, also for symbolic n.
Tensor scan(const Tensor& x, int axis, double identity, Tensor (*combine)(Operand, Operand)) {
  Tensor t = x;
  for (std::int64_t step = 1; step < x.extent(axis).bounds().hi; step *= 2)
    t = combine(t, before(t, axis, step, identity));
  return t;
}
// A scan product of floats. Partial products start anywhere, so they may overflow although those from the first element
// do not; mantissas and exponents are kept apart.
Tensor scan_product(const Tensor& x, int axis) {
  if (!is_float(x.dtype())) return scan(x, axis, 1, prim::mul);
  Scaled t = scaled(x);
  for (std::int64_t step = 1; step < x.extent(axis).bounds().hi; step *= 2)
    t = times(t, {before(t.mantissa, axis, step, 1), before(t.exponent, axis, step, 0)});
  return number(t);
}

}  // namespace

Tensor cumsum(Operand a, int axis) {
  LC_SCOPE("cumsum");
  LC_RETURN_IF_NUMBER(a, axis, cumsum(a, 0));
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
  LC_RETURN_IF_NUMBER(a, axis, cumprod(a, 0));
  LC_RETURN_IF_HALF(a, cumprod(a, axis));
  const bool narrow = !is_float(a->dtype());
  return scan_product(narrow ? prim::cast(a, DType::I64) : a.tensor, wrap_axis(axis, a->rank(), a->shape(), "cumprod"));
}
namespace {
// Returns the index along an axis of the last element so far for which `hit` holds.
Tensor last(const Tensor& hit, int axis) {
  const Tensor place = hit.graph().index(hit.shape(), Dim::index(axis, hit.extent(axis)));
  const double before = static_cast<double>(info(DType::I64).lowest);
  return scan(prim::where(hit, place, full_like(place, 0)), axis, before, prim::maximum);
}
// Each running extreme belongs to the last element equal to it.
std::vector<Tensor> vjp_of_last(const VjpCall& c, int axis) {
  const Tensor& x = c.x();
  const Tensor hit = logical_or(prim::equal(x, c.y()), isnan(x));
  return {prim::scatter_add(full_like(x, 0), last(hit, axis), c.g(), axis)};
}
Extreme so_far(const Operand& a, int axis, const char* op, double none, Tensor (*better)(Operand, Operand)) {
  const OpScope scope(op, a.at);
  if (is_number(a, axis)) return number_of(so_far(Operand(row_of(a), a.at), 0, op, none, better));
  axis = wrap_axis(axis, a->rank(), a->shape(), op);
  const Tensor values =
      with_vjp(scan(a, axis, none, better), {a.tensor}, [axis](const VjpCall& c) { return vjp_of_last(c, axis); });
  Tensor hit = prim::equal(a, values);
  if (is_float(a->dtype())) hit = logical_or(hit, isnan(a));
  return {values, last(hit, axis)};
}
}  // namespace
Extreme cummax(Operand a, int axis) {
  const double lowest = is_float(a->dtype()) ? -kInf : static_cast<double>(info(a->dtype()).lowest);
  return so_far(a, axis, "cummax", lowest, prim::maximum);
}
Extreme cummin(Operand a, int axis) {
  const double highest = is_float(a->dtype()) ? kInf : to_f64(info(a->dtype()).highest, a->dtype());
  return so_far(a, axis, "cummin", highest, prim::minimum);
}
Tensor logcumsumexp(Operand a, int axis) {
  LC_SCOPE("logcumsumexp");
  LC_RETURN_IF_NUMBER(a, axis, logcumsumexp(a, 0));
  LC_RETURN_IF_HALF(a, logcumsumexp(a, axis));
  return scan(as_float(a), wrap_axis(axis, a->rank(), a->shape(), "logcumsumexp"), -kInf, logaddexp);
}

}  // namespace lc
