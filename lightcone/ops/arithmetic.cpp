#include <numbers>

#include "lightcone/ops/internal.h"

namespace lc {
namespace detail {

Axes wrap_axes(Axes axes, const Operand& a, const char* op) {
  const int rank = a->rank();
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  for (int& x : axes) x = wrap_axis(x, rank, a->shape(), op);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) throw Error(op, "an axis is named twice");
  return axes;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) {
    if (a == DType::F64 || b == DType::F64) return DType::F64;
    return DType::F32;  // f32 with a half, or the two halves
  }
  // neither holds the other's numbers
  if (size_of(a) + size_of(b) == 2 && a != DType::Bool && b != DType::Bool) return DType::I32;
  const auto order = [](DType t) { return t == DType::Bool ? 0 : static_cast<int>(size_of(t)); };
  return order(a) > order(b) ? a : b;
}

Shape broadcast(const Shape& a, const Shape& b, const char* op) {
  Shape r(std::max(a.size(), b.size()), 1);
  for (std::size_t k = 0; k < r.size(); ++k) {
    const Dim x = k < a.size() ? a[a.size() - 1 - k] : Dim(1), y = k < b.size() ? b[b.size() - 1 - k] : Dim(1);
    if (!(x == y) && !(x == Dim(1)) && !(y == Dim(1)))
      throw Error(op, cat(str(a), " and ", str(b), " differ at axis ", r.size() - 1 - k, ": ", x, " vs ", y));
    r[r.size() - 1 - k] = x == Dim(1) ? y : x;
  }
  return r;
}

Tensor expand_to(Tensor t, const Shape& shape) {
  Shape s = t.shape();
  if (s == shape) return t;
  if (s.size() < shape.size()) {
    s.insert(s.begin(), shape.size() - s.size(), 1);
    t = t.reshape(s);
  }
  return t.expand(shape);
}

Tensor as_float(Tensor t) { return is_float(t.dtype()) ? t : prim::cast(t, DType::F32); }

DType result_type(const Tensor& a, const Tensor& b) {
  const auto category = [](DType t) { return is_float(t) ? 2 : t == DType::Bool ? 0 : 1; };
  const DType x = a.dtype(), y = b.dtype();
  // a tensor without axes widens the other one only into another kind of number
  if (a.rank() > 0 && b.rank() == 0 && category(x) >= category(y)) return x;
  if (b.rank() > 0 && a.rank() == 0 && category(y) >= category(x)) return y;
  return promote(x, y);
}

Pair promoted(const Operand& a, const Operand& b, const char* op) {
  const DType t = result_type(a, b);
  const Shape s = broadcast(a->shape(), b->shape(), op);
  return {expand_to(prim::cast(a, t), s), expand_to(prim::cast(b, t), s)};
}

Tensor scalar_like(const Tensor& t, double v) {
  if (!is_float(t.dtype()) && (v != std::floor(v) || std::isinf(v))) return prim::cast(t, DType::F32);
  if (t.dtype() == DType::Bool) return prim::cast(t, DType::I64);
  return t;
}

Tensor number_like(const Tensor& t, double v) {
  return full_like(t, t.dtype() == DType::U8 ? v - 256 * std::floor(v / 256) : v);
}

}  // namespace detail

using namespace detail;

#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {
// `f` of two tensors, brought to one dtype and shape.
template <class F>
Tensor of_two(const Operand& a, const Operand& b, const char* name, const F& f) {
  const OpScope scope(name, a.at);
  const Pair p = promoted(a, b, name);
  return f(p.a, p.b);
}
}  // namespace
Tensor operator+(Operand a, Operand b) { return of_two(a, b, "operator+", prim::add); }
Tensor operator-(Operand a, Operand b) {
  LC_SCOPE("operator-");
  const Pair p = promoted(a, b, "operator-");
  if (p.a.dtype() == DType::Bool)
    throw Error("operator-", "bool has no subtraction; logical_xor and logical_not say what is meant");
  return prim::add(p.a, neg(p.b));
}
Tensor operator*(Operand a, Operand b) { return of_two(a, b, "operator*", prim::mul); }
Tensor operator/(Operand a, Operand b) {
  LC_SCOPE("operator/");
  const Pair p = promoted(a, b, "operator/");
  return prim::div(as_float(p.a), as_float(p.b));
}
namespace {
// Where the remainder r of x / y has not the sign of y: one divisor too much was taken.
Tensor overshot(const Tensor& r, const Tensor& y) {
  const Tensor zero = full_like(r, 0);
  const Tensor opposite = logical_xor(prim::less_than(r, zero), prim::less_than(y, zero));
  return logical_and(opposite, logical_not(prim::equal(r, zero)));
}
Tensor remainder(const Tensor& x, const Tensor& y) {
  const Tensor r = prim::mod(x, y);
  return prim::where(overshot(r, y), prim::add(r, y), r);
}
}  // namespace
Tensor operator%(Operand a, Operand b) { return of_two(a, b, "remainder", remainder); }
Tensor fmod(Operand a, Operand b) { return of_two(a, b, "fmod", prim::mod); }
Tensor floor_divide(Operand a, Operand b) {
  LC_SCOPE("floor_divide");
  LC_RETURN_IF_EITHER_HALF(a, b, floor_divide(a, b));
  const Pair p = promoted(a, b, "floor_divide");
  if (!is_float(p.a.dtype())) return prim::div(prim::add(p.a, neg(remainder(p.a, p.b))), p.b);
  // whole up to the rounding of the division; an infinite dividend has no remainder
  const Tensor r = prim::mod(p.a, p.b), towards_zero = prim::div(prim::add(p.a, neg(r)), p.b),
               ratio = prim::div(p.a, p.b);
  const Tensor d = prim::where(overshot(r, p.b), add(towards_zero, -1), towards_zero), f = floor(d);
  const Tensor whole = prim::where(prim::less_than(full_like(d, 0.5), prim::add(d, neg(f))), add(f, 1), f);
  const Tensor zero = full_like(p.b, 0);
  const Tensor y = prim::where(prim::equal(p.b, zero), ratio,
                               prim::where(prim::equal(whole, zero), prim::mul(zero, ratio), whole));
  return with_vjp(y, {p.a, p.b}, [](const VjpCall& c) -> std::vector<Tensor> {  // it is made of steps
    return {full_like(c.in[0], 0), full_like(c.in[1], 0)};
  });
}
Tensor operator-(Operand a) {
  LC_SCOPE("neg");
  if (a->dtype() == DType::Bool) throw Error("neg", "bool has no negative; logical_not says what is meant");
  return neg(a);
}

namespace {
template <class F>
Tensor with_scalar(const Operand& a, double b, const char* name, const F& f) {
  const OpScope scope(name, a.at);
  const Tensor t = scalar_like(a, b);
  return f(t, number_like(t, b));
}
}  // namespace
Tensor operator+(Operand a, double b) {
  return with_scalar(a, b, "operator+", [](Tensor x, Tensor y) { return prim::add(x, y); });
}
Tensor operator-(Operand a, double b) {
  return with_scalar(a, -b, "operator-", [](Tensor x, Tensor y) { return prim::add(x, y); });
}
Tensor operator*(Operand a, double b) {
  return with_scalar(a, b, "operator*", [](Tensor x, Tensor y) { return prim::mul(x, y); });
}
Tensor operator/(Operand a, double b) {
  LC_SCOPE("operator/");
  const Tensor t = as_float(a);
  return prim::div(t, full_like(t, b));
}
Tensor operator%(Operand a, double b) {
  return with_scalar(a, b, "remainder", [](Tensor x, Tensor y) { return remainder(x, y); });
}
Tensor operator+(double a, Operand b) { return b + a; }
Tensor operator-(double a, Operand b) {
  const OpScope scope("operator-", b.at);
  const Tensor t = scalar_like(b, a);
  return prim::add(number_like(t, a), neg(t));
}
Tensor operator*(double a, Operand b) { return b * a; }
Tensor operator/(double a, Operand b) {
  const OpScope scope("operator/", b.at);
  const Tensor t = as_float(b);
  return prim::div(full_like(t, a), t);
}
Tensor pow(Operand a, Operand b) { return of_two(a, b, "pow", prim::pow); }
Tensor pow(Operand a, double b) {
  LC_SCOPE("pow");
  const Tensor t = scalar_like(a, b);
  if (b == 2) return prim::mul(t, t);
  if (b == 0.5) return sqrt(t);
  if (b == -0.5) return rsqrt(t);
  if (b < 0 && !is_float(t.dtype()))
    throw Error("pow", "whole numbers have no negative powers; convert to a floating type");
  return prim::pow(t, full_like(t, b));
}
Tensor maximum(Operand a, Operand b) { return of_two(a, b, "maximum", prim::maximum); }
Tensor minimum(Operand a, Operand b) { return of_two(a, b, "minimum", prim::minimum); }
Tensor clamp(Operand a, double low, double high) {
  LC_SCOPE("clamp");
  Tensor t = a;
  if (!std::isinf(low)) t = scalar_like(t, low);
  if (!std::isinf(high)) t = scalar_like(t, high);
  const Tensor x = t;
  if (low != -kInf) t = prim::maximum(t, full_like(t, low));
  if (high != kInf) t = prim::minimum(t, full_like(t, high));
  return with_vjp(t, {x}, [low, high](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor inside = prim::mul(prim::less_than(full_like(c.x(), low), c.x()),
                                    prim::less_than(c.x(), full_like(c.x(), high)));
    return {prim::where(inside, c.g(), full_like(c.g(), 0))};
  });
}

Tensor atan2(Operand y, Operand x) {
  const OpScope scope("atan2", y.at);
  LC_RETURN_IF_EITHER_HALF(y, x, atan2(y, x));
  const Pair p = promoted(y, x, "atan2");
  const Tensor u = as_float(p.a), v = as_float(p.b), zero = full_like(u, 0), inf = full_like(u, kInf);
  const auto negative = [&](const Tensor& t) {  // or -0
    return logical_or(prim::less_than(t, zero),
                      logical_and(prim::equal(t, zero), prim::less_than(prim::recip(t), zero)));
  };
  const Tensor a = abs(u), b = abs(v), low = prim::minimum(a, b), high = prim::maximum(a, b);
  const Tensor ratio = prim::where(prim::equal(low, inf), full_like(u, 1),
                                   prim::where(prim::equal(high, zero), zero, prim::div(low, high)));
  const Tensor t = atan(ratio);
  const Tensor first = prim::where(prim::less_than(b, a), add(neg(t), std::numbers::pi / 2), t);
  const Tensor half = prim::where(negative(v), add(neg(first), std::numbers::pi), first);
  return with_vjp(prim::where(negative(u), neg(half), half), {u, v}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor &y = c.in[0], &x = c.in[1], square = prim::add(prim::mul(x, x), prim::mul(y, y));
    const Tensor zero = full_like(square, 0);
    const Tensor by = prim::where(prim::equal(square, zero), zero, prim::div(c.g(), square));
    return {prim::mul(by, x), neg(prim::mul(by, y))};
  });
}
Tensor hypot(Operand a, Operand b) {
  LC_SCOPE("hypot");
  LC_RETURN_IF_EITHER_HALF(a, b, hypot(a, b));
  const Pair p = promoted(a, b, "hypot");
  const Tensor x = as_float(p.a), y = as_float(p.b), u = abs(x), v = abs(y), inf = full_like(u, kInf);
  const Tensor low = prim::minimum(u, v), high = prim::maximum(u, v), zero = full_like(u, 0);
  const Tensor ratio = prim::where(prim::equal(high, zero), zero, prim::div(low, high));
  const Tensor r = prim::mul(high, prim::sqrt(add(prim::mul(ratio, ratio), 1)));
  return with_vjp(prim::where(logical_or(prim::equal(u, inf), prim::equal(v, inf)), inf, r), {x, y},
                  [](const VjpCall& c) -> std::vector<Tensor> {
                    return {prim::mul(c.g(), prim::div(c.in[0], c.y())), prim::mul(c.g(), prim::div(c.in[1], c.y()))};
                  });
}
Tensor logaddexp(Operand a, Operand b) {
  LC_SCOPE("logaddexp");
  LC_RETURN_IF_EITHER_HALF(a, b, logaddexp(a, b));
  const Pair p = promoted(a, b, "logaddexp");
  const Tensor u = as_float(p.a), v = as_float(p.b);
  const Tensor r = prim::add(prim::maximum(u, v), log1p(exp(neg(abs(prim::add(u, neg(v)))))));
  const Tensor y = prim::where(prim::equal(u, v), add(u, std::numbers::ln2), r);  // equal infinities have no difference
  return with_vjp(y, {u, v}, [](const VjpCall& c) -> std::vector<Tensor> {
    const auto share = [&](const Tensor& t) { return prim::mul(c.g(), exp(prim::add(t, neg(c.y())))); };
    return {share(c.in[0]), share(c.in[1])};
  });
}
Tensor xlogy(Operand a, Operand b) {
  LC_SCOPE("xlogy");
  LC_RETURN_IF_EITHER_HALF(a, b, xlogy(a, b));
  const Pair p = promoted(a, b, "xlogy");
  const Tensor u = as_float(p.a), v = as_float(p.b), zero = full_like(u, 0);
  const Tensor y = prim::where(logical_and(prim::equal(u, zero), logical_not(isnan(v))), zero, prim::mul(u, log(v)));
  return with_vjp(y, {u, v}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor &u = c.in[0], &v = c.in[1], zero = full_like(u, 0);
    const Tensor flat = logical_and(prim::equal(u, zero), logical_not(prim::less_than(zero, v)));
    return {prim::where(flat, zero, xlogy(c.g(), v)), prim::mul(c.g(), prim::div(u, v))};
  });
}
Tensor lerp(Operand a, Operand b, double weight) {
  LC_SCOPE("lerp");
  LC_RETURN_IF_EITHER_HALF(a, b, lerp(a, b, weight));
  const Pair p = promoted(a, b, "lerp");
  const Tensor u = as_float(p.a), v = as_float(p.b), d = prim::add(v, neg(u));
  // from the nearer end, so that weights 0 and 1 give the ends
  return weight < 0.5 ? prim::add(u, mul(d, weight)) : prim::add(v, mul(d, weight - 1));
}

Tensor operator<(Operand a, Operand b) { return of_two(a, b, "lt", prim::less_than); }
Tensor operator>(Operand a, Operand b) {
  LC_SCOPE("gt");
  const Pair p = promoted(a, b, "gt");
  return prim::less_than(p.b, p.a);
}
Tensor operator<=(Operand a, Operand b) {
  LC_SCOPE("le");
  const Pair p = promoted(a, b, "le");
  return logical_or(prim::less_than(p.a, p.b), prim::equal(p.a, p.b));
}
Tensor operator>=(Operand a, Operand b) {
  LC_SCOPE("ge");
  const Pair p = promoted(a, b, "ge");
  return logical_or(prim::less_than(p.b, p.a), prim::equal(p.a, p.b));
}
Tensor operator<(Operand a, double b) {
  return with_scalar(a, b, "lt", [](Tensor x, Tensor y) { return prim::less_than(x, y); });
}
Tensor operator>(Operand a, double b) {
  return with_scalar(a, b, "gt", [](Tensor x, Tensor y) { return prim::less_than(y, x); });
}
Tensor operator<=(Operand a, double b) {
  return with_scalar(a, b, "le", [](Tensor x, Tensor y) { return x <= y; });
}
Tensor operator>=(Operand a, double b) {
  return with_scalar(a, b, "ge", [](Tensor x, Tensor y) { return x >= y; });
}
Tensor eq(Operand a, Operand b) { return of_two(a, b, "eq", prim::equal); }
Tensor eq(Operand a, double b) {
  return with_scalar(a, b, "eq", [](Tensor x, Tensor y) { return prim::equal(x, y); });
}
Tensor ne(Operand a, Operand b) {
  LC_SCOPE("ne");
  return logical_not(eq(a, b));
}
Tensor logical_not(Operand a) {
  LC_SCOPE("logical_not");
  const Tensor t = prim::cast(a, DType::Bool);
  return prim::less_than(t, full_like(t, 1));
}
Tensor logical_and(Operand a, Operand b) {
  LC_SCOPE("logical_and");
  const Shape s = broadcast(a->shape(), b->shape(), "logical_and");
  return prim::mul(expand_to(prim::cast(a, DType::Bool), s), expand_to(prim::cast(b, DType::Bool), s));
}
Tensor logical_or(Operand a, Operand b) {
  LC_SCOPE("logical_or");
  const Shape s = broadcast(a->shape(), b->shape(), "logical_or");
  return prim::add(expand_to(prim::cast(a, DType::Bool), s), expand_to(prim::cast(b, DType::Bool), s));
}
Tensor logical_xor(Operand a, Operand b) {
  LC_SCOPE("logical_xor");
  return logical_not(eq(prim::cast(a, DType::Bool), prim::cast(b, DType::Bool)));
}
Tensor isnan(Operand a) {
  LC_SCOPE("isnan");
  if (!is_float(a->dtype())) return full(a->graph(), a->shape(), 0, DType::Bool);
  return logical_not(prim::equal(a, a));
}
Tensor isinf(Operand a) {
  LC_SCOPE("isinf");
  if (!is_float(a->dtype())) return full(a->graph(), a->shape(), 0, DType::Bool);
  return logical_or(prim::equal(a, full_like(a, kInf)), prim::equal(a, full_like(a, -kInf)));
}
Tensor isfinite(Operand a) {
  LC_SCOPE("isfinite");
  return logical_not(logical_or(isnan(a), isinf(a)));
}
Tensor where(Operand condition, Operand a, Operand b) {
  const OpScope scope("where", condition.at);
  const Pair p = promoted(a, b, "where");
  const Shape s = broadcast(condition->shape(), p.a.shape(), "where");
  return prim::where(expand_to(prim::cast(condition, DType::Bool), s), expand_to(p.a, s), expand_to(p.b, s));
}
Tensor where(Operand condition, Operand a, double b) {
  const OpScope scope("where", condition.at);
  const Tensor t = scalar_like(a, b);
  return where(condition, t, full_like(t, b));
}
Tensor masked_fill(Operand a, Operand mask, double value) {
  LC_SCOPE("masked_fill");
  const Tensor t = scalar_like(a, value);
  const Shape s = broadcast(a->shape(), mask->shape(), "masked_fill");
  const Tensor x = expand_to(t, s);
  return prim::where(expand_to(prim::cast(mask, DType::Bool), s), full_like(x, value), x);
}

Tensor nan_to_num(Operand a, double nan) {
  LC_SCOPE("nan_to_num");
  if (!is_float(a->dtype())) return a;
  const double largest = a->dtype() == DType::F64    ? 0x1.fffffffffffffp1023
                         : a->dtype() == DType::F16  ? 65504
                         : a->dtype() == DType::BF16 ? 0x1.fep127
                                                     : 0x1.fffffep127;
  const Tensor finite = prim::minimum(prim::maximum(a, full_like(a, -largest)), full_like(a, largest));
  return prim::where(isnan(a), full_like(a, nan), finite);
}

}  // namespace lc
