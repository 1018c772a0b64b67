// Bits and divisors of integers.
#include "lightcone/ops/internal.h"
#include "lightcone/ops/special/special.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

Pair integers(const Operand& a, const Operand& b, const char* op, bool bools) {
  const Pair p = promoted(a, b, op);
  if (is_float(p.a.dtype()) || (p.a.dtype() == DType::Bool && !bools))
    throw Error(op, cat("is for integers", bools ? " and bool" : "", ", not ", name(p.a.dtype())));
  return p;
}
int bits_of(DType t) { return static_cast<int>(8 * size_of(t)); }

// Bit by bit, each from a remainder: nothing of 64 bits is divided, which would be exact below 2^52 alone.
std::vector<Tensor> define_and(const Attributes&, std::span<const Tensor> in) {
  const Tensor zero = full_like(in[0], 0), one = full_like(in[0], 1);
  const int bits = bits_of(in[0].dtype());
  const bool is_signed = info(in[0].dtype()).lowest < 0;
  const auto bit = [&](const Tensor& t, int k) {
    const Tensor negative = prim::less_than(t, zero);
    if (is_signed && k == bits - 1) return prim::where(negative, one, zero);
    // the last k + 1 bits as a number that is not negative; adding 2^(bits - 1) wraps around
    const bool whole = k >= bits - (is_signed ? 2 : 1);
    const Tensor low = whole ? t : prim::mod(t, full_like(t, std::exp2(k + 1)));
    const double more = is_signed && whole ? -std::exp2(k + 1) : std::exp2(k + 1);
    const Tensor u = is_signed ? prim::where(prim::less_than(low, zero), add(low, more), low) : low;
    return prim::where(prim::less_than(u, full_like(u, std::exp2(k))), zero, one);
  };
  Tensor sum = zero;
  for (int k = 0; k < bits; ++k) {
    const double weight = is_signed && k == bits - 1 ? -std::exp2(k) : std::exp2(k);
    sum = prim::add(sum, prim::mul(prim::mul(bit(in[0], k), bit(in[1], k)), full_like(sum, weight)));
  }
  return {sum};
}

Tensor and_of(const Pair& p) {
  if (p.a.dtype() == DType::Bool) return prim::mul(p.a, p.b);
  return call(builtin::bitwise_and(), {p.a, p.b}, {{"bytes", static_cast<std::int64_t>(size_of(p.a.dtype()))}})[0];
}

}  // namespace

const CompositeRef& builtin::bitwise_and() {
  static const CompositeRef c = std::make_shared<const Composite>(
      Composite{.name = "bitwise_and",
                .arity = 2,
                .infer = [](const Attributes&, std::span<const TensorType> in) -> std::vector<TensorType> {
                  if (!(in[0] == in[1]) || is_float(in[0].dtype) || in[0].dtype == DType::Bool)
                    throw Error("", "needs two operands of one shape and one integer type");
                  return {in[0]};
                },
                .define = define_and});
  return c;
}

Tensor bitwise_not(Operand a) {
  LC_SCOPE("bitwise_not");
  if (is_float(a->dtype())) throw Error("bitwise_not", cat("is for integers and bool, not ", name(a->dtype())));
  if (a->dtype() == DType::Bool) return logical_not(a);
  return add(neg(a), a->dtype() == DType::U8 ? 255 : -1);  // modulo 2^bits
}
Tensor bitwise_and(Operand a, Operand b) {
  LC_SCOPE("bitwise_and");
  return and_of(integers(a, b, "bitwise_and", true));
}
Tensor bitwise_or(Operand a, Operand b) {
  LC_SCOPE("bitwise_or");
  const Pair p = integers(a, b, "bitwise_or", true);
  if (p.a.dtype() == DType::Bool) return prim::add(p.a, p.b);
  return prim::add(prim::add(p.a, p.b), neg(and_of(p)));  // bits that both have were added twice
}
Tensor bitwise_xor(Operand a, Operand b) {
  LC_SCOPE("bitwise_xor");
  const Pair p = integers(a, b, "bitwise_xor", true);
  if (p.a.dtype() == DType::Bool) return logical_xor(p.a, p.b);
  return prim::add(prim::add(p.a, p.b), mul(and_of(p), -2));
}

namespace {
// [0, bits - 1) of the places, 0 for others; and 2 to their power.
struct Shift {
  Tensor inside, power;
};
Shift shift(const Tensor& places, int below) {
  const Tensor zero = full_like(places, 0);
  const Tensor inside =
      logical_and(logical_not(prim::less_than(places, zero)), prim::less_than(places, full_like(places, below)));
  return {inside, prim::pow(full_like(places, 2), prim::where(inside, places, zero))};
}
}  // namespace

Tensor bitwise_left_shift(Operand a, Operand places) {
  LC_SCOPE("bitwise_left_shift");
  const Pair p = integers(a, places, "bitwise_left_shift", false);
  const Shift s = shift(p.b, bits_of(p.a.dtype()));
  return prim::where(s.inside, prim::mul(p.a, s.power), full_like(p.a, 0));
}
Tensor bitwise_right_shift(Operand a, Operand places) {
  LC_SCOPE("bitwise_right_shift");
  const Pair p = integers(a, places, "bitwise_right_shift", false);
  const bool is_signed = info(p.a.dtype()).lowest < 0;
  const Shift s = shift(p.b, bits_of(p.a.dtype()) - (is_signed ? 1 : 0));
  const Tensor zero = full_like(p.a, 0);
  const Tensor all = is_signed ? prim::where(prim::less_than(p.a, zero), full_like(p.a, -1), zero) : zero;
  return prim::where(s.inside, floor_divide(p.a, s.power), all);
}

namespace {
// The larger remainder falls by the golden ratio each step: G. Lamé, 1844.
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
