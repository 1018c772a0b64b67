// Elementwise functions of several numbers, NaN-ignoring sums, grids and statistics.
#include <cmath>
#include <numbers>

#include "lightcone/ops/internal.h"
#include "lightcone/ops/special/special.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor deg2rad(Operand a) {
  LC_SCOPE("deg2rad");
  LC_RETURN_IF_HALF(a, deg2rad(a));
  return mul(as_float(a), std::numbers::pi / 180);
}
Tensor rad2deg(Operand a) {
  LC_SCOPE("rad2deg");
  LC_RETURN_IF_HALF(a, rad2deg(a));
  return mul(as_float(a), 180 / std::numbers::pi);
}
Tensor ldexp(Operand a, Operand exponent) {
  LC_SCOPE("ldexp");
  return a * prim::exp2(as_float(exponent));
}

namespace {
template <class F>
Tensor added(const char* op, const Operand& input, const Operand& a, const Operand& b, double value, const F& f) {
  const OpScope scope(op, input.at);
  const DType type = result_type(input, f(a, b));
  if (!is_float(type) && value != std::floor(value))
    throw Error(op, str_cat("the value of ", name(type), " is whole, not ", value));
  const auto wide = [&](const Operand& t) {
    return Operand(is_narrow(type) ? prim::cast(t, DType::F32) : t.tensor, t.at);
  };
  const Tensor t = f(wide(a), wide(b));
  return prim::cast(wide(input) + (value == 1 ? t : mul(t, value)), type);
}
}  // namespace

Tensor addcmul(Operand input, Operand a, Operand b, double value) {
  return added("addcmul", input, a, b, value, [](Operand x, Operand y) { return x * y; });
}
Tensor addcdiv(Operand input, Operand a, Operand b, double value) {
  const OpScope scope("addcdiv", input.at);
  if (!is_float(a->dtype()) && !is_float(b->dtype()))
    throw Error("addcdiv", str_cat("divides floating types, not ", name(a->dtype()), " by ", name(b->dtype())));
  return added("addcdiv", input, a, b, value, [](Operand x, Operand y) { return x / y; });
}

namespace {
Tensor with_sign(const Tensor& a, const Tensor& negative) { return prim::where(negative, neg(abs(a)), abs(a)); }
}  // namespace

Tensor copysign(Operand a, Operand sign) {
  LC_SCOPE("copysign");
  const Pair p = promoted(a, sign, "copysign");
  const Tensor x = as_float(p.a), s = as_float(p.b), zero = full_like(s, 0);
  const Tensor minus_zero = logical_and(prim::equal(s, zero), prim::less_than(prim::recip(s), zero));
  return with_sign(x, logical_or(prim::less_than(s, zero), minus_zero));
}
Tensor copysign(Operand a, double sign) {
  LC_SCOPE("copysign");
  const Tensor x = as_float(a);
  return std::signbit(sign) ? neg(abs(x)) : abs(x);
}
namespace {
// For a type: the unit roundoff, the smallest positive, smallest normal and largest number.
struct Spacing {
  double unit, smallest, normal, largest;
};
Spacing spacing(DType t) {
  const DTypeInfo& f = info(t);
  return {std::exp2(-f.digits), std::exp2(f.least_exponent - f.digits + 1), std::exp2(f.least_exponent), f.largest};
}
}  // namespace
// S. M. Rump et al., "Computing predecessor and successor in rounding to nearest" (BIT 49, 2009): adding slightly more
// than half of the spacing rounds to the neighbour. Among subnormal numbers the spacing is constant.
Tensor nextafter(Operand a, Operand towards) {
  LC_SCOPE("nextafter");
  const Pair p = promoted(a, towards, "nextafter");
  if (!is_float(p.a.dtype())) throw Error("nextafter", str_cat("needs a floating type, not ", name(p.a.dtype())));
  const DType type = p.a.dtype(), exact = is_narrow(type) ? DType::F32 : type;
  const Spacing s = spacing(type);
  const Tensor x = prim::cast(p.a, exact), y = prim::cast(p.b, exact), m = abs(x);
  // small numbers are scaled by 2^60, so that the spacing keeps its digits, too
  const bool f64 = exact == DType::F64;
  const Tensor small = prim::less_than(m, full_like(m, f64 ? 0x1p-900 : 0x1p-60)), one = full_like(m, 1);
  const Tensor scale = prim::where(small, full_like(m, 0x1p60), one),
               back = prim::where(small, full_like(m, 0x1p-60), one);
  const Tensor wide = prim::mul(x, scale), by = mul(prim::mul(m, scale), s.unit * (1 + 2 * s.unit));
  const Tensor flat = prim::less_than(m, full_like(m, 2 * s.normal)), step = full_like(m, s.smallest);
  const auto neighbour = [&](double sign) {
    const Tensor near = prim::mul(prim::add(wide, mul(by, sign)), back);
    const Tensor beside = prim::where(flat, prim::add(x, mul(step, sign)), near);
    return prim::where(prim::equal(x, full_like(x, -sign * kInf)), full_like(x, -sign * s.largest), beside);
  };
  const Tensor up = neighbour(1), down = neighbour(-1);
  const Tensor moved = prim::where(prim::less_than(x, y), up, prim::where(prim::less_than(y, x), down, y));
  return prim::cast(prim::where(isnan(x), x, moved), type);
}
Tensor heaviside(Operand a, Operand values) {
  LC_SCOPE("heaviside");
  const Pair p = promoted(a, values, "heaviside");
  const Tensor zero = full_like(p.a, 0);
  return prim::where(prim::equal(p.a, zero), p.b, prim::where(prim::less_than(zero, p.a), full_like(p.a, 1), zero));
}
namespace {
Tensor chosen(const Operand& a, const Operand& b, const char* op, Tensor (*f)(Operand, Operand)) {
  const OpScope scope(op, a.at);
  const Pair p = promoted(a, b, op);
  return prim::where(isnan(p.a), p.b, prim::where(isnan(p.b), p.a, f(p.a, p.b)));
}
}  // namespace
Tensor fmax(Operand a, Operand b) { return chosen(a, b, "fmax", prim::maximum); }
Tensor fmin(Operand a, Operand b) { return chosen(a, b, "fmin", prim::minimum); }

Tensor isclose(Operand a, Operand b, double rtol, double atol, bool equal_nan) {
  LC_SCOPE("isclose");
  if (!(rtol >= 0) || !(atol >= 0)) throw Error("isclose", str_cat("tolerances of ", rtol, " and ", atol));
  const Pair p = promoted(a, b, "isclose");
  Tensor close = prim::equal(p.a, p.b);
  if (equal_nan) close = logical_or(close, logical_and(isnan(p.a), isnan(p.b)));
  const DType exact = is_narrow(p.a.dtype()) ? DType::F32 : is_float(p.a.dtype()) ? p.a.dtype() : DType::F64;
  const Tensor x = prim::cast(p.a, exact), y = prim::cast(p.b, exact);
  const Tensor off = abs(prim::add(x, neg(y))), most = add(abs(mul(y, rtol)), atol);
  return logical_or(close, logical_and(isfinite(off), off <= most));
}
Tensor allclose(Operand a, Operand b, double rtol, double atol, bool equal_nan) {
  LC_SCOPE("allclose");
  return all(isclose(a, b, rtol, atol, equal_nan));
}

Tensor nansum(Operand a, Axes axes, bool keepdim) {
  LC_SCOPE("nansum");
  LC_RETURN_IF_HALF(a, nansum(a, std::move(axes), keepdim));
  return sum(prim::where(isnan(a), full_like(a, 0), a), std::move(axes), keepdim);
}
Tensor nanmean(Operand a, Axes axes, bool keepdim) {
  LC_SCOPE("nanmean");
  LC_RETURN_IF_HALF(a, nanmean(a, std::move(axes), keepdim));
  if (!is_float(a->dtype())) throw Error("nanmean", str_cat("needs a floating type, not ", name(a->dtype())));
  const Tensor count = sum(prim::cast(logical_not(isnan(a)), a->dtype()), axes, keepdim);
  return prim::div(nansum(a, std::move(axes), keepdim), count);
}

// ---- statistics ---------------------------------------------------------------------------------

Tensor cov(Operand a, int correction) {
  LC_SCOPE("cov");
  LC_RETURN_IF_HALF(a, cov(a, correction));
  if (a->rank() > 2) throw Error("cov", "needs [variables, observations] or [observations], not " + str(a->shape()));
  const Tensor x = as_float(a->rank() == 2 ? a.tensor : a->reshape({1, product(a->shape())}));
  const Dim n = x.extent(1);
  const Tensor off = x - mean(x, {1}, true), sums = matmul(off, off.transpose(0, 1));
  const Tensor by = prim::cast(sums.graph().index(sums.shape(), max(n - correction, 0)), sums.dtype());
  const Tensor y = prim::div(sums, by);
  return x.extent(0) == Dim(1) ? y.reshape({}) : y;  // a scalar for one variable, as in PyTorch
}
Tensor corrcoef(Operand a) {
  LC_SCOPE("corrcoef");
  LC_RETURN_IF_HALF(a, corrcoef(a));
  const Tensor c = cov(a);
  if (c.rank() == 0) return c / c;
  const Dim n = c.extent(0);
  const Tensor same = c.graph().index(
      c.shape(), less(Dim::index(0, n), Dim::index(1, n) + 1) * less(Dim::index(1, n), Dim::index(0, n) + 1),
      DType::Bool);
  const Tensor deviation = prim::sqrt(prim::sum_reduce(prim::where(same, c, full_like(c, 0)), 1));
  return clamp(c / deviation.unsqueeze(1) / deviation.unsqueeze(0), -1, 1);
}

namespace {
// Returns the area between each pair of neighbours.
Tensor areas(const Operand& y, const Operand* x, double dx, int& axis, const char* op) {
  axis = wrap_axis(axis, y->rank(), y->shape(), op);
  const auto sides = [](const Tensor& t, int axis) {
    const Dim n = t.extent(axis);
    if (n == Dim(0)) return Pair{t, t};
    return Pair{t.slice(axis, 1, n), t.slice(axis, 0, n - 1)};
  };
  const Tensor height = as_float(y);
  const Pair h = sides(height, axis);
  const Tensor both = prim::add(h.a, h.b);
  if (!x) return mul(both, dx / 2);
  Tensor at = as_float(*x);
  if (at.rank() == 1 && y->rank() > 1) {
    if (!(at.extent(0) == y->extent(axis)))
      throw Error(op, str_cat(at.extent(0), " points for axis ", axis, " of ", str(y->shape())));
    Shape s(static_cast<std::size_t>(y->rank()), 1);
    s[axis] = at.extent(0);
    at = at.reshape(s);
  }
  const int own = axis - y->rank() + at.rank();
  if (own < 0 || !(at.extent(own) == y->extent(axis)))
    throw Error(op, str_cat("points ", str((*x)->shape()), " for axis ", axis, " of ", str(y->shape())));
  const Pair w = sides(at, own);
  return (w.a - w.b) * both / 2.0;
}
template <class Join>
Tensor joined(Operand y, const Operand* x, double dx, int axis, const char* op, const Join& join) {
  const OpScope scope(op, y.at);
  const DType half = y->dtype();
  if (is_narrow(half)) y.tensor = prim::cast(y, DType::F32);
  const int from_end = wrap_axis(axis, y->rank(), y->shape(), op) - y->rank();
  const Tensor t = areas(y, x, dx, axis, op), r = join(t, from_end + t.rank());
  return is_narrow(half) ? prim::cast(r, half) : r;
}
Tensor total(const Tensor& t, int axis) { return sum(t, {axis}); }
}  // namespace

Tensor trapezoid(Operand y, double dx, int axis) { return joined(y, nullptr, dx, axis, "trapezoid", total); }
Tensor trapezoid(Operand y, Operand x, int axis) { return joined(y, &x, 1, axis, "trapezoid", total); }
Tensor cumulative_trapezoid(Operand y, double dx, int axis) {
  return joined(y, nullptr, dx, axis, "cumulative_trapezoid", [](const Tensor& t, int k) { return cumsum(t, k); });
}
Tensor cumulative_trapezoid(Operand y, Operand x, int axis) {
  return joined(y, &x, 1, axis, "cumulative_trapezoid", [](const Tensor& t, int k) { return cumsum(t, k); });
}

Tensor logspace(Graph& g, double from, double to, int steps, double base, DType dtype, const Tensor::At& at) {
  const OpScope scope("logspace", at);
  if (steps < 0) throw Error("logspace", str_cat(steps, " steps"));
  if (!is_float(dtype)) throw Error("logspace", str_cat("of ", name(dtype), "; powers are of a floating type"));
  const Tensor i = arange(g, steps, DType::F64);
  const Tensor exponent = add(mul(i, steps > 1 ? (to - from) / (steps - 1) : 0), from);
  return prim::cast(prim::pow(full_like(exponent, base), exponent), dtype);
}
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, std::string_view indexing, const Tensor::At& at) {
  const OpScope scope("meshgrid", at);
  if (indexing != "ij" && indexing != "xy")
    throw Error("meshgrid", str_cat("indexing is \"ij\" or \"xy\", not \"", indexing, "\""));
  if (vectors.empty()) throw Error("meshgrid", "needs at least one vector");
  Shape to;
  for (const Tensor& t : vectors) {
    if (t.rank() > 1) throw Error("meshgrid", "needs vectors, not " + str(t.shape()));
    if (t.dtype() != vectors[0].dtype())
      throw Error("meshgrid", str_cat("of one type, not ", name(vectors[0].dtype()), " and ", name(t.dtype())));
    to.push_back(product(t.shape()));
  }
  std::vector<Tensor> grids;
  for (std::size_t k = 0; k < vectors.size(); ++k) {
    Shape s(to.size(), 1);
    s[k] = to[k];
    const Tensor t = vectors[k].reshape(s).expand(to);
    grids.push_back(indexing == "xy" && to.size() > 1 ? t.transpose(0, 1) : t);
  }
  return grids;
}

}  // namespace lc
