// Rules for bits: logic, shifts, counts, reinterpretation, and fewer bits of a float.
#include <cmath>

#include "lightcone/ops/special/special.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

std::vector<Tensor> both(const Call& c) {
  if (c.in.size() != 2) c.refuse("takes two operands");
  if (c.in[0].dtype() != c.in[1].dtype()) c.refuse("operands have different element types");
  const Shape s = c.in[c.in[0].rank() < c.in[1].rank()].shape();
  return {to_shape(c.in[0], s), to_shape(c.in[1], s)};
}

template <Tensor (*F)(Operand, Operand)>
std::vector<Tensor> bitwise(const Call& c) {
  const std::vector<Tensor> in = both(c);
  return {F(in[0], in[1])};
}
std::vector<Tensor> invert(const Call& c) { return {bitwise_not(c.x())}; }

// A shift by at least as many places as there are bits leaves zero, whatever the sign.
std::vector<Tensor> shift_left(const Call& c) {
  const std::vector<Tensor> in = both(c);
  return {bitwise_left_shift(in[0], in[1])};
}
std::vector<Tensor> shift_right_arithmetic(const Call& c) {
  const std::vector<Tensor> in = both(c);
  const DType t = in[0].dtype(), as = signed_of(t);
  if (t == as) return {bitwise_right_shift(in[0], in[1])};
  return {bitcast(bitwise_right_shift(bitcast(in[0], as), bitcast(in[1], as)), t)};
}
std::vector<Tensor> shift_right_logical(const Call& c) {
  const std::vector<Tensor> in = both(c);
  const DType t = in[0].dtype(), as = unsigned_of(t);
  if (t == as) return {bitwise_right_shift(in[0], in[1])};
  return {bitcast(bitwise_right_shift(bitcast(in[0], as), bitcast(in[1], as)), t)};
}

std::vector<Tensor> population(const Call& c) { return {prim::cast(population_count(c.x()), c.dtype())}; }
std::vector<Tensor> leading_zeros(const Call& c) { return {prim::cast(count_leading_zeros(c.x()), c.dtype())}; }

// Reinterprets elements. A wider element corresponds to a new last axis of narrower ones, lowest bits first.
std::vector<Tensor> bitcast_convert(const Call& c) {
  const DType from = c.x().dtype(), to = c.dtype();
  if (from == DType::Bool || to == DType::Bool) c.refuse("bits of i1 are not read");
  if (size_of(from) == size_of(to)) return {bitcast(c.x(), to)};
  const DType bits_from = unsigned_of(from), bits_to = unsigned_of(to);
  const Tensor x = bitcast(c.x(), bits_from);
  if (size_of(from) > size_of(to)) {
    const auto n = static_cast<std::int64_t>(size_of(from) / size_of(to));
    Shape s = x.shape();
    s.push_back(n);
    const int last = static_cast<int>(s.size()) - 1;
    const Tensor wide = x.unsqueeze(last).expand(s);
    const Tensor places =
        prim::cast(mul(index_along(c.graph(), s, last), static_cast<std::int64_t>(8 * size_of(to))), bits_from);
    const Tensor low = full_like(wide, (std::int64_t{1} << (8 * size_of(to))) - 1);
    return {bitcast(prim::cast(bitwise_and(bitwise_right_shift(wide, places), low), bits_to), to)};
  }
  if (x.rank() == 0) c.refuse("a scalar has no axis of parts");
  const int last = x.rank() - 1;
  const Tensor wide = prim::cast(x, bits_to);
  const Tensor places = prim::cast(
      mul(index_along(c.graph(), wide.shape(), last), static_cast<std::int64_t>(8 * size_of(from))), bits_to);
  return {bitcast(prim::sum_reduce(bitwise_left_shift(wide, places), last), to)};
}

// Rounds a float to fewer bits of exponent and mantissa, to nearest, ties to even. Too large numbers become infinite,
// those below the smallest normal number 0.
std::vector<Tensor> reduce_precision(const Call& c) {
  const std::int64_t exponent = c.integer("exponent_bits", 0), mantissa = c.integer("mantissa_bits", -1);
  const Tensor x = c.x();
  if (!is_float(x.dtype())) c.refuse("is for floats");
  const int own_mantissa = info(x.dtype()).digits - 1,
            own_exponent = static_cast<int>(8 * size_of(x.dtype())) - own_mantissa - 1;
  if (exponent < 1 || mantissa < 0) c.refuse("a format of no exponent");
  Tensor y = x;
  const DType bits = signed_of(x.dtype());
  if (mantissa < own_mantissa) {
    const std::int64_t drop = own_mantissa - mantissa;
    const Tensor b = bitcast(x, bits);
    const Tensor odd = bitwise_and(bitwise_right_shift(b, full_like(b, drop)), full_like(b, 1));
    const Tensor up = prim::add(b, add(odd, (std::int64_t{1} << (drop - 1)) - 1));
    const Tensor kept = bitwise_and(up, full_like(b, ~((std::int64_t{1} << drop) - 1)));
    // Without a mantissa, NaN has the bits of infinity.
    const Tensor special = mantissa == 0 ? prim::where(isnan(x), scalar_like(x, kInf), x) : x;
    y = prim::where(isfinite(x), bitcast(kept, x.dtype()), special);
  }
  if (exponent < own_exponent) {
    const std::int64_t top = (std::int64_t{1} << (exponent - 1)) - 1;
    // The largest number has a mantissa of all ones below 2^(top + 1).
    const double largest = std::ldexp(2 - std::ldexp(1.0, -static_cast<int>(mantissa)), static_cast<int>(top));
    const double smallest = std::ldexp(1.0, static_cast<int>(1 - top));
    const Tensor size = abs(y), sign = copysign(scalar_like(y, 1), y);
    const Tensor infinite = prim::mul(sign, scalar_like(y, kInf)), zero = prim::mul(sign, scalar_like(y, 0));
    y = prim::where(gt(size, largest), infinite, prim::where(lt(size, smallest), zero, y));
  }
  return {y};
}

// Returns the upper 64 bits of a product of U64, computed from halves of 32 bits.
Tensor upper_half_of_u64(const Tensor& a, const Tensor& b) {
  const auto shifted = [](const Tensor& t) { return bitwise_right_shift(t, scalar_like(t, 32)); };
  const auto low = [](const Tensor& t) { return bitwise_and(t, full_like(t, std::int64_t{0xffffffff})); };
  const Tensor al = low(a), ah = shifted(a), bl = low(b), bh = shifted(b);
  const Tensor cross = prim::mul(al, bh), other = prim::mul(ah, bl);
  const Tensor middle = prim::add(prim::add(shifted(prim::mul(al, bl)), low(cross)), low(other));
  return prim::add(prim::add(prim::mul(ah, bh), shifted(middle)), prim::add(shifted(cross), shifted(other)));
}

// chlo.mulhi: returns the upper half of the bits of a product.
std::vector<Tensor> upper_half(const Call& c) {
  if (c.in.size() != 2 || !is_integer(c.x().dtype()) || c.in[1].dtype() != c.x().dtype())
    c.refuse("is of two integers of one type");
  const Tensor &a = c.x(), &b = c.in[1];
  const DType type = a.dtype();
  if (size_of(type) < 8) {
    const Tensor whole = prim::mul(prim::cast(a, DType::I64), prim::cast(b, DType::I64));
    return {prim::cast(bitwise_right_shift(whole, scalar_like(whole, static_cast<double>(8 * size_of(type)))), type)};
  }
  const Tensor upper = upper_half_of_u64(prim::cast(a, DType::U64), prim::cast(b, DType::U64));
  if (type == DType::U64) return {upper};
  // A negative number, as unsigned bits, is larger by 2^64.
  const auto if_negative = [](const Tensor& x, const Tensor& y) {
    const Tensor zero = scalar_like(x, 0);
    return prim::where(prim::less_than(x, zero), y, zero);
  };
  return {prim::cast(upper, type) - if_negative(a, b) - if_negative(b, a)};
}

}  // namespace

void add_bits(Rules& r) {
  r["chlo.mulhi"] = upper_half;
  r["stablehlo.and"] = bitwise<bitwise_and>;
  r["stablehlo.or"] = bitwise<bitwise_or>;
  r["stablehlo.xor"] = bitwise<bitwise_xor>;
  r["stablehlo.not"] = invert;
  r["stablehlo.shift_left"] = shift_left;
  r["stablehlo.shift_right_arithmetic"] = shift_right_arithmetic;
  r["stablehlo.shift_right_logical"] = shift_right_logical;
  r["stablehlo.popcnt"] = population;
  r["stablehlo.count_leading_zeros"] = leading_zeros;
  r["stablehlo.bitcast_convert"] = bitcast_convert;
  r["stablehlo.reduce_precision"] = reduce_precision;
}

}  // namespace lc::stablehlo
