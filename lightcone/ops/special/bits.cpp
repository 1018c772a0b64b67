// Bits and divisors of integers.
#include "lightcone/ops/internal.h"

#include <algorithm>
#include <cmath>
#include "lightcone/ops/special/special.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

Pair integers(const Operand& a, const Operand& b, const char* op, bool bools) {
  const Pair p = promoted(a, b, op);
  if (is_float(p.a.dtype()) || (p.a.dtype() == DType::Bool && !bools))
    throw Error(op, str_cat("is for integers", bools ? " and bool" : "", ", not ", name(p.a.dtype())));
  return p;
}
int bits_of(DType t) { return static_cast<int>(8 * size_of(t)); }

// Applies f to integers as unsigned numbers of the same size; the result has the type of `a`.
template <class F>
Tensor of_bits(const Operand& a, const char* op, const F& f) {
  const OpScope scope(op, a.at);
  if (!is_integer(a->dtype())) throw Error(op, str_cat("is for integers, not ", name(a->dtype())));
  return prim::cast(f(prim::cast(a, unsigned_of(a->dtype()))), a->dtype());
}
// Repeats a byte in each byte of the type.
Tensor bytes_like(const Tensor& a, std::uint64_t byte) {
  return full_like(a, Scalar(byte * 0x0101010101010101u & ~std::uint64_t{0} >> (64 - bits_of(a.dtype()))));
}
Tensor times_power(const Tensor& a, int k) {  // the sign bit's power is a negative number
  const bool sign = !is_unsigned(a.dtype()) && k == bits_of(a.dtype()) - 1;
  return prim::mul(a, full_like(a, sign ? -std::exp2(k) : std::exp2(k)));
}
Tensor over_power(const Tensor& a, int k) { return prim::div(a, full_like(a, std::exp2(k))); }

Tensor ones_in(Tensor u) {  // H. S. Warren, "Hacker's Delight", 2002, chapter 5: sums of neighbours
  const auto low = [](const Tensor& t, std::uint64_t byte) { return prim::bitwise_and(t, bytes_like(t, byte)); };
  u = prim::add(u, neg(low(over_power(u, 1), 0x55)));
  u = prim::add(low(u, 0x33), low(over_power(u, 2), 0x33));
  u = low(prim::add(u, over_power(u, 4)), 0x0f);
  return over_power(prim::mul(u, bytes_like(u, 0x01)), bits_of(u.dtype()) - 8);
}

}  // namespace

Tensor bitwise_not(Operand a) {
  LC_SCOPE("bitwise_not");
  if (is_float(a->dtype())) throw Error("bitwise_not", str_cat("is for integers and bool, not ", name(a->dtype())));
  if (a->dtype() == DType::Bool) return logical_not(a);
  return prim::bitwise_xor(a, full_like(a, -1));
}
Tensor bitwise_and(Operand a, Operand b) {
  LC_SCOPE("bitwise_and");
  const Pair p = integers(a, b, "bitwise_and", true);
  return prim::bitwise_and(p.a, p.b);
}
Tensor bitwise_or(Operand a, Operand b) {
  LC_SCOPE("bitwise_or");
  const Pair p = integers(a, b, "bitwise_or", true);
  return prim::bitwise_or(p.a, p.b);
}
Tensor bitwise_xor(Operand a, Operand b) {
  LC_SCOPE("bitwise_xor");
  const Pair p = integers(a, b, "bitwise_xor", true);
  return prim::bitwise_xor(p.a, p.b);
}

namespace {
std::optional<double> number_in(const Tensor& t) {  // the value if all elements are one constant
  const View view = t.view();
  const auto pads = [](const Move& m) { return m.kind == MoveKind::Pad; };
  if (t.node().op != Op::Constant || std::any_of(view.moves().begin(), view.moves().end(), pads)) return std::nullopt;
  return t.node().value;
}
// `x` shifted by `places` if in [0, bits), else `beyond`. A constant takes one step, a tensor one per bit of the count.
// step(x, k) shifts by k.
template <class F>
Tensor shifted(Tensor x, const Tensor& places, const Tensor& beyond, const F& step) {
  const int bits = bits_of(x.dtype());
  const Tensor n = prim::cast(places, unsigned_of(places.dtype()));  // negative counts become large
  if (const auto number = number_in(places))
    return *number < 0 || *number >= bits ? beyond : step(x, static_cast<int>(*number));
  for (int k = 1; k < bits; k *= 2) {
    const Tensor bit = prim::bitwise_and(n, full_like(n, k));
    x = prim::where(prim::equal(bit, full_like(n, 0)), x, step(x, k));
  }
  return prim::where(prim::less_than(n, full_like(n, bits)), x, beyond);
}
// Promotes the operands; a constant count becomes a constant in the promoted type.
Pair shift_operands(const Operand& a, const Operand& places, const char* op) {
  const Pair p = integers(a, places, op, false);
  const auto number = number_in(places);
  return number ? Pair{p.a, full_like(p.b, *number)} : p;
}
}  // namespace

Tensor bitwise_left_shift(Operand a, Operand places) {
  LC_SCOPE("bitwise_left_shift");
  const Pair p = shift_operands(a, places, "bitwise_left_shift");
  return shifted(p.a, p.b, full_like(p.a, 0), times_power);
}
// Unsigned shifts are divisions. Signed numbers are first offset by half of their range, and the quotient is offset
// back.
Tensor bitwise_right_shift(Operand a, Operand places) {
  LC_SCOPE("bitwise_right_shift");
  const Pair p = shift_operands(a, places, "bitwise_right_shift");
  const DType t = p.a.dtype();
  if (is_unsigned(t)) return shifted(p.a, p.b, full_like(p.a, 0), over_power);
  const int top = bits_of(t) - 1;
  const Tensor sign = prim::where(prim::less_than(p.a, full_like(p.a, 0)), full_like(p.a, -1), full_like(p.a, 0));
  return shifted(p.a, p.b, sign, [&](const Tensor& x, int k) {
    const Tensor up = add(prim::cast(x, unsigned_of(t)), std::exp2(top));
    return prim::cast(add(over_power(up, k), -std::exp2(top - k)), t);
  });
}

Tensor bitcast(Operand a, DType to) {
  LC_SCOPE("bitcast");
  return prim::bitcast(a, to);
}
Tensor population_count(Operand a) { return of_bits(a, "population_count", ones_in); }
Tensor count_leading_zeros(Operand a) {
  return of_bits(a, "count_leading_zeros", [](Tensor u) {
    for (int k = 1; k < bits_of(u.dtype()); k *= 2) u = prim::bitwise_or(u, over_power(u, k));
    return ones_in(bitwise_not(u));
  });
}

namespace {
// Splits a finite nonzero number into a mantissa in [0.5, 1) and its exponent.
std::pair<Tensor, Tensor> fields(const Tensor& a) {
  const bool f64 = a.dtype() == DType::F64;
  const DType type = f64 ? DType::F64 : DType::F32, word = f64 ? DType::I64 : DType::I32;
  const int digits = f64 ? 52 : 23, half = f64 ? 1022 : 126, up = f64 ? 54 : 30;  // IEEE 754; `up` lifts subnormals
  const Tensor x = prim::cast(a, type), is_small = prim::less_than(abs(x), full_like(x, std::exp2(-half)));
  const Tensor normal = prim::where(is_small, mul(x, std::exp2(up)), x);
  const Tensor field = over_power(bitcast(abs(normal), word), digits),
               below = prim::add(neg(field), full_like(field, half));
  const Tensor mantissa = bitcast(prim::add(bitcast(normal, word), times_power(below, digits)), type);
  const Tensor lifted = prim::where(is_small, full_like(field, up), full_like(field, 0));
  return {mantissa, neg(prim::add(below, lifted))};
}
}  // namespace

std::pair<Tensor, Tensor> frexp(Operand a) {
  LC_SCOPE("frexp");
  const Tensor x = as_float(a);
  const auto [mantissa, exponent] = fields(x);
  const Tensor same = logical_or(prim::equal(x, full_like(x, 0)), logical_not(isfinite(x)));
  const auto slope = [](const Tensor& x, const Tensor&) { return ldexp(full_like(x, 1), neg(frexp(x).second)); };
  return {with_derivative(prim::where(same, x, prim::cast(mantissa, x.dtype())), x, slope),
          prim::cast(prim::where(same, full_like(exponent, 0), exponent), DType::I32)};
}

namespace {
// The larger remainder shrinks by the golden ratio in each step: G. Lamé, 1844.
Tensor greatest_divisor(const Pair& p) {
  Tensor x = p.a, y = p.b;
  const Tensor zero = full_like(x, 0);
  const int steps = static_cast<int>(std::ceil(bits_of(x.dtype()) * 1.4405)) + 1;
  for (int k = 0; k < steps; ++k) {
    const Tensor done = prim::equal(y, zero);
    const Tensor rest = prim::where(done, zero, prim::mod(x, y));
    x = prim::where(done, x, y), y = rest;
  }
  return prim::where(prim::less_than(x, zero), neg(x), x);
}
}  // namespace

Tensor gcd(Operand a, Operand b) {
  LC_SCOPE("gcd");
  return greatest_divisor(integers(a, b, "gcd", false));
}
Tensor lcm(Operand a, Operand b) {
  LC_SCOPE("lcm");
  const Pair p = integers(a, b, "lcm", false);
  const Tensor g = greatest_divisor(p), zero = full_like(g, 0), none = prim::equal(g, zero);
  const Tensor t = prim::mul(prim::div(p.a, prim::where(none, full_like(g, 1), g)), p.b);
  return prim::where(none, zero, prim::where(prim::less_than(t, zero), neg(t), t));
}

}  // namespace lc
