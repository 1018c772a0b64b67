#include <numbers>

#include "lightcone/ops/internal.h"

namespace lc {
namespace detail {

int wrap_axis(int axis, int rank, const Shape& shape, const char* op) {
  const int a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank) throw Error(op, cat("axis ", axis, " is not an axis of ", str(shape)));
  return a;
}

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
  const auto order = [](DType t) { return t == DType::Bool ? 0 : t == DType::U8 ? 1 : t == DType::I32 ? 2 : 3; };
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

Pair promoted(const Operand& a, const Operand& b, const char* op) {
  const DType t = promote(a->dtype(), b->dtype());
  const Shape s = broadcast(a->shape(), b->shape(), op);
  return {expand_to(prim::cast(a, t), s), expand_to(prim::cast(b, t), s)};
}

Tensor scalar_like(const Tensor& t, double v) {
  if (!is_float(t.dtype()) && (v != std::floor(v) || std::isinf(v))) return prim::cast(t, DType::F32);
  if (t.dtype() == DType::Bool) return prim::cast(t, DType::I64);
  return t;
}

}  // namespace detail

using namespace detail;

#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor operator+(Operand a, Operand b) {
  LC_SCOPE("operator+");
  const Pair p = promoted(a, b, "operator+");
  return prim::add(p.a, p.b);
}
Tensor operator-(Operand a, Operand b) {
  LC_SCOPE("operator-");
  const Pair p = promoted(a, b, "operator-");
  return prim::add(p.a, neg(p.b));
}
Tensor operator*(Operand a, Operand b) {
  LC_SCOPE("operator*");
  const Pair p = promoted(a, b, "operator*");
  return prim::mul(p.a, p.b);
}
Tensor operator/(Operand a, Operand b) {
  LC_SCOPE("operator/");
  const Pair p = promoted(a, b, "operator/");
  return prim::div(as_float(p.a), as_float(p.b));
}
namespace {
Tensor remainder(const Tensor& x, const Tensor& y) {
  const Tensor r = prim::mod(x, y), zero = full_like(r, 0);
  const Tensor opposite = logical_xor(prim::less_than(r, zero), prim::less_than(y, zero));
  const Tensor fix = logical_and(opposite, logical_not(prim::equal(r, zero)));
  return prim::where(fix, prim::add(r, y), r);
}
}  // namespace
Tensor operator%(Operand a, Operand b) {
  LC_SCOPE("remainder");
  const Pair p = promoted(a, b, "remainder");
  return remainder(p.a, p.b);
}
Tensor fmod(Operand a, Operand b) {
  LC_SCOPE("fmod");
  const Pair p = promoted(a, b, "fmod");
  return prim::mod(p.a, p.b);
}
Tensor floor_divide(Operand a, Operand b) {
  LC_SCOPE("floor_divide");
  const Pair p = promoted(a, b, "floor_divide");
  if (is_float(p.a.dtype())) return floor(prim::div(p.a, p.b));
  return prim::div(prim::add(p.a, neg(remainder(p.a, p.b))), p.b);
}
Tensor operator-(Operand a) {
  LC_SCOPE("neg");
  return neg(a);
}

namespace {
template <class F>
Tensor with_scalar(const Operand& a, double b, const char* name, const F& f) {
  const OpScope scope(name, a.at);
  const Tensor t = scalar_like(a, b);
  return f(t, full_like(t, b));
}
}  // namespace
Tensor operator+(Operand a, double b) { return with_scalar(a, b, "operator+", [](Tensor x, Tensor y) { return prim::add(x, y); }); }
Tensor operator-(Operand a, double b) { return with_scalar(a, -b, "operator-", [](Tensor x, Tensor y) { return prim::add(x, y); }); }
Tensor operator*(Operand a, double b) { return with_scalar(a, b, "operator*", [](Tensor x, Tensor y) { return prim::mul(x, y); }); }
Tensor operator/(Operand a, double b) {
  LC_SCOPE("operator/");
  const Tensor t = as_float(a);
  return prim::div(t, full_like(t, b));
}
Tensor operator%(Operand a, double b) { return with_scalar(a, b, "remainder", [](Tensor x, Tensor y) { return remainder(x, y); }); }
Tensor operator+(double a, Operand b) { return b + a; }
Tensor operator-(double a, Operand b) {
  const OpScope scope("operator-", b.at);
  const Tensor t = scalar_like(b, a);
  return prim::add(full_like(t, a), neg(t));
}
Tensor operator*(double a, Operand b) { return b * a; }
Tensor operator/(double a, Operand b) {
  const OpScope scope("operator/", b.at);
  const Tensor t = as_float(b);
  return prim::div(full_like(t, a), t);
}
Tensor pow(Operand a, Operand b) {
  LC_SCOPE("pow");
  const Pair p = promoted(a, b, "pow");
  return prim::pow(p.a, p.b);
}
Tensor pow(Operand a, double b) {
  LC_SCOPE("pow");
  if (b == 2) return prim::mul(a, a);
  if (b == 0.5 && is_float(a->dtype())) return sqrt(a);
  const Tensor t = scalar_like(a, b);
  return prim::pow(t, full_like(t, b));
}
Tensor maximum(Operand a, Operand b) {
  LC_SCOPE("maximum");
  const Pair p = promoted(a, b, "maximum");
  return prim::maximum(p.a, p.b);
}
Tensor minimum(Operand a, Operand b) {
  LC_SCOPE("minimum");
  const Pair p = promoted(a, b, "minimum");
  return prim::minimum(p.a, p.b);
}
Tensor clamp(Operand a, double low, double high) {
  LC_SCOPE("clamp");
  Tensor t = a;
  if (low > -kInf) t = prim::maximum(t, full_like(t, low));
  if (high < kInf) t = prim::minimum(t, full_like(t, high));
  return t;
}

Tensor operator<(Operand a, Operand b) {
  LC_SCOPE("lt");
  const Pair p = promoted(a, b, "lt");
  return prim::less_than(p.a, p.b);
}
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
Tensor operator<(Operand a, double b) { return with_scalar(a, b, "lt", [](Tensor x, Tensor y) { return prim::less_than(x, y); }); }
Tensor operator>(Operand a, double b) { return with_scalar(a, b, "gt", [](Tensor x, Tensor y) { return prim::less_than(y, x); }); }
Tensor operator<=(Operand a, double b) { return with_scalar(a, b, "le", [](Tensor x, Tensor y) { return x <= y; }); }
Tensor operator>=(Operand a, double b) { return with_scalar(a, b, "ge", [](Tensor x, Tensor y) { return x >= y; }); }
Tensor eq(Operand a, Operand b) {
  LC_SCOPE("eq");
  const Pair p = promoted(a, b, "eq");
  return prim::equal(p.a, p.b);
}
Tensor eq(Operand a, double b) { return with_scalar(a, b, "eq", [](Tensor x, Tensor y) { return prim::equal(x, y); }); }
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

// ---- unary -------------------------------------------------------------------------------------

Tensor to(Operand a, DType dtype) {
  LC_SCOPE("to");
  return prim::cast(a, dtype);
}
Tensor abs(Operand a) {
  LC_SCOPE("abs");
  // + 0 turns -0, which is not below 0, into 0
  return add(prim::where(prim::less_than(a, full_like(a, 0)), neg(a), a), 0.0);
}
Tensor sign(Operand a) {
  LC_SCOPE("sign");
  const Tensor zero = full_like(a, 0);
  return prim::where(prim::less_than(zero, a), full_like(a, 1), prim::where(prim::less_than(a, zero), full_like(a, -1), zero));
}
Tensor square(Operand a) {
  LC_SCOPE("square");
  return prim::mul(a, a);
}
Tensor exp2(Operand a) {
  LC_SCOPE("exp2");
  return prim::exp2(as_float(a));
}
Tensor exp(Operand a) {
  LC_SCOPE("exp");
  return prim::exp2(mul(as_float(a), std::numbers::log2e));
}
Tensor expm1(Operand a) {
  LC_SCOPE("expm1");
  const Tensor x = as_float(a);  // a Taylor series near 0, where exp(x) - 1 would cancel
  Tensor p = full_like(x, 1.0 / 5040);
  for (const double c : {1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0}) p = prim::add(prim::mul(p, x), full_like(x, c));
  return prim::where(prim::less_than(abs(x), full_like(x, 0.1)), prim::mul(p, x), add(exp(x), -1));
}
Tensor log2(Operand a) {
  LC_SCOPE("log2");
  return prim::log2(as_float(a));
}
Tensor log(Operand a) {
  LC_SCOPE("log");
  return mul(prim::log2(as_float(a)), std::numbers::ln2);
}
Tensor log1p(Operand a) {
  LC_SCOPE("log1p");
  const Tensor x = as_float(a), u = add(x, 1), d = add(u, -1);
  // log(u) * x / (u - 1) undoes the rounding of 1 + x (Goldberg 1991, theorem 4)
  const Tensor r = prim::mul(log(u), prim::div(x, d));
  return prim::where(prim::equal(d, full_like(d, 0)), x, prim::where(prim::equal(u, full_like(u, kInf)), x, r));
}
Tensor sqrt(Operand a) {
  LC_SCOPE("sqrt");
  return prim::sqrt(as_float(a));
}
Tensor rsqrt(Operand a) {
  LC_SCOPE("rsqrt");
  return prim::recip(prim::sqrt(as_float(a)));
}
Tensor reciprocal(Operand a) {
  LC_SCOPE("reciprocal");
  return prim::recip(as_float(a));
}
Tensor sin(Operand a) {
  LC_SCOPE("sin");
  return prim::sin(as_float(a));
}
Tensor cos(Operand a) {
  LC_SCOPE("cos");
  // x + pi/2 in two parts: s, and the rounding error e of the sum and of pi/2 itself (Knuth's
  // two-sum), so that the result is right near its zeros too: sin(s + e) = sin(s) - e sin(x).
  const Tensor x = as_float(a);
  const bool narrow = x.dtype() != DType::F64;
  const double high = narrow ? static_cast<double>(static_cast<float>(std::numbers::pi / 2)) : std::numbers::pi / 2;
  const double low = narrow ? std::numbers::pi / 2 - high : 6.123233995736766e-17;
  const Tensor s = add(x, high), b = prim::add(s, neg(x));
  const Tensor e = add(prim::add(prim::add(x, neg(prim::add(s, neg(b)))), add(neg(b), high)), low);
  return prim::add(prim::sin(s), neg(prim::mul(e, prim::sin(x))));
}
Tensor tan(Operand a) {
  LC_SCOPE("tan");
  return prim::div(sin(a), cos(a));
}
Tensor tanh(Operand a) {
  LC_SCOPE("tanh");
  // 1 - 2 / (e^2|x| + 1) with the sign of x; an odd series near 0 keeps the relative precision
  const Tensor x = as_float(a), m = abs(x), s = prim::mul(x, x);
  const Tensor big = prim::add(full_like(x, 1), mul(prim::recip(add(exp(mul(m, 2)), 1)), -2));
  Tensor p = full_like(x, 62.0 / 2835);
  for (const double c : {-17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0}) p = prim::add(prim::mul(p, s), full_like(x, c));
  const Tensor signed_big = prim::where(prim::less_than(x, full_like(x, 0)), neg(big), big);
  return prim::where(prim::less_than(m, full_like(m, 0.1)), prim::mul(p, x), signed_big);
}
namespace {
// x P(x^2) / Q(x^2) on [-4, 4], beyond which f32 knows only 1: the rational approximation of Eigen's
// and XLA's erf, a few units in the last place.
Tensor erf_f32(const Tensor& a) {
  const Tensor low = full_like(a, -4), high = full_like(a, 4);
  const Tensor x = prim::where(prim::less_than(a, low), low, prim::where(prim::less_than(high, a), high, a)), s = prim::mul(x, x);
  const auto polynomial = [&](std::initializer_list<double> c) {
    Tensor p = full_like(x, *c.begin());
    for (const double* k = c.begin() + 1; k != c.end(); ++k) p = prim::add(prim::mul(p, s), full_like(x, *k));
    return p;
  };
  const Tensor p = polynomial({-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02});
  const Tensor q = polynomial({-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02});
  return prim::div(prim::mul(x, p), q);
}
}  // namespace

Tensor erf(Operand a) {
  LC_SCOPE("erf");
  if (a->dtype() != DType::F64) return erf_f32(as_float(a));
  // Near 0 the Maclaurin series; beyond, 1 - t exp(-x^2 + P(t)), t = 1 / (1 + x/2), relative error
  // below 1.2e-7 (Numerical Recipes, erfcc).
  const Tensor x = as_float(a), m = abs(x), s = prim::mul(x, x);
  Tensor p = full_like(x, -1.0 / 1320);
  for (const double c : {1.0 / 216, -1.0 / 42, 1.0 / 10, -1.0 / 3, 1.0}) p = prim::add(prim::mul(p, s), full_like(x, c));
  const Tensor small = mul(prim::mul(p, x), 2 / std::sqrt(std::numbers::pi));
  const Tensor t = prim::recip(add(mul(m, 0.5), 1));
  Tensor q = full_like(x, 0.17087277);
  for (const double c : {-0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223})
    q = prim::add(prim::mul(q, t), full_like(x, c));
  const Tensor big = prim::add(full_like(x, 1), neg(prim::mul(t, exp(prim::add(q, neg(s))))));
  const Tensor signed_big = prim::where(prim::less_than(x, full_like(x, 0)), neg(big), big);
  return prim::where(prim::less_than(m, full_like(m, 0.5)), small, signed_big);
}
namespace {
// `r`, where zeros take the sign of `a`.
Tensor zero_of(const Tensor& a, const Tensor& r) {
  const Tensor zero = full_like(r, 0);
  return prim::where(prim::equal(r, zero), prim::mul(a, zero), r);
}
}  // namespace

Tensor trunc(Operand a) {
  LC_SCOPE("trunc");
  if (!is_float(a->dtype())) return a;
  const Tensor r = prim::add(a, neg(prim::mod(a, full_like(a, 1))));
  // infinities and NaN have no fraction
  return prim::where(isfinite(a), zero_of(a, r), a);
}
Tensor floor(Operand a) {
  LC_SCOPE("floor");
  if (!is_float(a->dtype())) return a;
  const Tensor t = trunc(a);
  return prim::where(prim::less_than(a, t), add(t, -1), t);
}
Tensor ceil(Operand a) {
  LC_SCOPE("ceil");
  if (!is_float(a->dtype())) return a;
  const Tensor t = trunc(a);
  return prim::where(prim::less_than(t, a), add(t, 1), t);
}
Tensor round(Operand a) {
  LC_SCOPE("round");
  if (!is_float(a->dtype())) return a;
  const Tensor f = floor(a), d = prim::add(a, neg(f)), half = full_like(a, 0.5);
  const Tensor odd = prim::equal(abs(prim::mod(f, full_like(f, 2))), full_like(f, 1));
  const Tensor up = logical_or(prim::less_than(half, d), logical_and(prim::equal(d, half), odd));
  return prim::where(isfinite(a), zero_of(a, prim::where(up, add(f, 1), f)), a);
}

}  // namespace lc
