#include <algorithm>
#include <cmath>
#include <numbers>

#include "lightcone/core/op_eval.h"
#include "lightcone/ops/internal.h"

namespace lc {
namespace detail {

Axes wrap_axes(Axes axes, const Operand& a, const char* op) {
  const int rank = a->rank();
  if (axes.size() == 1 && is_number(a, axes[0])) return {};
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  for (int& x : axes) x = wrap_axis(x, rank, a->shape(), op);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) throw Error(op, "an axis is named twice");
  return axes;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_f8(a) || is_f8(b))
    throw Error("promote_types",
                str_cat(name(a), " and ", name(b), " are brought to no common type, as in PyTorch; cast one"));
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) {
    if (a == DType::F64 || b == DType::F64) return DType::F64;
    return DType::F32;  // f32 with a 16-bit float, or f16 with bf16
  }
  const auto wide_unsigned = [](DType t) { return is_unsigned(t) && size_of(t) > 1; };
  if (wide_unsigned(a) || wide_unsigned(b))
    throw Error(
        "promote_types",
        str_cat(name(a), " and ", name(b), " are brought to no common type, as in PyTorch; cast one: ",
                a == DType::U64 || b == DType::U64 ? "u64 fits into no signed type" : "i64 holds the numbers of both"));
  if (a == DType::Bool || b == DType::Bool) return a == DType::Bool ? b : a;
  if (size_of(a) == size_of(b)) return DType::I16;  // u8 and i8: neither contains the other
  return size_of(a) > size_of(b) ? a : b;
}

Shape broadcast(const Shape& a, const Shape& b, const char* op) {
  Shape r(std::max(a.size(), b.size()), 1);
  for (std::size_t k = 0; k < r.size(); ++k) {
    const Dim x = k < a.size() ? a[a.size() - 1 - k] : Dim(1), y = k < b.size() ? b[b.size() - 1 - k] : Dim(1);
    if (!(x == y) && !(x == Dim(1)) && !(y == Dim(1)))
      throw Error(op, str_cat(str(a), " and ", str(b), " differ at axis ", r.size() - 1 - k, ": ", versus(x, y)));
    r[r.size() - 1 - k] = x == Dim(1) ? y : x;
  }
  return r;
}

Tensor as_float(Tensor t) { return is_float(t.dtype()) ? t : prim::cast(t, DType::F32); }

DType result_type(const Tensor& a, const Tensor& b) {
  const auto category = [](DType t) { return is_float(t) ? 2 : t == DType::Bool ? 0 : 1; };
  const DType x = a.dtype(), y = b.dtype();
  // a rank-0 tensor promotes the other one only to another kind of number
  if (a.rank() > 0 && b.rank() == 0 && category(x) >= category(y)) return x;
  if (b.rank() > 0 && a.rank() == 0 && category(y) >= category(x)) return y;
  return promote(x, y);
}

Pair promoted(const Operand& a, const Operand& b, const char* op) {
  const DType t = result_type(a, b);
  const Shape s = broadcast(a->shape(), b->shape(), op);
  return {expand_to(prim::cast(a, t), s), expand_to(prim::cast(b, t), s)};
}

Pair promoted(const TensorOrNumber& a, const TensorOrNumber& b, const char* op) {
  if (a.is_number() && b.is_number()) throw Error(op, "two numbers: one operand is a tensor");
  if (!a.is_number() && !b.is_number()) return promoted(Operand(a.tensor(), a.at()), Operand(b.tensor(), b.at()), op);
  const TensorOrNumber &number = a.is_number() ? a : b, &tensor = a.is_number() ? b : a;
  const Tensor t = prim::cast(tensor.tensor(), number.beside(tensor.tensor().dtype()));
  const Tensor n = number_like(t, number.number());
  return a.is_number() ? Pair{n, t} : Pair{t, n};
}

Tensor number_like(const Tensor& t, Scalar v) {
  const DType type = t.dtype();
  if (!is_unsigned(type)) return full_like(t, v);
  if (!v.whole) {
    const double range = std::exp2(8 * size_of(type));
    return full_like(t, v.value - range * std::floor(v.value / range));
  }
  std::uint64_t raw = 0;
  store_i64(&raw, type, 0, *v.whole);
  return full_like(t, load_i64(&raw, type, 0));
}

}  // namespace detail

using namespace detail;

#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {
// Applies `f` to two tensors after promotion and broadcasting.
template <class F>
Tensor of_two(const TensorOrNumber& a, const TensorOrNumber& b, const char* name, const F& f) {
  const OpScope scope(name, a.at());
  const Pair p = promoted(a, b, name);
  return f(p.a, p.b);
}
// For commutative functions: puts a number second, so that 2 * x and x * 2 are one node.
template <class F>
Tensor of_either(const TensorOrNumber& a, const TensorOrNumber& b, const char* name, const F& f) {
  return a.is_number() ? of_two(b, a, name, f) : of_two(a, b, name, f);
}
// For functions of several steps: computes 16-bit floats in f32.
template <class F>
Tensor of_two_wide(const TensorOrNumber& a, const TensorOrNumber& b, const char* name, const F& f) {
  const OpScope scope(name, a.at());
  const Pair p = promoted(a, b, name);
  if (!is_narrow(p.a.dtype())) return f(p.a, p.b);
  return prim::cast(f(prim::cast(p.a, DType::F32), prim::cast(p.b, DType::F32)), p.a.dtype());
}
Scalar negative(Scalar v) {
  if (!v.whole) return -v.value;
  if (*v.whole == INT64_MIN && v.value < 0) return v;  // INT64_MIN negates to itself
  v.value = 0 - v.value, v.whole = eval::mul(*v.whole, -1);
  return v;
}
}  // namespace
DType TensorOrNumber::beside(DType t) const {
  if (bool_ || is_float(t)) return t;
  if (!number_->whole) return DType::F32;
  return t == DType::Bool ? DType::I64 : t;
}

Tensor operator+(TensorOrNumber a, TensorOrNumber b) { return of_either(a, b, "operator+", prim::add); }
Tensor operator-(TensorOrNumber a, TensorOrNumber b) {
  const OpScope scope("operator-", a.at());
  if (b.is_number() && !a.is_number() && a.tensor().dtype() != DType::Bool) {
    const Tensor t = prim::cast(a.tensor(), b.beside(a.tensor().dtype()));
    return prim::add(t, number_like(t, negative(b.number())));
  }
  const Pair p = promoted(a, b, "operator-");
  if (p.a.dtype() == DType::Bool)
    throw Error("operator-", "bool has no subtraction; logical_xor and logical_not say what is meant");
  return prim::add(p.a, neg(p.b));
}
Tensor operator*(TensorOrNumber a, TensorOrNumber b) { return of_either(a, b, "operator*", prim::mul); }
Tensor operator/(TensorOrNumber a, TensorOrNumber b) {
  return of_two(a, b, "operator/",
                [](const Tensor& x, const Tensor& y) { return prim::div(as_float(x), as_float(y)); });
}
namespace {
// True if the remainder r of x / y has the wrong sign: the quotient is one too large.
Tensor overshot(const Tensor& r, const Tensor& y) {
  const Tensor zero = full_like(r, 0);
  const Tensor opposite = logical_xor(prim::less_than(r, zero), prim::less_than(y, zero));
  return logical_and(opposite, logical_not(prim::equal(r, zero)));
}
Tensor sign_of_divisor(const Tensor& x, const Tensor& y) {
  const Tensor r = prim::mod(x, y);
  if (is_unsigned(x.dtype())) return r;
  return prim::where(overshot(r, y), prim::add(r, y), r);
}
Tensor floor_of_quotient(const Tensor& x, const Tensor& y) {
  if (is_unsigned(x.dtype())) return prim::div(x, y);
  if (!is_float(x.dtype())) {  // subtracting a remainder from x might overflow
    const Tensor q = prim::div(x, y);
    return prim::where(overshot(prim::mod(x, y), y), add(q, -1), q);
  }
  // exact up to the rounding of the division; an infinite dividend has no remainder
  const Tensor r = prim::mod(x, y), towards_zero = prim::div(prim::add(x, neg(r)), y), ratio = prim::div(x, y);
  const Tensor d = prim::where(overshot(r, y), add(towards_zero, -1), towards_zero), f = floor(d);
  const Tensor whole = prim::where(prim::less_than(full_like(d, 0.5), prim::add(d, neg(f))), add(f, 1), f);
  const Tensor zero = full_like(y, 0);
  const Tensor q =
      prim::where(prim::equal(y, zero), ratio, prim::where(prim::equal(whole, zero), prim::mul(zero, ratio), whole));
  return with_vjp(q, {x, y}, [](const VjpCall& c) -> std::vector<Tensor> {  // piecewise constant
    return {full_like(c.in[0], 0), full_like(c.in[1], 0)};
  });
}
// Returns alpha b; b may be a number.
TensorOrNumber times(const TensorOrNumber& b, const Scalar& alpha) {
  if (!b.is_number()) return TensorOrNumber(alpha.whole ? b * *alpha.whole : b * alpha.value, b.at());
  const Scalar n = b.number();
  if (alpha.whole && n.whole) return TensorOrNumber(*alpha.whole * *n.whole, b.at());
  return TensorOrNumber(alpha.value * n.value, b.at());
}
}  // namespace
Tensor operator%(TensorOrNumber a, TensorOrNumber b) { return of_two(a, b, "remainder", sign_of_divisor); }
Tensor remainder(TensorOrNumber a, TensorOrNumber b) { return a % b; }
Tensor fmod(TensorOrNumber a, TensorOrNumber b) { return of_two(a, b, "fmod", prim::mod); }
Tensor floor_divide(TensorOrNumber a, TensorOrNumber b) { return of_two_wide(a, b, "floor_divide", floor_of_quotient); }
Tensor operator-(Operand a) {
  LC_SCOPE("neg");
  if (a->dtype() == DType::Bool) throw Error("neg", "bool has no negative; logical_not says what is meant");
  return detail::neg(a.tensor);
}
Tensor neg(Operand a) { return -a; }

namespace {
void in_place(Tensor& a, const Tensor& y, const char* op, const SourceLocation& at) {
  const OpScope scope(op, at);
  if (y.dtype() != a.dtype() || y.shape() != a.shape())
    throw Error(op, str_cat("a tensor of ", name(a.dtype()), " ", str(a.shape()), " would become one of ",
                            name(y.dtype()), " ", str(y.shape()), "; write a = a + b, or convert"));
  a = y;
}
}  // namespace
#define LC_IN_PLACE(OP, name)                                  \
  Tensor& operator OP##=(Tensor& a, TensorOrNumber b) {        \
    in_place(a, TensorOrNumber(a, b.at()) OP b, name, b.at()); \
    return a;                                                  \
  }
LC_IN_PLACE(+, "operator+=")
LC_IN_PLACE(-, "operator-=")
LC_IN_PLACE(*, "operator*=")
LC_IN_PLACE(/, "operator/=")
LC_IN_PLACE(%, "operator%=")
#undef LC_IN_PLACE

Tensor add(TensorOrNumber a, TensorOrNumber b, Scalar alpha) {
  const OpScope scope("add", a.at());
  return alpha.value == 1 ? a + b : a + times(b, alpha);
}
Tensor sub(TensorOrNumber a, TensorOrNumber b, Scalar alpha) {
  const OpScope scope("sub", a.at());
  return alpha.value == 1 ? a - b : a - times(b, alpha);
}
Tensor mul(TensorOrNumber a, TensorOrNumber b) { return a * b; }
Tensor div(TensorOrNumber a, TensorOrNumber b, RoundingMode rounding_mode) {
  const OpScope scope("div", a.at());
  if (rounding_mode == RoundingMode::None) return a / b;
  if (rounding_mode == RoundingMode::Floor) return floor_divide(a, b);
  return of_two_wide(a, b, "div", [](const Tensor& x, const Tensor& y) {
    return is_float(x.dtype()) ? trunc(prim::div(x, y)) : prim::div(x, y);
  });
}
namespace {
Tensor cube(Operand t) {
  LC_RETURN_IF_HALF(t, cube(t));
  return prim::mul(prim::mul(t, t), t);
}
}  // namespace
Tensor pow(TensorOrNumber a, TensorOrNumber b) {
  const OpScope scope("pow", a.at());
  const Pair p = promoted(a, b, "pow");
  const Tensor& t = p.a;
  if (a.is_number() && a.number().value == 2 && is_float(t.dtype())) return prim::exp2(p.b);
  if (!b.is_number()) return prim::pow(p.a, p.b);
  const double n = b.number().value;
  if (n == 2) return prim::mul(t, t);
  if (n == 3) return cube(t);
  if (n == 0.5) return sqrt(t);
  if (n == -0.5) return rsqrt(t);
  if (n < 0 && !is_float(t.dtype()))
    throw Error("pow", "whole numbers have no negative powers; convert to a floating type");
  return prim::pow(t, p.b);
}
Tensor maximum(Operand a, Operand b) { return of_two(a, b, "maximum", prim::maximum); }
Tensor minimum(Operand a, Operand b) { return of_two(a, b, "minimum", prim::minimum); }
namespace {
// Returns a bound as a tensor, promoted and broadcast with t, which is updated.
Tensor bound_of(Tensor& t, const OptionalTensorOrNumber& b) {
  const Pair p = promoted(TensorOrNumber(t), b, "clamp");
  t = p.a;
  return p.b;
}
}  // namespace
Tensor detail::between(const Operand& a, std::optional<Scalar> low, std::optional<Scalar> high, const char* op) {
  const OpScope scope(op, a.at);
  Tensor t = a;
  if (low && low->value != -kInf) t = prim::maximum(t, full_like(t, *low));
  if (high && high->value != kInf) t = prim::minimum(t, full_like(t, *high));
  const double least = low ? low->value : -kInf, most = high ? high->value : kInf;
  return with_vjp(t, {a}, [least, most](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor inside =
        prim::mul(prim::less_than(full_like(c.x(), least), c.x()), prim::less_than(c.x(), full_like(c.x(), most)));
    return {prim::where(inside, c.g(), full_like(c.g(), 0))};
  });
}
Tensor clamp(Operand a, OptionalTensorOrNumber low, OptionalTensorOrNumber high) {
  LC_SCOPE("clamp");
  if (!low.given() && !high.given()) throw Error("clamp", "needs an end: min or max");
  Tensor x = a;
  for (const auto* b : {&low, &high, &low})  // each bound may change the type or shape of the comparison
    if (b->given()) bound_of(x, *b);
  if ((!low.given() || low.is_number()) && (!high.given() || high.is_number()))
    return between(x, low.given() ? std::optional(low.number()) : std::nullopt,
                   high.given() ? std::optional(high.number()) : std::nullopt, "clamp");
  Tensor t = x;
  if (low.given()) t = prim::maximum(t, bound_of(x, low));
  if (high.given()) t = prim::minimum(t, bound_of(x, high));
  return t;
}
Tensor clip(Operand a, OptionalTensorOrNumber low, OptionalTensorOrNumber high) { return clamp(a, low, high); }
Tensor clamp_min(Operand a, TensorOrNumber low) {
  LC_SCOPE("clamp_min");
  return low.is_number() ? clamp(a, low) : of_two(a, low, "clamp_min", prim::maximum);
}
Tensor clamp_max(Operand a, TensorOrNumber high) {
  LC_SCOPE("clamp_max");
  return high.is_number() ? clamp(a, {}, high) : of_two(a, high, "clamp_max", prim::minimum);
}

Tensor atan2(Operand y, Operand x) {
  const OpScope scope("atan2", y.at);
  LC_RETURN_IF_EITHER_HALF(y, x, atan2(y, x));
  const Pair p = promoted(y, x, "atan2");
  const Tensor u = as_float(p.a), v = as_float(p.b), zero = full_like(u, 0), inf = full_like(u, kInf);
  const auto negative = [&](const Tensor& t) {  // including -0
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
  const Tensor y = prim::where(prim::equal(u, v), add(u, std::numbers::ln2), r);  // inf - inf is NaN
  return with_vjp(y, {u, v}, [](const VjpCall& c) -> std::vector<Tensor> {
    const auto share = [&](const Tensor& t) { return prim::mul(c.g(), exp(prim::add(t, neg(c.y())))); };
    return {share(c.in[0]), share(c.in[1])};
  });
}
Tensor logaddexp2(Operand a, Operand b) {
  LC_SCOPE("logaddexp2");
  return logaddexp(a * std::numbers::ln2, b * std::numbers::ln2) * (1 / std::numbers::ln2);
}
Tensor xlogy(TensorOrNumber a, TensorOrNumber b) {
  return of_two_wide(a, b, "xlogy", [](const Tensor& x, const Tensor& y) {
    const Tensor u = as_float(x), v = as_float(y), zero = full_like(u, 0);
    const Tensor r = prim::where(logical_and(prim::equal(u, zero), logical_not(isnan(v))), zero, prim::mul(u, log(v)));
    return with_vjp(r, {u, v}, [](const VjpCall& c) -> std::vector<Tensor> {
      const Tensor &u = c.in[0], &v = c.in[1], zero = full_like(u, 0);
      const Tensor flat = logical_and(prim::equal(u, zero), logical_not(prim::less_than(zero, v)));
      return {prim::where(flat, zero, xlogy(c.g(), v)), prim::mul(c.g(), prim::div(u, v))};
    });
  });
}
Tensor lerp(Operand a, Operand b, TensorOrNumber weight) {
  LC_SCOPE("lerp");
  LC_RETURN_IF_EITHER_HALF(a, b, lerp(a, b, weight));
  const Pair p = promoted(a, b, "lerp");
  const Tensor u = as_float(p.a), v = as_float(p.b), d = prim::add(v, neg(u));
  // interpolates from the nearer end, so that weights 0 and 1 are exact
  if (weight.is_number()) {
    const double w = weight.number().value;
    return w < 0.5 ? prim::add(u, mul(d, w)) : prim::add(v, mul(d, w - 1));
  }
  const Tensor w = prim::cast(weight.tensor(), u.dtype());
  return where(w < 0.5, u + w * d, v + (w - 1) * d);
}

namespace {
Tensor less(const Tensor& a, const Tensor& b) { return prim::less_than(a, b); }
Tensor greater(const Tensor& a, const Tensor& b) { return prim::less_than(b, a); }
Tensor less_or_equal(const Tensor& a, const Tensor& b) { return logical_or(prim::less_than(a, b), prim::equal(a, b)); }
Tensor greater_or_equal(const Tensor& a, const Tensor& b) {
  return logical_or(prim::less_than(b, a), prim::equal(a, b));
}
}  // namespace
Tensor lt(TensorOrNumber a, TensorOrNumber b) { return of_two(a, b, "lt", less); }
Tensor gt(TensorOrNumber a, TensorOrNumber b) { return of_two(a, b, "gt", greater); }
Tensor le(TensorOrNumber a, TensorOrNumber b) { return of_two(a, b, "le", less_or_equal); }
Tensor ge(TensorOrNumber a, TensorOrNumber b) { return of_two(a, b, "ge", greater_or_equal); }
Tensor eq(TensorOrNumber a, TensorOrNumber b) { return of_either(a, b, "eq", prim::equal); }
Tensor ne(TensorOrNumber a, TensorOrNumber b) {
  const OpScope scope("ne", a.at());
  return logical_not(eq(a, b));
}
Tensor operator<(TensorOrNumber a, TensorOrNumber b) { return lt(a, b); }
Tensor operator>(TensorOrNumber a, TensorOrNumber b) { return gt(a, b); }
Tensor operator<=(TensorOrNumber a, TensorOrNumber b) { return le(a, b); }
Tensor operator>=(TensorOrNumber a, TensorOrNumber b) { return ge(a, b); }
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
// E4M3FN has no infinity to compare with, so it is widened.
static Tensor with_infinities(const Operand& a) { return is_f8(a->dtype()) ? prim::cast(a, DType::F32) : a.tensor; }
Tensor isinf(Operand a) {
  LC_SCOPE("isinf");
  if (!is_float(a->dtype())) return full(a->graph(), a->shape(), 0, DType::Bool);
  const Tensor x = with_infinities(a);
  return logical_or(prim::equal(x, full_like(x, kInf)), prim::equal(x, full_like(x, -kInf)));
}
Tensor isfinite(Operand a) {
  LC_SCOPE("isfinite");
  return logical_not(logical_or(isnan(a), isinf(a)));
}
Tensor isposinf(Operand a) {
  LC_SCOPE("isposinf");
  return logical_and(isinf(a), a > 0);
}
Tensor isneginf(Operand a) {
  LC_SCOPE("isneginf");
  return logical_and(isinf(a), a < 0);
}
Tensor where(Operand condition, TensorOrNumber a, TensorOrNumber b) {
  const OpScope scope("where", condition.at);
  if (a.is_number() && b.is_number()) {  // PyTorch's types of numbers: i64 and f32
    const bool whole = a.number().whole && b.number().whole;
    const Tensor like = full(condition->graph(), condition->shape(), 0, whole ? DType::I64 : DType::F32);
    return where(condition, number_like(like, a.number()), b);
  }
  const Pair p = promoted(a, b, "where");
  const Shape s = broadcast(condition->shape(), p.a.shape(), "where");
  return prim::where(expand_to(prim::cast(condition, DType::Bool), s), expand_to(p.a, s), expand_to(p.b, s));
}
Tensor masked_fill(Operand a, Operand mask, Scalar value) {
  LC_SCOPE("masked_fill");
  if (!is_float(a->dtype()) && !value.whole && value.value != std::floor(value.value))
    throw Error("masked_fill", str_cat(name(a->dtype()), " cannot hold ", value.value, "; convert the tensor first"));
  const Shape s = broadcast(a->shape(), mask->shape(), "masked_fill");
  const Tensor x = expand_to(a, s);
  return prim::where(expand_to(prim::cast(mask, DType::Bool), s), full_like(x, value), x);
}

Tensor nan_to_num(Operand a, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  LC_SCOPE("nan_to_num");
  if (!is_float(a->dtype())) return a;
  const double largest = info(a->dtype()).largest;
  Tensor finite = prim::minimum(prim::maximum(a, full_like(a, -largest)), full_like(a, largest));
  const Tensor x = with_infinities(a);
  const auto instead = [&](double infinity, double value) {
    finite = prim::where(prim::equal(x, full_like(x, infinity)), full_like(a, value), finite);
  };
  if (posinf) instead(kInf, *posinf);
  if (neginf) instead(-kInf, *neginf);
  return prim::where(isnan(a), full_like(a, nan), finite);
}

}  // namespace lc
