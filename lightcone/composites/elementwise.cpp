// Definitions of the elementwise composites in the primitives. A device that implements nothing else runs these. If
// arithmetic cannot be exact, the comment names the values that differ.
#include <bit>
#include <cmath>
#include <numbers>

#include "lightcone/composites/composites.h"
#include "lightcone/composites/definitions.h"

namespace lc {
namespace {

using namespace prim;
using namespace definitions;

// max(a + log2(c), b + log2(1 - c)): the operand not chosen becomes -inf. Differs from `where` if that operand is +inf
// or NaN.
Tensor define_where(std::span<const Tensor> in) {
  const DType t = in[1].dtype();
  const Tensor c = cast(in[0], t), d = cast(not_(in[0]), t);
  if (is_float(t)) return maximum(add(in[1], log2(c)), add(in[2], log2(d)));
  return add(mul(c, in[1]), mul(d, in[2]));
}

// Max-reduces a stacked pair. Only the sign of a zero may differ.
Tensor define_maximum(std::span<const Tensor> in) {
  const auto slot = [](const Tensor& t, int before) { return t.unsqueeze(0).pad(0, before, 1 - before); };
  return max_reduce(add(slot(in[0], 0), slot(in[1], 1)), 0);
}

Tensor define_minimum(std::span<const Tensor> in) {
  if (!is_float(in[0].dtype())) return where(less_than(in[1], in[0]), in[1], in[0]);
  return negate(maximum(negate(in[0]), negate(in[1])));
}

// On integers (a - a mod b) / b is whole. The f64 quotient, rounded to nearest, is off by less than 2^13; the rest is
// divided again, exactly.
Tensor define_div(std::span<const Tensor> in) {
  if (is_float(in[0].dtype())) return mul(in[0], recip(in[1]));
  if (in[0].dtype() == DType::Bool) return mul(in[0], in[1]);  // division by zero gives zero
  const DType wide = is_unsigned(in[0].dtype()) ? DType::U64 : DType::I64;
  const Tensor a = cast(add(in[0], negate(mod(in[0], in[1]))), wide), b = cast(in[1], wide), zero = like(b, 0);
  const auto quotient = [&](const Tensor& rest, DType t) {
    const Tensor q = mul(cast(rest, DType::F64), recip(cast(b, DType::F64)));
    return cast(add(q, where(less_than(q, like(q, 0)), like(q, -0.5), like(q, 0.5))), t);
  };
  const Tensor q = quotient(a, wide), rest = cast(add(a, negate(mul(q, b))), DType::I64);
  const Tensor exact = add(q, cast(quotient(rest, DType::I64), wide));
  return cast(where(equal(b, zero), zero, exact), in[0].dtype());
}

Tensor define_pow(std::span<const Tensor> in) {
  const Tensor &a = in[0], &b = in[1];
  if (!is_float(a.dtype())) {  // by squaring; a negative exponent gives 1, -1 or 0
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
  // 2^(b log2|a|), with the sign from b's parity; a root of a negative number is NaN (log2 of -1)
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

// Extracts each bit from a remainder.
Tensor define_and(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::Bool) return mul(a, b);
  const DType wide = unsigned_of(a.dtype());
  const int bits = static_cast<int>(8 * size_of(wide));
  const Tensor x = cast(a, wide), y = cast(b, wide);
  const auto bit = [&](const Tensor& t, int k) {
    const Tensor low = k + 1 < bits ? mod(t, like(t, std::exp2(k + 1))) : t;
    return not_(less_than(low, like(t, std::exp2(k))));
  };
  Tensor sum = like(x, 0);
  for (int k = 0; k < bits; ++k) sum = add(sum, mul(cast(and_(bit(x, k), bit(y, k)), wide), like(sum, std::exp2(k))));
  return cast(sum, a.dtype());
}

// Subtracts the bits set in both operands, which the sum counts twice.
Tensor define_or(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::Bool) return add(a, b);
  return add(add(a, b), negate(bitwise_and(a, b)));
}
Tensor define_xor(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::Bool) return not_(equal(a, b));
  return add(add(a, b), mul(bitwise_and(a, b), like(a, -2)));
}

struct FloatFormat {
  int fraction, least;  // bits of the fraction; the exponent of the smallest normal number
  bool infinite;        // has infinities
  double scale() const { return std::exp2(fraction); }
  double highest_field() const { return 3 - 2 * least; }  // the exponent field of infinity
};
FloatFormat format_of(DType t) { return {info(t).digits - 1, info(t).least_exponent, t != DType::F8E4M3FN}; }

// Finds |x| = y 2^e with y in [1, 2) by comparisons with powers of two. Every NaN maps to one bit pattern.
Tensor bits_of_float(const Tensor& x) {
  const FloatFormat f = format_of(x.dtype());
  const DType to = unsigned_of(x.dtype());
  const Tensor a = cast(x, DType::F64), zero = like(a, 0);
  Tensor y = maximum(a, negate(a)), e = zero;
  const auto scale_if = [&](const Tensor& condition, int power) {
    const Tensor by = mul(cast(condition, DType::F64), like(a, power));
    y = mul(y, exp2(by)), e = add(e, negate(by));
  };
  scale_if(less_than(y, like(y, 1)), 1022);
  scale_if(less_than(y, like(y, 1)), 52);
  for (int power = 512; power > 0; power /= 2) scale_if(not_(less_than(y, like(y, std::exp2(power)))), -power);
  const Tensor top = maximum(e, like(e, f.least));
  const Tensor digits = mul(mul(y, exp2(add(e, negate(top)))), like(y, f.scale()));
  const Tensor finite =
      add(mul(cast(add(top, like(top, -f.least)), to), full_like(cast(zero, to), f.scale())), cast(digits, to));
  const Tensor infinity = like(finite, f.highest_field() * f.scale());
  const Tensor nan = like(finite, f.highest_field() * f.scale() + (f.infinite ? f.scale() / 2 : f.scale() - 1));
  const Tensor bits = where(is_nan(a), nan, where(equal(y, like(y, kInf)), infinity, finite));
  const Tensor negative = or_(less_than(a, zero), less_than(recip(a), zero));  // recip detects -0
  return add(bits, mul(cast(negative, to), like(bits, std::exp2(8 * size_of(to) - 1))));
}

// NaN is produced as log2(-1).
Tensor float_of_bits(const Tensor& u, DType to) {
  const FloatFormat f = format_of(to);
  const Tensor unit = like(u, f.scale()), fraction = mod(u, unit);
  const Tensor field = mod(div(u, unit), like(u, f.highest_field() + 1));
  const auto number = [](const Tensor& t) { return cast(t, DType::F64); };
  const Tensor digits = number(fraction), normal = number(less_than(like(u, 0), field)), one = like(digits, 1);
  const auto minus_if = [&](const Tensor& c) { return add(one, mul(number(c), like(one, -2))); };
  const Tensor power = add(add(number(field), negate(normal)), like(one, f.least - f.fraction));
  const Tensor size = mul(add(digits, mul(normal, like(one, f.scale()))), exp2(power));
  const Tensor nan = and_(less_than(like(u, f.highest_field() - 1), field),
                          less_than(like(u, f.infinite ? 0 : f.scale() - 2), fraction));
  const Tensor negative = not_(less_than(u, like(u, std::exp2(8 * size_of(u.dtype()) - 1))));
  return cast(mul(add(size, log2(minus_if(nan))), minus_if(negative)), to);
}

Tensor define_bitcast(const Tensor& x, DType to) {
  const DType bits = unsigned_of(to);
  const Tensor u = is_float(x.dtype()) ? bits_of_float(x) : cast(x, bits);
  return is_float(to) ? float_of_bits(u, to) : cast(u, to);
}

// Rounding the product may lose 2^-24 |x| of the result.
Tensor define_exp(const Tensor& x) { return exp2(mul(x, like(x, std::numbers::log2e))); }

// sin(2 x) / (2 sin x) keeps its digits near zeros for any size of x. It is NaN if 2 x overflows. Near x = 0 the cosine
// rounds to 1 and the quotient would be 0 / 0; `where` needs finite operands on both branches.
Tensor define_cos(const Tensor& x) {
  const DType t = x.dtype();
  const double one_below = t == DType::F64 ? 0x1p-27 : t == DType::F32 ? 0x1p-13 : is_f8(t) ? 0x1p-3 : 0x1p-7;
  const Tensor one = like(x, 1), is_one = less_than(mul(x, x), like(x, one_below * one_below));
  const Tensor y = where(is_one, one, x), sine = sin(y);
  return where(is_one, one, div(sin(add(y, y)), add(sine, sine)));
}

// Differs for infinities, which give NaN where `where` is not exact.
Tensor define_floor(const Tensor& x) {
  const Tensor zero = like(x, 0), whole = add(x, negate(mod(x, like(x, 1))));
  const Tensor below = where(less_than(x, whole), add(whole, like(x, -1)), whole);
  const Tensor infinite = less_than(like(x, info(x.dtype()).largest), maximum(x, negate(x)));
  return where(infinite, x, where(equal(below, zero), mul(x, zero), below));
}

// The number below, or the next one if that is nearer, or as near and even.
Tensor define_round(const Tensor& x) {
  const Tensor zero = like(x, 0), below = floor(x), rest = add(x, negate(below)), half = like(x, 0.5);
  const Tensor odd = not_(equal(mod(below, like(x, 2)), zero));
  const Tensor up = or_(less_than(half, rest), and_(equal(rest, half), odd));
  const Tensor whole = where(up, add(below, like(x, 1)), below);
  return where(equal(whole, zero), mul(x, zero), whole);
}

// Builds a definition; `to` is the element type of the result.
using Define = Tensor (*)(std::span<const Tensor> in, DType to);
struct Definition {
  Op op;
  Define define;
};
constexpr Definition kDefinitions[] = {
    {Op::Where, [](std::span<const Tensor> in, DType) { return define_where(in); }},
    {Op::Maximum, [](std::span<const Tensor> in, DType) { return define_maximum(in); }},
    {Op::Minimum, [](std::span<const Tensor> in, DType) { return define_minimum(in); }},
    {Op::Div, [](std::span<const Tensor> in, DType) { return define_div(in); }},
    {Op::Pow, [](std::span<const Tensor> in, DType) { return define_pow(in); }},
    {Op::Equal, [](std::span<const Tensor> in, DType) { return define_equal(in); }},
    {Op::Exp, [](std::span<const Tensor> in, DType) { return define_exp(in[0]); }},
    {Op::Cos, [](std::span<const Tensor> in, DType) { return define_cos(in[0]); }},
    {Op::Floor, [](std::span<const Tensor> in, DType) { return define_floor(in[0]); }},
    {Op::Round, [](std::span<const Tensor> in, DType) { return define_round(in[0]); }},
    {Op::BitAnd, [](std::span<const Tensor> in, DType) { return define_and(in[0], in[1]); }},
    {Op::BitOr, [](std::span<const Tensor> in, DType) { return define_or(in[0], in[1]); }},
    {Op::BitXor, [](std::span<const Tensor> in, DType) { return define_xor(in[0], in[1]); }},
    {Op::Bitcast, [](std::span<const Tensor> in, DType to) { return define_bitcast(in[0], to); }},
};
consteval bool every_composite_is_defined() {
  std::size_t k = 0;
  for (const OpInfo& row : kOps)
    if (row.kind == Kind::Elementwise && !row.has(kPrimitive) &&
        (k >= std::size(kDefinitions) || kDefinitions[k++].op != row.op))
      return false;
  return k == std::size(kDefinitions);
}
static_assert(every_composite_is_defined(),
              "each elementwise operation that is no primitive has a definition, in order");

}  // namespace

std::vector<Tensor> define_all(const Node& n, std::span<const Tensor> in) {
  const OpScope scope(n.where.known() ? n.where : Location{__FILE__, __LINE__, ""});
  if (n.op == Op::Composite) return n.composite->define(n.attributes, in);
  for (const Definition& d : kDefinitions)
    if (d.op == n.op) return {d.define(in, n.dtype)};
  check(false, "not a composite");
  return {};
}

}  // namespace lc
