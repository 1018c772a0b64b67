#include <numbers>

#include "lightcone/ops/internal.h"

namespace lc {
namespace detail {

Tensor reduce(Op op, Tensor t, const Axes& axes, bool keepdim) {
  Shape kept = t.shape();
  for (std::size_t k = axes.size(); k-- > 0;) {
    t = op == Op::SumReduce ? prim::sum_reduce(t, axes[k]) : prim::max_reduce(t, axes[k]);
    kept[axes[k]] = 1;
  }
  return keepdim ? t.reshape(kept) : t;
}

Tensor exp_of_difference(const Tensor& t) { return prim::exp2(mul(t, std::numbers::log2e)); }

}  // namespace detail
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

Dim count(const Tensor& t, const Axes& axes) {
  Dim n = 1;
  for (int x : axes) n = n * t.extent(x);
  return n;
}
// A possibly symbolic integer as a tensor of the shape of t.
Tensor number(const Tensor& t, const Dim& n) {
  if (const auto c = n.constant()) return full_like(t, static_cast<double>(*c));
  return prim::cast(t.graph().index(t.shape(), n), t.dtype());
}
void not_empty(const Tensor& t, const Axes& axes, const char* op) {
  for (const int x : axes)
    if (t.extent(x) == Dim(0)) throw Error(op, str_cat("axis ", x, " of ", str(t.shape()), " has no elements"));
}
// keep() restores reduced axes of a shape with extent 1; spread() also expands them.
Tensor keep(const Tensor& t, const Axes& axes, Shape from) {
  for (const int x : axes) from[x] = 1;
  return t.reshape(from);
}
Tensor spread(const Tensor& t, const Axes& axes, const Shape& to) { return keep(t, axes, to).expand(to); }
Tensor drop(Tensor t, const Axes& axes) {  // removes axes of extent 1
  for (std::size_t k = axes.size(); k-- > 0;) t = t.squeeze(axes[k]);
  return t;
}

// Reverses the order of values. Integers use their complement, which does not overflow.
Tensor reversed(const Tensor& a) {
  if (is_float(a.dtype())) return neg(a);
  const Tensor x = a.dtype() == DType::Bool ? prim::cast(a, DType::U8) : a;
  return prim::bitwise_xor(x, full_like(x, -1));
}
}  // namespace

Tensor sum(Operand a, Axes axes, bool keepdim, std::optional<DType> dtype) {
  LC_SCOPE("sum");
  if (dtype) a.tensor = prim::cast(a, *dtype);
  axes = wrap_axes(std::move(axes), a, "sum");
  const bool narrow = !is_float(a->dtype());
  return reduce(Op::SumReduce, narrow ? prim::cast(a, DType::I64) : a.tensor, axes, keepdim);
}
Tensor mean(Operand a, Axes axes, bool keepdim, std::optional<DType> dtype) {
  LC_SCOPE("mean");
  if (dtype) a.tensor = prim::cast(a, *dtype);
  LC_RETURN_IF_HALF(a, mean(a, std::move(axes), keepdim));
  axes = wrap_axes(std::move(axes), a, "mean");
  const Tensor s = reduce(Op::SumReduce, as_float(a), axes, keepdim);
  return prim::div(s, number(s, count(a, axes)));
}
Tensor amax(Operand a, Axes axes, bool keepdim) {
  LC_SCOPE("amax");
  axes = wrap_axes(std::move(axes), a, "amax");
  not_empty(a, axes, "amax");
  return reduce(Op::MaxReduce, a, axes, keepdim);
}
Tensor amin(Operand a, Axes axes, bool keepdim) {
  LC_SCOPE("amin");
  axes = wrap_axes(std::move(axes), a, "amin");
  not_empty(a, axes, "amin");
  return prim::cast(reversed(reduce(Op::MaxReduce, reversed(a), axes, keepdim)), a->dtype());
}
Tensor var(Operand a, Axes axes, int correction, bool keepdim) {
  LC_SCOPE("var");
  LC_RETURN_IF_HALF(a, var(a, std::move(axes), correction, keepdim));
  axes = wrap_axes(std::move(axes), a, "var");
  const Tensor x = as_float(a), m = mean(x, axes, true);
  const Tensor d = prim::add(x, neg(m.expand(x.shape())));
  const Tensor s = reduce(Op::SumReduce, prim::mul(d, d), axes, false);
  const Tensor v = prim::div(s, prim::maximum(number(s, count(x, axes) - correction), full_like(s, 0)));
  with_vjp(v, {x}, [axes, correction](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor x = c.x(), off = prim::add(x, neg(mean(x, axes, true).expand(x.shape())));
    const Tensor each = prim::div(mul(c.g(), 2), number(c.g(), count(x, axes) - correction));
    return {prim::mul(spread(each, axes, x.shape()), off)};
  });
  return keepdim ? keep(v, axes, x.shape()) : v;
}
Tensor stddev(Operand a, Axes axes, int correction, bool keepdim) {
  LC_SCOPE("std");
  LC_RETURN_IF_HALF(a, stddev(a, std::move(axes), correction, keepdim));
  const Tensor v = var(a, std::move(axes), correction, keepdim);
  return with_vjp(prim::sqrt(v), {v}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor zero = full_like(c.y(), 0);  // zero variance: the derivative is 0, not infinite
    return {prim::where(prim::equal(c.y(), zero), zero, prim::div(c.g(), mul(c.y(), 2)))};
  });
}
Tensor std(Operand a, Axes axes, int correction, bool keepdim) {
  return stddev(a, std::move(axes), correction, keepdim);
}
std::pair<Tensor, Tensor> var_mean(Operand a, Axes axes, int correction, bool keepdim) {
  LC_SCOPE("var_mean");
  return {var(a, axes, correction, keepdim), mean(a, axes, keepdim)};
}
std::pair<Tensor, Tensor> std_mean(Operand a, Axes axes, int correction, bool keepdim) {
  LC_SCOPE("std_mean");
  return {stddev(a, axes, correction, keepdim), mean(a, axes, keepdim)};
}
namespace {
Tensor part(const Tensor& t, int axis, std::int64_t from, std::int64_t to) { return t.slice(axis, from, to); }
Scaled part(const Scaled& s, int axis, std::int64_t from, std::int64_t to) {
  return {s.mantissa.slice(axis, from, to), s.exponent.slice(axis, from, to)};
}
Tensor joined(const Tensor& a, const Tensor& b, int axis) { return concat({a, b}, axis); }
Scaled joined(const Scaled& a, const Scaled& b, int axis) {
  return {concat({a.mantissa, b.mantissa}, axis), concat({a.exponent, b.exponent}, axis)};
}
Tensor times(const Tensor& a, const Tensor& b) { return prim::mul(a, b); }
Dim extent(const Tensor& t, int axis) { return t.extent(axis); }
Dim extent(const Scaled& s, int axis) { return s.mantissa.extent(axis); }

// Multiplies over an axis, which keeps extent 1.
template <class T>
T pairwise(T t, int axis) {
  for (std::int64_t len = *extent(t, axis).constant(); len > 1;) {
    const std::int64_t half = len / 2;
    const T pairs = times(part(t, axis, 0, half), part(t, axis, half, 2 * half));
    t = len % 2 ? joined(pairs, part(t, axis, 2 * half, len), axis) : pairs;
    len = half + len % 2;
  }
  return t;
}
}  // namespace
Tensor prod(Operand a, int axis, bool keepdim) {
  LC_SCOPE("prod");
  LC_RETURN_IF_NUMBER(a, axis, prod(a, 0, keepdim));
  LC_RETURN_IF_HALF(a, prod(a, axis, keepdim));
  axis = wrap_axis(axis, a->rank(), a->shape(), "prod");
  Tensor t = is_float(a->dtype()) ? a.tensor : prim::cast(a, DType::I64);
  const Dim n = t.extent(axis);
  if (!n.constant()) {  // symbolic: the last running product, with a leading 1 in case n = 0
    t = cumprod(pad(t, axis, 1, 0, PadMode::Constant, 1), axis).slice(axis, n, n + 1);
    return keepdim ? t : t.squeeze(axis);
  }
  if (n == Dim(0)) {
    Shape s = t.shape();
    s[axis] = 1;
    t = full(t.graph(), s, 1, t.dtype());
  }
  t = is_float(t.dtype()) ? number(pairwise<Scaled>(scaled(t), axis)) : pairwise<Tensor>(t, axis);
  return keepdim ? t : t.squeeze(axis);
}
Tensor prod(Operand a) {
  LC_SCOPE("prod");
  return prod(a->reshape({product(a->shape())}), 0);
}
Tensor norm(Operand a, double p, Axes axes, bool keepdim) {
  LC_SCOPE("norm");
  LC_RETURN_IF_HALF(a, norm(a, p, std::move(axes), keepdim));
  axes = wrap_axes(std::move(axes), a, "norm");
  const Tensor x = as_float(a), m = abs(x);
  if (p == kInf) return amax(m, std::move(axes), keepdim);
  if (p == -kInf) return amin(m, std::move(axes), keepdim);
  if (p == 0) return sum(prim::cast(ne(x, full_like(x, 0)), x.dtype()), std::move(axes), keepdim);
  if (p == 1) return sum(m, std::move(axes), keepdim);
  if (p == 2) {
    const Tensor y = prim::sqrt(sum(prim::mul(x, x), axes, false));
    with_vjp(y, {x}, [axes](const VjpCall& c) -> std::vector<Tensor> {
      const Tensor zero = full_like(c.y(), 0);  // subgradient 0 at the origin
      const Tensor by = prim::where(prim::equal(c.y(), zero), zero, prim::div(c.g(), c.y()));
      return {prim::mul(spread(by, axes, c.x().shape()), c.x())};
    });
    return keepdim ? keep(y, axes, x.shape()) : y;
  }
  const Tensor y = prim::contiguous(pow(sum(pow(m, p), axes, true), 1 / p));
  with_vjp(y, {x}, [p](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor &x = c.x(), zero = full_like(x, 0), y = c.y().expand(x.shape());
    // At points without a derivative PyTorch has 0. The quotient is replaced by 1 / 1 there, to keep its own
    // derivatives finite.
    const Tensor flat = p > 1 ? prim::equal(y, zero) : prim::equal(x, zero), one = full_like(x, 1);
    const Tensor ratio = prim::div(prim::where(flat, one, abs(x)), prim::where(flat, one, y));
    const Tensor slope = prim::mul(sign(x), pow(ratio, p - 1));
    return {prim::where(flat, zero, prim::mul(c.g().expand(x.shape()), slope))};
  });
  return keepdim ? y : drop(y, axes);
}
Tensor count_nonzero(Operand a, Axes axes) {
  LC_SCOPE("count_nonzero");
  return sum(prim::cast(a, DType::Bool), std::move(axes));
}
Tensor logsumexp(Operand a, Axes axes, bool keepdim) {
  LC_SCOPE("logsumexp");
  LC_RETURN_IF_HALF(a, logsumexp(a, std::move(axes), keepdim));
  axes = wrap_axes(std::move(axes), a, "logsumexp");
  const Tensor x = as_float(a), top = reduce(Op::MaxReduce, x, axes, true);
  // avoids inf - inf
  const Tensor m = prim::where(isinf(top), full_like(top, 0), top);
  const Tensor s = reduce(Op::SumReduce, exp_of_difference(prim::add(x, neg(m.expand(x.shape())))), axes, true);
  const Tensor r = with_vjp(prim::add(log(s), m), {x}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Shape to = c.x().shape();
    const Tensor share = exp_of_difference(prim::add(c.x(), neg(c.y().expand(to))));
    return {prim::mul(c.g().expand(to), share)};
  });
  return keepdim ? r : drop(r, axes);
}
Tensor argmax(Operand a, int axis, bool keepdim) {
  LC_SCOPE("argmax");
  LC_RETURN_IF_NUMBER(a, axis, argmax(a, 0, keepdim));
  axis = wrap_axis(axis, a->rank(), a->shape(), "argmax");
  not_empty(a, {axis}, "argmax");
  const Tensor x = a->dtype() == DType::Bool ? prim::cast(a, DType::U8) : a.tensor;
  const Tensor top = reduce(Op::MaxReduce, x, {axis}, true).expand(x.shape());
  Tensor hit = prim::equal(x, top);
  if (is_float(x.dtype())) hit = logical_or(hit, isnan(x));  // NaN counts as the largest
  // the first hit has the largest distance to the end
  const Dim n = x.extent(axis);
  const Tensor from_end = x.graph().index(x.shape(), n - Dim::index(axis, n));
  const Tensor best = reduce(Op::MaxReduce, prim::where(hit, from_end, full_like(from_end, 0)), {axis}, keepdim);
  return prim::add(number(best, n), neg(best));
}
Tensor detail::with_vjp_of_first(const Tensor& y, const Tensor& x, int axis) {
  return with_vjp(y, {x}, [axis](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor& x = c.x();
    const Dim n = x.extent(axis);
    Tensor hit = prim::equal(x, spread(c.y(), {axis}, x.shape()));
    if (is_float(x.dtype())) hit = logical_or(hit, isnan(x));
    // the first hit has the largest distance to the end
    const Tensor from_end = x.graph().index(x.shape(), n - Dim::index(axis, n), DType::I32);
    const Tensor first = reduce(Op::MaxReduce, prim::where(hit, from_end, full_like(from_end, 0)), {axis}, true);
    const Tensor chosen = prim::equal(from_end, first.expand(x.shape()));
    return {prim::where(chosen, spread(c.g(), {axis}, x.shape()), full_like(x, 0))};
  });
}
Tensor argmax(Operand a) {
  LC_SCOPE("argmax");
  return argmax(a->reshape({product(a->shape())}), 0);
}
Tensor argmin(Operand a) {
  LC_SCOPE("argmin");
  return argmin(a->reshape({product(a->shape())}), 0);
}
Tensor argmin(Operand a, int axis, bool keepdim) {
  LC_SCOPE("argmin");
  return argmax(reversed(a), axis, keepdim);
}
Extreme max(Operand a, int axis, bool keepdim) {
  LC_SCOPE("max");
  LC_RETURN_IF_NUMBER(a, axis, max(a, 0, keepdim));
  axis = wrap_axis(axis, a->rank(), a->shape(), "max");
  // copied to a node of its own, because amax has a different derivative
  const Tensor values = prim::contiguous(amax(a, {axis}, keepdim));
  return {with_vjp_of_first(values, a, axis), argmax(a, axis, keepdim)};
}
Extreme min(Operand a, int axis, bool keepdim) {
  LC_SCOPE("min");
  LC_RETURN_IF_NUMBER(a, axis, min(a, 0, keepdim));
  axis = wrap_axis(axis, a->rank(), a->shape(), "min");
  if (!is_float(a->dtype())) return {amin(a, {axis}, keepdim), argmin(a, axis, keepdim)};
  const Extreme most = max(neg(a.tensor), axis, keepdim);
  return {neg(most.values), most.indices};
}
Tensor max(Operand a) {
  LC_SCOPE("max");
  return amax(a);
}
Tensor min(Operand a) {
  LC_SCOPE("min");
  return amin(a);
}
Tensor max(Operand a, Operand b) {
  LC_SCOPE("max");
  return maximum(a, b);
}
Tensor min(Operand a, Operand b) {
  LC_SCOPE("min");
  return minimum(a, b);
}
std::pair<Tensor, Tensor> aminmax(Operand a, Axes axes, bool keepdim) {
  LC_SCOPE("aminmax");
  return {amin(a, axes, keepdim), amax(a, axes, keepdim)};
}
Tensor any(Operand a, Axes axes, bool keepdim) {
  LC_SCOPE("any");
  axes = wrap_axes(std::move(axes), a, "any");
  return reduce(Op::MaxReduce, prim::cast(a, DType::Bool), axes, keepdim);
}
Tensor all(Operand a, Axes axes, bool keepdim) {
  LC_SCOPE("all");
  return logical_not(any(logical_not(a), std::move(axes), keepdim));
}
Tensor softmax(Operand a, int axis) {
  LC_SCOPE("softmax");
  LC_RETURN_IF_NUMBER(a, axis, softmax(a, 0));
  LC_RETURN_IF_HALF(a, softmax(a, axis));
  axis = wrap_axis(axis, a->rank(), a->shape(), "softmax");
  const Tensor x = as_float(a), m = reduce(Op::MaxReduce, x, {axis}, true).expand(x.shape());
  const Tensor e = exp_of_difference(prim::add(x, neg(m)));
  const Tensor y = prim::mul(e, prim::recip(reduce(Op::SumReduce, e, {axis}, true)).expand(x.shape()));
  return with_vjp(y, {x}, [axis](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor mean = reduce(Op::SumReduce, prim::mul(c.g(), c.y()), {axis}, true).expand(c.y().shape());
    return {prim::mul(c.y(), prim::add(c.g(), neg(mean)))};
  });
}
Tensor log_softmax(Operand a, int axis) {
  LC_SCOPE("log_softmax");
  LC_RETURN_IF_NUMBER(a, axis, log_softmax(a, 0));
  LC_RETURN_IF_HALF(a, log_softmax(a, axis));
  axis = wrap_axis(axis, a->rank(), a->shape(), "log_softmax");
  const Tensor x = as_float(a), m = reduce(Op::MaxReduce, x, {axis}, true).expand(x.shape());
  const Tensor d = prim::add(x, neg(m));
  const Tensor y = prim::add(d, neg(log(reduce(Op::SumReduce, exp_of_difference(d), {axis}, true)).expand(x.shape())));
  return with_vjp(y, {x}, [axis](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor all = reduce(Op::SumReduce, c.g(), {axis}, true).expand(c.y().shape());
    return {prim::add(c.g(), neg(prim::mul(exp_of_difference(c.y()), all)))};
  });
}

Tensor softmin(Operand a, int axis) {
  LC_SCOPE("softmin");
  return softmax(neg(as_float(a)), axis);
}

}  // namespace lc
