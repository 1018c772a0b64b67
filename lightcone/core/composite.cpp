// What each composite means in the twelve. A device that implements nothing else runs these;
// where arithmetic cannot say it exactly, the comment says which values differ.
#include <numbers>

#include "lightcone/core/quant.h"
#include "lightcone/core/tensor.h"

namespace lc {
namespace {

using namespace prim;

Tensor like(const Tensor& t, double v) { return full_like(t, v); }
Tensor not_(const Tensor& b) { return less_than(b, like(b, 1)); }
Tensor and_(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor or_(const Tensor& a, const Tensor& b) { return add(a, b); }  // bool + bool saturates
Tensor negate(const Tensor& a) { return mul(a, like(a, -1)); }
Tensor is_nan(const Tensor& a) {  // every number is below 0 or above -1
  return not_(or_(less_than(a, like(a, 0)), less_than(like(a, -1), a)));
}
Tensor index_of(const Tensor& t, int axis, DType dtype) {  // the place along an axis
  return t.graph().index(t.shape(), Dim::index(axis, t.extent(axis)), dtype);
}

// max(a + log2(c), b + log2(1 - c)): the side not chosen becomes -inf. Differs from `where` when
// that side is +inf or NaN.
Tensor define_where(std::span<const Tensor> in) {
  const DType t = in[1].dtype();
  const Tensor c = cast(in[0], t), d = cast(not_(in[0]), t);
  if (is_float(t)) return maximum(add(in[1], log2(c)), add(in[2], log2(d)));
  return add(mul(c, in[1]), mul(d, in[2]));
}

// The larger of a stacked pair. Only the sign of a zero may differ.
Tensor define_maximum(std::span<const Tensor> in) {
  const auto slot = [](const Tensor& t, int before) { return t.unsqueeze(0).pad(0, before, 1 - before); };
  return max_reduce(add(slot(in[0], 0), slot(in[1], 1)), 0);
}

Tensor define_minimum(std::span<const Tensor> in) {
  if (!is_float(in[0].dtype())) return where(less_than(in[1], in[0]), in[1], in[0]);
  return negate(maximum(negate(in[0]), negate(in[1])));
}

// On integers (a - a mod b) / b is whole; halves rounded away make up for the inexact reciprocal.
// Exact below 2^52.
Tensor define_div(std::span<const Tensor> in) {
  if (is_float(in[0].dtype())) return mul(in[0], recip(in[1]));
  if (in[0].dtype() == DType::Bool) return mul(in[0], in[1]);  // by zero gives zero
  const Tensor whole = cast(add(in[0], negate(mod(in[0], in[1]))), DType::F64);
  const Tensor q = mul(whole, recip(cast(in[1], DType::F64)));
  const Tensor away = where(less_than(q, like(q, 0)), like(q, -0.5), like(q, 0.5));
  const Tensor zero = like(in[1], 0);
  return where(equal(in[1], zero), zero, cast(cast(add(q, away), DType::I64), in[0].dtype()));
}

Tensor define_pow(std::span<const Tensor> in) {
  const Tensor &a = in[0], &b = in[1];
  if (!is_float(a.dtype())) {  // by squaring; a negative exponent leaves 1, -1 or 0
    const int bits = std::bit_width(static_cast<std::uint64_t>(info(a.dtype()).highest));
    Tensor r = like(a, 1), power = a;
    for (int k = 0; k < bits; ++k) {
      const double bit = std::exp2(k);
      const Tensor low = k + 1 < bits ? mod(b, like(b, 2 * bit)) : b, clear = less_than(low, like(b, bit));
      r = where(clear, r, mul(r, power));
      power = mul(power, power);
    }
    const Tensor one = like(a, 1), odd = not_(equal(mod(b, like(b, 2)), like(b, 0)));
    const Tensor unit =
        where(equal(a, like(a, -1)), where(odd, like(a, -1), one), where(equal(a, one), one, like(a, 0)));
    return where(less_than(b, like(b, 0)), unit, r);
  }
  // 2^(b log2|a|), its sign from the parity of b, NaN (the log2 of -1) for a root of a negative
  const auto number = [&](const Tensor& c) { return cast(c, a.dtype()); };
  const Tensor zero = like(a, 0), one = like(a, 1);
  const Tensor magnitude = where(equal(b, zero), one, maximum(a, negate(a)));
  const Tensor negative = less_than(a, zero), broken = not_(equal(mod(b, one), zero));
  const Tensor odd = not_(equal(mod(b, like(b, 2)), zero));
  const auto minus_if = [&](const Tensor& c) { return add(one, mul(number(c), like(a, -2))); };
  const Tensor r = exp2(mul(b, log2(magnitude)));
  return add(mul(r, minus_if(and_(negative, odd))), log2(minus_if(and_(negative, broken))));
}

Tensor define_equal(std::span<const Tensor> in) {
  const Tensor ordered = and_(not_(less_than(in[0], in[1])), not_(less_than(in[1], in[0])));
  if (!is_float(in[0].dtype())) return ordered;
  return and_(ordered, and_(not_(is_nan(in[0])), not_(is_nan(in[1]))));
}

// The product is rounded: 2^-24 |x| of the result may be lost.
Tensor define_exp(const Tensor& x) { return exp2(mul(x, like(x, std::numbers::log2e))); }

// sin(2 x) / (2 sin x) keeps the digits near zeros, whatever the size of x. NaN where 2 x overflows. Next to 0, where
// the cosine is 1 to the last digit, the quotient has no value: `where` wants both of its sides to be numbers.
Tensor define_cos(const Tensor& x) {
  const DType t = x.dtype();
  const double one_below = t == DType::F64 ? 0x1p-27 : t == DType::F32 ? 0x1p-13 : 0x1p-7;
  const Tensor one = like(x, 1), is_one = less_than(mul(x, x), like(x, one_below * one_below));
  const Tensor y = where(is_one, one, x), sine = sin(y);
  return where(is_one, one, div(sin(add(y, y)), add(sine, sine)));
}

// hit[.., j, k, ..] = (index[.., j, ..] == k), the axes j and k side by side at `axis`.
Tensor hits(const Tensor& index, int axis, const Dim& n) {
  Tensor j = index.unsqueeze(axis + 1);
  Shape s = j.shape();
  s[axis + 1] = n;
  j = j.expand(s);
  return equal(j, index_of(j, axis + 1, j.dtype()));
}

// The one-hot sum; an infinity in a row that is not chosen disturbs it.
Tensor define_gather(const Node& n, std::span<const Tensor> in) {
  const Tensor hit = hits(in[1], n.axis, in[0].extent(n.axis));
  const Tensor data = in[0].unsqueeze(n.axis).expand(hit.shape());
  return sum_reduce(where(hit, data, like(data, 0)), n.axis + 1);
}

Tensor define_scatter_add(const Node& n, std::span<const Tensor> in) {
  const Tensor hit = hits(in[1], n.axis, in[0].extent(n.axis));
  const Tensor src = in[2].unsqueeze(n.axis + 1).expand(hit.shape());
  return add(in[0], sum_reduce(where(hit, src, like(src, 0)), n.axis));
}

Tensor define_scatter(const Node& n, std::span<const Tensor> in) {
  const Tensor hit = hits(in[1], n.axis, in[0].extent(n.axis));
  const Tensor order = add(index_of(hit, n.axis, DType::I64), full_like(index_of(hit, n.axis, DType::I64), 1));
  const Tensor last = max_reduce(where(hit, order, like(order, 0)), n.axis);  // 1 + the last writer
  const Tensor value = gather(in[2], add(last, like(last, -1)), n.axis);
  return where(less_than(like(last, 0), last), value, in[0]);
}

Tensor define_slice_scatter(const Node& n, std::span<const Tensor> in) {
  const Dim start = n.index, length = in[1].extent(n.axis);
  const Tensor src = in[1].pad(n.axis, start, in[0].extent(n.axis) - start - length);
  const Dim i = Dim::index(n.axis, in[0].extent(n.axis));
  const Dim inside = less(start - 1, i) * less(i, start + length);
  return where(in[0].graph().index(in[0].shape(), inside, DType::Bool), src, in[0]);
}

// The rank of each element among all of its row, then the inverse of that permutation.
Tensor define_argsort(const Node& n, std::span<const Tensor> in) {
  const Dim len = in[0].extent(n.axis);
  Tensor a = in[0].unsqueeze(n.axis + 1), b = in[0].unsqueeze(n.axis);  // [.., i, j, ..]
  Shape s = a.shape();
  s[n.axis + 1] = len;
  a = a.expand(s);
  b = b.expand(s);
  const auto less = [](const Tensor& x, const Tensor& y) {
    if (!is_float(x.dtype())) return less_than(x, y);
    return or_(less_than(x, y), and_(is_nan(y), not_(is_nan(x))));
  };
  const Tensor below = n.mode ? less(a, b) : less(b, a), above = n.mode ? less(b, a) : less(a, b);
  const Tensor i = index_of(a, n.axis, DType::I64), j = index_of(a, n.axis + 1, DType::I64);
  const Tensor first = or_(below, and_(and_(not_(below), not_(above)), less_than(j, i)));
  const Tensor rank = sum_reduce(cast(first, DType::I64), n.axis + 1);
  const Tensor hit = hits(rank, n.axis, len);
  return sum_reduce(mul(cast(hit, DType::I64), index_of(hit, n.axis, DType::I64)), n.axis);
}

// A binary16 from its two bytes: (-1)^s * 2^(e-25) * (1024 + m), or m * 2^-24 when e is 0.
Tensor half_from_bytes(const Tensor& low, const Tensor& high) {
  const auto value = [](const Tensor& t, double v) { return full_like(t, v); };
  const Tensor negative = less_than(value(high, 127.5), high);
  const Tensor h = mod(high, value(high, 128)), top = mod(h, value(h, 4));
  const Tensor e = mul(add(h, negate(top)), value(h, 0.25));
  const Tensor m = add(mul(top, value(top, 256)), low);
  const Tensor normal = mul(add(m, value(m, 1024)), exp2(add(e, value(e, -25))));
  const Tensor v = where(less_than(e, value(e, 0.5)), mul(m, value(m, 0x1p-24)), normal);
  return where(negative, negate(v), v);
}

Tensor define_dequantize(const Node& n, std::span<const Tensor> in) {
  const QuantInfo& q = info(static_cast<QuantFormat>(n.mode));
  Shape s = in[0].shape();
  s.back() = s.back() / Dim(q.bytes);
  s.push_back(q.bytes);
  const Tensor blocks = cast(contiguous(in[0]).reshape(s), DType::F32);
  const int last = blocks.rank() - 1;
  s.back() = q.elements;
  const QuantLayout<Dim> layout = quant_layout<Dim>(q.format, Dim::index(last, q.elements));
  const auto floor_of = [](const Tensor& x) { return add(x, negate(mod(x, like(x, 1)))); };
  const auto bits = [&](const QuantBits<Dim>& b) {
    Graph& g = in[0].graph();
    if (b.width == 0) return g.index(s, 0, DType::F32);
    const Tensor byte = gather(blocks, g.index(s, b.byte), last);
    const Tensor shifted = floor_of(mul(byte, exp2(g.index(s, b.shift * -1, DType::F32))));
    return mul(mod(shifted, like(shifted, 1 << b.width)), like(shifted, 1 << b.place));
  };
  const auto code = [&](const QuantCode<Dim>& c) {
    Tensor v = add(bits(c.low), bits(c.high));
    if (c.is_signed) v = add(v, mul(cast(less_than(like(v, 127.5), v), DType::F32), like(v, -256)));
    return add(v, like(v, c.bias));
  };
  const auto half = [&](int at) {
    return half_from_bytes(blocks.slice(last, at, at + 1), blocks.slice(last, at + 1, at + 2)).expand(s);
  };
  Tensor v = mul(mul(half(layout.d), code(layout.scale)), code(layout.q));
  if (layout.d_min >= 0) v = add(v, negate(mul(half(layout.d_min), code(layout.min))));
  s.pop_back();
  s.back() = s.back() * Dim(q.elements);
  return v.reshape(s);
}

}  // namespace

Tensor define(const Node& n, std::span<const Tensor> in) {
  const OpScope scope(n.where.known() ? n.where : Location{__FILE__, __LINE__, ""});
  switch (n.op) {
    case Op::Where: return define_where(in);
    case Op::Maximum: return define_maximum(in);
    case Op::Minimum: return define_minimum(in);
    case Op::Div: return define_div(in);
    case Op::Pow: return define_pow(in);
    case Op::Equal: return define_equal(in);
    case Op::Exp: return define_exp(in[0]);
    case Op::Cos: return define_cos(in[0]);
    case Op::Gather: return define_gather(n, in);
    case Op::Scatter: return define_scatter(n, in);
    case Op::ScatterAdd: return define_scatter_add(n, in);
    case Op::SliceScatter: return define_slice_scatter(n, in);
    case Op::ArgSort: return define_argsort(n, in);
    case Op::Dequantize: return define_dequantize(n, in);
    default: check(false, "not a composite");
  }
  return {};
}

}  // namespace lc
