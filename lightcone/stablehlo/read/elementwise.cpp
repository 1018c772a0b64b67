// Rules for arithmetic, comparisons and functions of single elements, including CHLO's.
#include <cmath>
#include <numbers>

#include "lightcone/ops/special/special.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

// ---- shapes -----------------------------------------------------------------------------------------

// Gives all operands one shape. In a reducer's body, captured or constant scalars meet tensors.
std::vector<Tensor> alike(const Call& c, std::size_t arity) {
  if (c.in.size() != arity) c.refuse(str_cat("takes ", arity, " operands, not ", c.in.size()));
  const Tensor* largest = &c.in[0];
  for (const Tensor& t : c.in)
    if (t.rank() > largest->rank()) largest = &t;
  std::vector<Tensor> r;
  for (const Tensor& t : c.in) r.push_back(to_shape(t, largest->shape()));
  for (const Tensor& t : r)
    if (!(t.shape() == largest->shape()))
      c.refuse(str_cat("shapes differ: ", lc::str(t.shape()), " and ", lc::str(largest->shape())));
  return r;
}

template <Tensor (*F)(Operand)>
std::vector<Tensor> unary(const Call& c) {
  return {F(alike(c, 1)[0])};
}
template <Tensor (*F)(Operand, Operand)>
std::vector<Tensor> binary(const Call& c) {
  const std::vector<Tensor> in = alike(c, 2);
  if (in[0].dtype() != in[1].dtype()) c.refuse("operands have different element types");
  return {F(in[0], in[1])};
}
// Computes halves in f32, like everywhere in lc::, where prim:: leaves this to the caller.
template <Tensor (*F)(Operand)>
std::vector<Tensor> wide(const Call& c) {
  const Tensor x = alike(c, 1)[0];
  if (!is_narrow(x.dtype())) return {F(x)};
  return {prim::cast(F(prim::cast(x, DType::F32)), x.dtype())};
}

// ---- arithmetic ---------------------------------------------------------------------------------------

std::vector<Tensor> subtract(const Call& c) {
  const std::vector<Tensor> in = alike(c, 2);
  if (in[0].dtype() != in[1].dtype()) c.refuse("operands have different element types");
  if (in[0].dtype() == DType::Bool) return {logical_xor(in[0], in[1])};
  return {sub(in[0], in[1])};
}
std::vector<Tensor> negate(const Call& c) { return {neg(alike(c, 1)[0])}; }
std::vector<Tensor> absolute(const Call& c) { return {abs(alike(c, 1)[0])}; }

// NaN and -0 stay as they are.
std::vector<Tensor> sign_of(const Call& c) {
  const Tensor x = alike(c, 1)[0], zero = scalar_like(x, 0);
  if (!is_float(x.dtype())) {
    const Tensor one = scalar_like(x, 1);
    const Tensor below =
        info(x.dtype()).lowest < 0 ? prim::where(prim::less_than(x, zero), scalar_like(x, -1), zero) : zero;
    return {prim::where(prim::less_than(zero, x), one, below)};
  }
  const Tensor above = prim::where(prim::less_than(zero, x), scalar_like(x, 1), x);
  return {prim::where(prim::less_than(x, zero), scalar_like(x, -1), above)};
}

std::vector<Tensor> clamp_between(const Call& c) {
  const std::vector<Tensor> in = alike(c, 3);
  return {prim::minimum(prim::maximum(in[1], in[0]), in[2])};
}

std::vector<Tensor> select_by(const Call& c) {
  const std::vector<Tensor> in = alike(c, 3);
  if (in[0].dtype() != DType::Bool) c.refuse("the condition is not of i1");
  return {prim::where(in[0], in[1], in[2])};
}

// Numbers that f8E4M3FN cannot represent are NaN in StableHLO, whereas prim::cast() saturates.
std::vector<Tensor> convert(const Call& c) {
  const Tensor x = alike(c, 1)[0], y = prim::cast(x, c.dtype());
  if (c.dtype() != DType::F8E4M3FN || x.dtype() == c.dtype()) return {y};
  const Tensor size = abs(x.dtype() == DType::F64 ? x : prim::cast(x, DType::F32));
  return {prim::where(prim::less_than(scalar_like(size, 464), size), scalar_like(y, std::nan("")),
                      y)};  // 464 rounds to 448
}

std::vector<Tensor> power(const Call& c) {
  const std::vector<Tensor> in = alike(c, 2);
  return {pow(in[0], in[1])};
}

// ---- rounding -----------------------------------------------------------------------------------------

Tensor keep_type(const Tensor& x, Tensor (*f)(Operand)) { return is_float(x.dtype()) ? f(x) : x; }
template <Tensor (*F)(Operand)>
std::vector<Tensor> rounding(const Call& c) {
  return {keep_type(alike(c, 1)[0], F)};
}
Tensor to_even(Operand x) { return round(x); }
Tensor away_from_zero(Operand x) {
  const Tensor whole = trunc(x), rest = abs(sub(x.tensor, whole));
  const Tensor one = copysign(scalar_like(x, 1), x);
  return prim::where(lt(rest, 0.5), whole, prim::add(whole, one));
}

// ---- comparisons --------------------------------------------------------------------------------------

std::vector<Tensor> compare(const Call& c) {
  std::vector<Tensor> in = alike(c, 2);
  if (in[0].dtype() != in[1].dtype()) c.refuse("operands have different element types");
  if (c.word("compare_type") == "TOTALORDER" && is_float(in[0].dtype()))
    for (Tensor& t : in) t = total_order(t);
  const std::string d = c.word("comparison_direction");
  const Tensor &a = in[0], &b = in[1];
  if (d == "EQ") return {eq(a, b)};
  if (d == "NE") return {ne(a, b)};
  if (d == "LT") return {lt(a, b)};
  if (d == "LE") return {le(a, b)};
  if (d == "GT") return {gt(a, b)};
  if (d == "GE") return {ge(a, b)};
  c.refuse(str_cat("'", d, "' is not a direction of comparison"));
}

// ---- functions ----------------------------------------------------------------------------------------

// A root by a power, made exact by one step of Newton's method.
Tensor cbrt(Operand a) {
  const Tensor x = a, zero = scalar_like(x, 0), size = abs(x);
  const Tensor y = prim::pow(size, scalar_like(x, 1.0 / 3));
  const Tensor square = prim::mul(y, y), off = prim::div(sub(prim::mul(square, y), size), mul(square, 3.0));
  const Tensor finite = logical_and(prim::less_than(zero, size), prim::less_than(size, scalar_like(x, kInf)));
  const Tensor root = prim::where(finite, sub(y, off), size);
  return prim::where(prim::less_than(x, zero), neg(root), prim::where(prim::equal(x, zero), x, root));
}

Tensor logistic(Operand x) { return sigmoid(x); }
Tensor is_finite(Operand x) { return is_float(x->dtype()) ? isfinite(x) : prim::equal(x, x); }
Tensor erf_inverse(Operand x) { return erfinv(x); }
Tensor square_of(Operand x) { return prim::mul(x, x); }
Tensor is_inf(Operand x) { return isinf(x); }

// e^-|x| I1(x): M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, 9.8.3 and 9.8.4, to 1e-7.
Tensor bessel_i1e(Operand a) {
  const Tensor x = a, size = abs(x);
  const auto horner = [&](const Tensor& t, std::initializer_list<double> lowest_first) {
    Tensor y = scalar_like(t, 0);
    for (const double* k = std::rbegin(lowest_first).base(); k != lowest_first.begin();) y = add(prim::mul(y, t), *--k);
    return y;
  };
  const Tensor small_t = square_of(mul(size, 1 / 3.75));
  const Tensor small =
      prim::mul(size, horner(small_t, {0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411}));
  const Tensor t = prim::div(scalar_like(size, 3.75), clamp_min(size, 3.75));
  const Tensor large = horner(t, {0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967,
                                  -0.02895312, 0.01787654, -0.00420059});
  const Tensor scaled = prim::where(lt(size, 3.75), prim::mul(small, prim::exp(neg(size))),
                                    prim::div(large, sqrt(clamp_min(size, 3.75))));
  return prim::where(lt(x, 0.0), neg(scaled), scaled);
}

std::vector<Tensor> identity(const Call& c) { return c.in; }
std::vector<Tensor> constant(const Call& c) {
  const Attribute* value = c.op.find("value");
  if (!value || value->kind != Attribute::Kind::Dense) c.refuse("has no elements");
  return {c.reader.constant(*value)};
}

// chlo.broadcast_add and similar: broadcasts shapes like NumPy, then applies the operation without the prefix.
std::vector<Tensor> broadcasting(const Call& c) {
  Call wide = c;
  const std::vector<Tensor> in = broadcast_tensors({c.in.begin(), c.in.end()});
  wide.in.assign(in.begin(), in.end());
  return Reader::rule(c.op.name.substr(std::string_view("chlo.broadcast_").size()))(wide);
}

std::vector<Tensor> constant_like(const Call& c) {
  const Attribute* value = c.op.find("value");
  if (!value || c.in.size() != 1) c.refuse("takes a number and one operand");
  if (is_float(c.x().dtype())) return {full_like(c.x(), c.number("value", 0))};
  return {full_like(c.x(), value->integer)};
}

template <int Sign>
Tensor is_infinity(Operand x) {
  return is_float(x->dtype()) ? prim::equal(x, scalar_like(x, Sign * kInf)) : ne(x.tensor, x.tensor);
}

}  // namespace

// Uses the bits as integers, with those of negative numbers inverted: -NaN < -infinity < ... < -0 < +0 < ... < NaN.
Tensor total_order(const Tensor& x) {
  const Tensor bits = bitcast(x, signed_of(x.dtype()));
  const double last = static_cast<double>(8 * size_of(x.dtype()) - 1);
  const Tensor all = bitwise_right_shift(bits, scalar_like(bits, last));  // -1 for negative numbers
  const Tensor low = full_like(bits, info(bits.dtype()).highest);
  return bitwise_xor(bits, bitwise_and(all, low));
}

void add_elementwise(Rules& r) {
  r["stablehlo.add"] = binary<prim::add>;
  r["stablehlo.subtract"] = subtract;
  r["stablehlo.multiply"] = binary<prim::mul>;
  r["stablehlo.divide"] = binary<prim::div>;
  r["stablehlo.remainder"] = binary<prim::mod>;
  r["stablehlo.maximum"] = binary<prim::maximum>;
  r["stablehlo.minimum"] = binary<prim::minimum>;
  r["stablehlo.power"] = power;
  r["stablehlo.atan2"] = binary<lc::atan2>;
  r["stablehlo.negate"] = negate;
  r["stablehlo.abs"] = absolute;
  r["stablehlo.sign"] = sign_of;
  r["stablehlo.clamp"] = clamp_between;
  r["stablehlo.select"] = select_by;
  r["stablehlo.compare"] = compare;
  r["stablehlo.convert"] = convert;
  r["stablehlo.constant"] = constant;
  r["stablehlo.floor"] = rounding<lc::floor>;
  r["stablehlo.ceil"] = rounding<lc::ceil>;
  r["stablehlo.round_nearest_even"] = rounding<to_even>;
  r["stablehlo.round_nearest_afz"] = rounding<away_from_zero>;
  r["stablehlo.exponential"] = unary<lc::exp>;
  r["stablehlo.exponential_minus_one"] = unary<lc::expm1>;
  r["stablehlo.log"] = unary<lc::log>;
  r["stablehlo.log_plus_one"] = unary<lc::log1p>;
  r["stablehlo.logistic"] = unary<logistic>;
  r["stablehlo.tanh"] = unary<lc::tanh>;
  r["stablehlo.tan"] = unary<lc::tan>;
  r["stablehlo.sine"] = unary<lc::sin>;
  r["stablehlo.cosine"] = unary<lc::cos>;
  r["stablehlo.sqrt"] = unary<lc::sqrt>;
  r["stablehlo.rsqrt"] = unary<lc::rsqrt>;
  r["stablehlo.square"] = unary<square_of>;
  r["stablehlo.cbrt"] = wide<cbrt>;
  r["stablehlo.is_finite"] = unary<is_finite>;
  r["stablehlo.optimization_barrier"] = identity;

  r["chlo.constant"] = constant;
  r["chlo.erf"] = unary<lc::erf>;
  r["chlo.erfc"] = unary<lc::erfc>;
  r["chlo.erf_inv"] = unary<erf_inverse>;
  r["chlo.lgamma"] = unary<lc::lgamma>;
  r["chlo.digamma"] = unary<lc::digamma>;
  r["chlo.sinh"] = unary<lc::sinh>;
  r["chlo.cosh"] = unary<lc::cosh>;
  r["chlo.tan"] = unary<lc::tan>;
  r["chlo.asin"] = unary<lc::asin>;
  r["chlo.acos"] = unary<lc::acos>;
  r["chlo.atan"] = unary<lc::atan>;
  r["chlo.asinh"] = unary<lc::asinh>;
  r["chlo.acosh"] = unary<lc::acosh>;
  r["chlo.atanh"] = unary<lc::atanh>;
  r["chlo.square"] = unary<square_of>;
  r["chlo.is_inf"] = unary<is_inf>;
  r["chlo.next_after"] = binary<lc::nextafter>;
  r["chlo.bessel_i1e"] = wide<bessel_i1e>;
  r["chlo.is_pos_inf"] = unary<is_infinity<1>>;
  r["chlo.is_neg_inf"] = unary<is_infinity<-1>>;
  r["chlo.constant_like"] = constant_like;
  for (const char* name :
       {"chlo.broadcast_add", "chlo.broadcast_subtract", "chlo.broadcast_multiply", "chlo.broadcast_divide",
        "chlo.broadcast_remainder", "chlo.broadcast_maximum", "chlo.broadcast_minimum", "chlo.broadcast_power",
        "chlo.broadcast_atan2", "chlo.broadcast_compare", "chlo.broadcast_select", "chlo.broadcast_and",
        "chlo.broadcast_or", "chlo.broadcast_xor", "chlo.broadcast_shift_left", "chlo.broadcast_shift_right_arithmetic",
        "chlo.broadcast_shift_right_logical", "chlo.broadcast_next_after"})
    r[name] = broadcasting;
}

}  // namespace lc::stablehlo
