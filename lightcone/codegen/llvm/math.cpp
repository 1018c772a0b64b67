#include "lightcone/codegen/llvm/math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "lightcone/base/error.h"

namespace lc::codegen::llvm {
namespace {

Value fma(const Value& a, const Operand& b, const Operand& c) { return a.text->call("fma", {a, b.of(a), c.of(a)}); }
Value round_even(const Value& a) { return a.text->call("rint", {a}); }
Value fabs(const Value& a) { return a.text->call("fabs", {a}); }
Value to(const Value& v, Type t) { return v.text->cast(is_real(v.type) ? "fptosi" : "sitofp", v, t); }
Value widen(const Value& bit, Type t) { return bit.text->cast("zext", bit, t); }
Value is_nan(const Value& v) { return v != v; }
Value two_to(const Value& n) { return bits((n + 127) << 23, Type::Float); }

// Evaluates p(x) by Horner's rule, highest coefficient first.
Value polynomial(const Value& x, std::initializer_list<double> c) {
  Value p = x.text->number(x.type, *c.begin());
  for (auto k = c.begin() + 1; k != c.end(); ++k) p = fma(p, x, *k);
  return p;
}

// Returns whether all lanes of a vector of bits are set.
Value all(const Value& v) {
  if (v.lanes == 1) return v;
  const std::string number = "i" + std::to_string(v.lanes);
  const Value mask =
      v.text->emit(Type::I1, 1, "bitcast " + v.text->spell(Type::I1, v.lanes) + " " + v.name + " to " + number);
  return v.text->emit(Type::I1, 1, "icmp eq " + number + " " + mask.name + ", -1");
}

// Returns `fast` if it is right in all lanes, otherwise the result of slow().
template <class Slow>
Value unless_far(const Value& near, const Value& fast, const Slow& slow) {
  Text& text = *fast.text;
  const std::string before = text.label(), far = "slow" + text.fresh(), done = "done" + text.fresh();
  text.branch(all(near), done, far);
  text.begin_block(far);
  const Value z = slow();
  const std::string behind = text.label();
  text.jump(done);
  text.begin_block(done);
  return text.emit(fast.type, fast.lanes,
                   "phi " + text.spell(fast.type, fast.lanes) + " [ " + fast.name + ", %" + before + " ], [ " + z.name +
                       ", %" + behind + " ]");
}

// Coefficients of 2^f and e^f for |f| <= 1/2 and ln 2 / 2, highest power first.
constexpr std::initializer_list<double> kExp2 = {1.535336188319500e-4f,
                                                 1.339887440266574e-3f,
                                                 9.618437357674640e-3f,
                                                 5.550332471162809e-2f,
                                                 2.402264791363012e-1f,
                                                 6.931472028550421e-1f,
                                                 1.0f};
constexpr std::initializer_list<double> kExp = {
    1.38204114e-3f, 8.36867746e-3f, 4.16682698e-2f, 0.166665211f, 0.49999994f, 1.0f, 1.0f};

// As the prelude's functions for sixteen lanes: vreduceps computes x - round(x), vscalefps multiplies by 2^round(x) in
// one step.
bool by_avx512(const Value& x) { return x.lanes == 16 && x.text->target().avx512; }
Value rounded_part(const char* name, const Value& x) {  // rounds to integers; `name`: "reduce" or "rndscale"
  const std::string vector = x.text->spell(Type::Float, 16);
  return x.text->avx512(name, {vector, "i32", vector, "i16", "i32"}, {x.name, "8", "zeroinitializer", "-1", "4"});
}
// 0 where x < low: as the prelude says, such results would take microcode.
Value scaled(const Value& p, const Value& n, const Value& x, double low) {
  const std::string vector = p.text->spell(Type::Float, 16);
  const Value power = select(x < low, -std::numeric_limits<double>::infinity(), n);
  return p.text->avx512("scalef", {vector, vector, vector, "i16", "i32"},
                        {p.name, power.name, "zeroinitializer", "-1", "4"});
}

// Returns p * 2^n in two steps, so that subnormal results are right.
Value scaled_twice(const Value& p, const Value& n) {
  const Value e = to(n, Type::I32), h = e >> 1, g = e - h;
  return p * two_to(h) * two_to(g);
}
// Clamps to +-`most`, whose bits are `bits_of_most`; a NaN, too.
Value within(const Value& x, std::int32_t bits_of_most) {
  const Value b = bits(x, Type::I32), m = b & 0x7fffffff;
  const Value near = select(m < bits_of_most, m, m.text->integer(Type::I32, bits_of_most));
  return bits((b & -2147483648.0) | near, Type::Float);
}
// Adding this number rounds to an integer in the last bits. If no result leaves the range of normal numbers, these bits
// can be added to the exponent, as in the prelude's functions for AVX2.
constexpr double kRound = 12582912.0;
Value exponent_moved(const Value& p, const Value& rounded) {
  return bits(bits(p, Type::I32) + (bits(rounded, Type::I32) << 23), Type::Float);
}

// The exponential of x, which is `fast` for sizes up to `near` and 0 below `low`, as of masked scores.
Value exponential(const Value& x, const Value& fast, double near, double low, Value (*any)(const Value&)) {
  const Value is_near = fabs(x) <= near;
  return unless_far(is_near, fast, [&] {
    const Value zero = x < low;
    return unless_far(is_near | zero, select(zero, 0.0, fast), [&] { return any(x); });
  });
}

Value any_exp2f(const Value& x) {
  const Value c = within(x, 0x43200000), n = round_even(c);  // clamp to 160
  return select(is_nan(x), x, scaled_twice(polynomial(c - n, kExp2), n));
}
Value exp2f(const Value& x) {
  if (by_avx512(x)) return scaled(polynomial(rounded_part("reduce", x), kExp2), rounded_part("rndscale", x), x, -150);
  if (x.lanes == 1) return any_exp2f(x);
  const Value rounded = x + kRound, f = x - (rounded - kRound);
  return exponential(x, exponent_moved(polynomial(f, kExp2), rounded), 125, -150, any_exp2f);
}

Value rest_of_ln2(const Value& x, const Value& n) { return fma(n, -1.42860682e-6f, fma(n, -0.693145752f, x)); }
Value any_expf(const Value& x) {
  const Value c = within(x, 0x42e00000), turns = c * 1.44269504f;  // clamp to 112
  const Value n = by_avx512(x) ? rounded_part("rndscale", turns) : round_even(turns);
  const Value p = polynomial(rest_of_ln2(c, n), kExp);
  return select(is_nan(x), x, by_avx512(x) ? scaled(p, n, x, -104) : scaled_twice(p, n));
}
Value expf(const Value& x) {
  if (by_avx512(x) || x.lanes == 1) return any_expf(x);
  const Value rounded = x * 1.44269504f + kRound, n = rounded - kRound;
  return exponential(x, exponent_moved(polynomial(rest_of_ln2(x, n), kExp), rounded), 86, -104, any_expf);
}

Value two_to_wide(const Value& n) { return bits((n.text->cast("sext", n, Type::I64) + 1023) << 52, Type::Double); }

Value expd(const Value& x) {
  Text& text = *x.text;
  const Value end = select(x < 0.0, -760.0, text.number(x.type, 760));
  const Value c = select(fabs(x) < 760.0, x, end);  // also for a NaN
  const Value n = round_even(c * 1.4426950408889634);
  const Value f = fma(n, -1.9082149292705877e-10, fma(n, -0.69314718036912382, c));
  const Value p =
      polynomial(f, {1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07,
                     2.7557319223985893e-06, 2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889,
                     0.008333333333333333, 0.041666666666666664, 0.16666666666666666, 0.5, 1.0, 1.0});
  const Value e = to(n, Type::I32), h = e >> 1, g = e - h;
  return select(is_nan(x), x, p * two_to_wide(h) * two_to_wide(g));
}

Value log2f(const Value& x) {
  const Value tiny = x < 1.17549435e-38f;
  const Value b = bits(select(tiny, x * 8388608.0, x), Type::I32);
  const Value whole = bits((b & 0x7fffff) | 0x3f800000, Type::Float);
  const Value big = whole > 1.41421356f;
  const Value m = select(big, whole * 0.5, whole);
  const Value shift = select(tiny, 127 + 23, b.text->integer(Type::I32, 127));
  const Value e = (shift_right(b, 23) & 255) - shift + widen(big, Type::I32);
  const Value f = m - 1.0;
  const Value q = polynomial(f, {-0.116073072f, 0.186761156f, -0.188350841f, 0.204186648f, -0.239943504f, 0.288616329f,
                                 -0.360682815f, 0.480896562f, -0.721347511f, 0.442695051f});
  const Value r = fma(f, q, f) + to(e, Type::Float);
  const Value special = select(x == 0.0, -kInf, select(x < 0.0, kNaN, x));
  return select((x > 0.0) & (x < kInf), r, special);
}

// Returns sine or cosine from the remainder to a multiple of pi, or to an odd multiple of pi / 2. If any lane is too
// large for the reduction, libm computes all.
Value wave(const Value& x, bool cosine) {
  Text& text = *x.text;
  const Value small = fabs(x) < 1e6;
  const Value wide = text.cast("fpext", select(small, x, text.number(x.type, 0)), Type::Double);
  const Value turns = wide * 0.31830988618379067154, n = round_even(cosine ? turns - 0.5 : turns);
  const Value off = cosine ? n + 0.5 : n;
  const Value r = fma(off, -1.2246467991473532072e-16, fma(off, -3.14159265358979311600, wide)), s = r * r;
  const Value p = polynomial(s, {-2.3888674620752786e-08, 2.7525371392890543e-06, -0.00019840867961886158,
                                 0.0083333311067544259, -0.16666666626107082});
  const Value v = fma(r * s, p, r);
  const Value negated = (to(n, Type::I32) & 1) != (cosine ? 1.0 : 0.0);
  const Value y = text.cast("fptrunc", select(negated, text.number(v.type, -0.0) - v, v), Type::Float);
  const Value either = unless_far(small, y, [&] { return select(small, y, text.call(cosine ? "cos" : "sin", {x})); });
  return cosine ? either : select(x == 0.0, x, either);
}

Value maxf(const Value& a, const Value& b) {
  const Value m = select((a > b) | is_nan(a), a, b);  // otherwise b is a NaN or not less
  return select(a == b, bits(bits(a, Type::I32) & bits(b, Type::I32), Type::Float), m);
}
Value minf(const Value& a, const Value& b) {
  const Value m = select((a < b) | is_nan(a), a, b);
  return select(a == b, bits(bits(a, Type::I32) | bits(b, Type::I32), Type::Float), m);
}
Value extreme(const Value& a, const Value& b, bool maximum) {
  switch (a.type) {
    case Type::Float: return maximum ? maxf(a, b) : minf(a, b);
    case Type::I1: return maximum ? a | b : a & b;
    case Type::Double: {
      const Value& zero = maximum ? a : b;  // if both are zeros, the result is b if this one is negative
      const Value zeros = (zero == 0.0) & (bits(zero, Type::I64) < 0);
      const Value equal = select(zeros, b, a);
      const Value ordered =
          maximum ? select(a > b, a, select(b > a, b, equal)) : select(a < b, a, select(b < a, b, equal));
      return select(is_nan(a), a, select(is_nan(b), b, ordered));
    }
    default: return maximum ? select(a < b, b, a) : select(b < a, b, a);
  }
}

// Quotient or remainder without a fault: 0 for a divisor of 0, and wrapping for -1.
Value divide(const Value& a, const Value& b, bool remainder) {
  Text& t = *a.text;
  if (a.type == Type::I1) return remainder ? (a & 0) : a & b;
  const Value zero = b == 0;
  if (is_unsigned(a.type)) return select(zero, 0, t.binary(remainder ? "urem" : "udiv", a, select(zero, 1, b)));
  const Value minus = b == -1;
  const Value r = t.binary(remainder ? "srem" : "sdiv", a, select(zero | minus, 1, b));
  return select(zero, 0, select(minus, remainder ? a & 0 : t.number(a.type, 0) - a, r));
}

// Power by squaring, until no lane has exponent bits left.
Value integer_pow(const Value& base, const Value& exponent) {
  Text& t = *base.text;
  const int lanes = std::max(base.lanes, exponent.lanes);
  const Value a = t.spread(base, lanes), b = t.spread(exponent, lanes);
  const bool is_signed = !is_unsigned(a.type);
  const std::string r = t.variable(a.type, lanes), x = t.variable(a.type, lanes), e = t.variable(a.type, lanes);
  t.set(r, t.spread(t.integer(a.type, 1), lanes));
  t.set(x, a);
  t.set(e, is_signed ? select(b < 0, 0, b) : b);
  const std::string head = "pow" + t.fresh(), body = "step" + t.fresh(), done = "done" + t.fresh();
  t.jump(head);
  t.begin_block(head);
  const Value left = t.get(e, a.type, lanes);
  t.branch(all(left == 0), done, body);
  t.begin_block(body);
  const Value so_far = t.get(r, a.type, lanes), square = t.get(x, a.type, lanes);
  t.set(r, select((left & 1) != 0, so_far * square, so_far));
  t.set(x, square * square);
  t.set(e, shift_right(left, 1));
  t.jump(head);
  t.begin_block(done);
  const Value power = t.get(r, a.type, lanes);
  if (!is_signed) return power;
  const Value sign = select((b & 1) != 0, -1, t.integer(a.type, 1));
  return select(b < 0, select(a == 1, 1, select(a == -1, sign, a & 0)), power);
}

Value pow(const Value& a, const Value& b) {
  Text& t = *a.text;
  switch (a.type) {
    case Type::I1: return a | (b ^ 1);
    case Type::Float: {
      const Value wide = pow(t.cast("fpext", a, Type::Double), t.cast("fpext", b, Type::Double));
      return t.cast("fptrunc", wide, Type::Float);
    }
    case Type::Double: {
      const Value root = select(a == -kInf, kInf, t.call("sqrt", {a + 0.0}));
      return select(b == 0.5, root, t.call("pow", {a, b}));
    }
    default: return integer_pow(a, b);
  }
}

Value odd_float(const Value& v) {  // rounds to odd, so that rounding twice equals rounding once
  Text& t = *v.text;
  const Value f = t.cast("fptrunc", v, Type::Float), back = t.cast("fpext", f, Type::Double);
  const Value u = bits(f, Type::I32);
  const Value moved = select(fabs(back) < fabs(v), u + 1, u - 1);
  const Value inexact = (v == v) & (back != v) & ((u & 1) == 0) & ((moved & 0x7fffffff) <= 0x7f800000);
  return bits(select(inexact, moved, u), Type::Float);
}

// Rounds an integer of 32 or 64 bits to odd, for types of at most 16 digits.
Value odd_whole(const Value& v) {
  Text& t = *v.text;
  const bool wide = width(v.type) == 64, negates = !is_unsigned(v.type);
  const Value below = v < 0;
  Value m = negates ? select(below, v * -1, v) : v, scale = t.number(Type::Float, 1.0);
  m.type = wide ? Type::U64 : Type::U32;
  for (const int places : {24, 16, 8}) {
    if (!wide && places > 8) continue;
    const Value far = shift_right(m, places + 16) != 0;
    const Value lost = t.cast("zext", (m & ((1 << places) - 1)) != 0, m.type);
    m = select(far, shift_right(m, places) | lost, m);
    scale = select(far, scale * std::exp2(places), scale);
  }
  const Value f = t.cast("uitofp", m, Type::Float) * scale;
  return negates ? select(below, f * -1.0, f) : f;
}

Value saturated(const Value& v, DType dtype) {
  Text& t = *v.text;
  const Type to = register_type(dtype);
  const std::int64_t lo = info(dtype).lowest, hi = info(dtype).highest;
  const Value inside = t.cast(is_unsigned(to) ? "fptoui" : "fptosi", v, to);
  const Value below = select(v <= static_cast<double>(lo), t.integer(to, lo), inside);
  return select(is_nan(v), 0, select(v >= to_f64(hi, dtype), t.integer(to, hi), below));
}

}  // namespace

Type register_type(DType t) {
  switch (t) {
    case DType::F64: return Type::Double;
    case DType::I8: return Type::I8;
    case DType::I16: return Type::I16;
    case DType::I32: return Type::I32;
    case DType::I64: return Type::I64;
    case DType::U8: return Type::U8;
    case DType::U16: return Type::U16;
    case DType::U32: return Type::U32;
    case DType::U64: return Type::U64;
    case DType::Bool: return Type::I1;
    default: return Type::Float;
  }
}
Type stored_type(DType t) {
  if (is_half(t)) return Type::I16;
  if (is_f8(t)) return Type::U8;
  return t == DType::Bool ? Type::U8 : register_type(t);
}

Value constant(Text& text, double v, DType t) {
  std::uint64_t raw = 0;
  store_f64(&raw, t, 0, v);
  if (is_float(t)) return text.real(register_type(t), load_f64(&raw, t, 0));
  return text.integer(register_type(t), load_i64(&raw, t, 0));
}

Value apply(Op op, DType result, const Value& a, const Value& b, const Value& c) {
  const bool narrow = a.type == Type::Float;
  const auto libm = [](const char* name, const Value& v) { return v.text->call(name, {v}); };
  const auto compute = [&]() -> Value {
    switch (op) {
      case Op::Exp2: return narrow ? exp2f(a) : libm("exp2", a);
      case Op::Log2: return narrow ? log2f(a) : libm("log2", a);
      case Op::Exp: return narrow ? expf(a) : expd(a);
      case Op::Sin: return narrow ? wave(a, false) : libm("sin", a);
      case Op::Cos: return narrow ? wave(a, true) : libm("cos", a);
      case Op::Sqrt: return libm("sqrt", a);
      case Op::Recip: return a.text->number(a.type, 1) / a;
      case Op::Add:
      case Op::SumReduce: return a.type == Type::I1 ? a | b : is_real(a.type) ? a.text->binary("fadd", a, b) : a + b;
      case Op::Mul: return a.type == Type::I1 ? a & b : is_real(a.type) ? a.text->binary("fmul", a, b) : a * b;
      case Op::Div: return is_real(a.type) ? a / b : divide(a, b, false);
      case Op::Mod: return is_real(a.type) ? a.text->binary("frem", a, b) : divide(a, b, true);
      case Op::Floor: return libm("floor", a);
      case Op::Round: return libm("rint", a);
      case Op::Pow: return pow(a, b);
      case Op::Maximum:
      case Op::MaxReduce: return extreme(a, b, true);
      case Op::Minimum: return extreme(a, b, false);
      case Op::LessThan: return a < b;
      case Op::Equal: return a == b;
      case Op::Where: return select(a, b, c);
      case Op::BitAnd: return a & b;
      case Op::BitOr: return a | b;
      case Op::BitXor: return a ^ b;
      default: return {};
    }
  };
  const Value v = compute();
  check(v.known(), "an operation that LLVM code cannot be written for");
  return info(op).types == Types::Compare || op == Op::Where ? v : rounded(v, result);
}

Value exact_mod(const Value& a, double by) {
  Text& t = *a.text;
  const Value whole = t.call("trunc", {a * t.number(a.type, 1 / by)}) * t.number(a.type, by);
  return t.call("copysign", {a - whole, a});
}

Value mul_add(const Value& a, const Value& b, const Value& c) { return a.text->call("fmuladd", {a, b, c}); }

namespace {

// 8-bit floats, as in the prelude's functions (codegen/c/f8.cpp).
struct F8 {
  int places, normal, bias;  // position of the fraction in an f32; bits of the smallest normal number; bias
  double unit, largest;      // the smallest and the largest number
};
F8 f8(DType t) {
  const DTypeInfo& i = info(t);
  const int normal = (127 + i.least_exponent) << 23;
  return {24 - i.digits, normal, normal - (1 << 23), std::exp2(i.least_exponent - i.digits + 1), i.largest};
}
Value sign_of(const Value& from, const Value& to) {  // `to` has no sign yet
  return bits(bits(to, Type::I32) | (bits(from, Type::I32) & Operand(INT32_MIN)), Type::Float);
}
Value nan_of(const Value& v) { return v.text->number(Type::Float, std::numeric_limits<double>::quiet_NaN()); }

Value widened_f8(const Value& v, DType t) {
  const F8 f = f8(t);
  Text& text = *v.text;
  const Value u = text.cast("zext", v, Type::I32), a = u & 0x7f;
  const Value tiny = text.cast("sitofp", a, Type::Float) * f.unit, usual = bits((a << f.places) + f.bias, Type::Float);
  Value w = select(bits(usual, Type::I32) < f.normal, tiny, usual);
  if (t == DType::F8E4M3FN) w = select(a == 0x7f, nan_of(v), w);
  else w = select(a < 0x7c, w, bits(((a & 3) << f.places) | 0x7f800000, Type::Float));
  return bits(bits(w, Type::I32) | ((u & 0x80) << 24), Type::Float);
}
Value rounded_f8(const Value& v, DType t) {
  const F8 f = f8(t);
  const Value u = bits(v, Type::I32), e = u & 0x7f800000;
  const Value low = select(e < f.normal, Operand(f.normal), e),
              near = select(low < 0x49000000, low, v.text->integer(Type::I32, 0x49000000));
  const Value big = bits(near + (f.places << 23), Type::Float), r = (fabs(v) + big) - big;
  const double beyond = t == DType::F8E4M3FN ? f.largest : std::numeric_limits<double>::infinity();
  return sign_of(v, select(r > f.largest, beyond, r));
}
Value narrowed_f8(const Value& v, DType t) {  // `v` is rounded already
  const F8 f = f8(t);
  const Value u = bits(v, Type::I32), a = u & 0x7fffffff;
  const Value tiny = v.text->cast("fptosi", bits(a, Type::Float) * (1 / f.unit), Type::I32);
  Value m = select(a < f.normal, tiny, shift_right(a - f.bias, f.places));
  if (t == DType::F8E5M2) m = select(a < 0x47800000, m, v.text->integer(Type::I32, 0x7c));
  m = select(is_nan(v), Operand(t == DType::F8E5M2 ? 0x7e : 0x7f), m);
  return v.text->cast("trunc", m | (shift_right(u, 24) & 0x80), Type::U8);
}

}  // namespace

Value widened(const Value& v, DType t) {
  Text& text = *v.text;
  if (is_f8(t)) return widened_f8(v, t);
  if (t == DType::F16) return text.cast("fpext", bits(v, Type::Half), Type::Float);
  if (t == DType::BF16) return bits(text.cast("zext", v, Type::I32) << 16, Type::Float);
  return t == DType::Bool ? v != 0 : v;
}

Value narrowed(const Value& v, DType t) {
  Text& text = *v.text;
  if (t == DType::F16) return bits(text.cast("fptrunc", v, Type::Half), Type::I16);
  if (t == DType::Bool) return text.cast("zext", v, Type::U8);
  if (is_f8(t)) return narrowed_f8(v, t);
  if (t != DType::BF16) return v;
  const Value u = bits(v, Type::I32), high = shift_right(u, 16);
  const Value near = shift_right(u + 0x7fff + (high & 1), 16);
  return text.cast("trunc", select(is_nan(v), high | 0x40, near), Type::I16);
}

Value rounded(const Value& v, DType t) {
  if (is_f8(t)) return rounded_f8(v, t);
  return is_half(t) ? widened(narrowed(v, t), t) : v;
}

Value convert(const Value& v, DType from, DType to) {
  if (from == to) return v;
  Text& text = *v.text;
  const Type target = register_type(to);
  if (to == DType::Bool) return v != 0;
  if (!is_float(to) && is_float(from)) return saturated(v, to);
  if (!is_float(to)) {
    if (width(target) < width(v.type)) return text.cast("trunc", v, target);
    if (width(target) == width(v.type)) return {v.text, v.name, target, v.lanes};  // reinterpreted
    return text.cast(is_unsigned(v.type) ? "zext" : "sext", v, target);
  }
  if (is_narrow(to) && !is_float(from) && size_of(from) >= 4) return rounded(odd_whole(v), to);
  if (!is_float(from)) return rounded(text.cast(is_unsigned(v.type) ? "uitofp" : "sitofp", v, target), to);
  if (from == DType::F64 && is_narrow(to)) return rounded(odd_float(v), to);
  if (v.type == target) return rounded(v, to);
  return rounded(text.cast(to == DType::F64 ? "fpext" : "fptrunc", v, target), to);
}

Value bitcast(const Value& v, DType from, DType to) {
  const Value as_stored = narrowed(v, from);
  return widened(bits(as_stored, stored_type(to)), to);
}

Value key(const Value& v) {
  const Value b = bits(v, Type::I32);
  return select(is_nan(v), 0x7fffffff, b ^ ((b >> 31) & 0x7fffffff));
}
Value unkey(const Value& k) { return bits(k ^ ((k >> 31) & 0x7fffffff), Type::Float); }

}  // namespace lc::codegen::llvm
