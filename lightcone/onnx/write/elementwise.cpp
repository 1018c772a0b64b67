// Elementwise operations, and constants.
#include <cmath>
#include <numbers>

#include "lightcone/base/error.h"
#include "lightcone/onnx/write/translate.h"

namespace lc::onnx {
namespace {

bool near(double a, double b) { return std::abs(a - b) <= 1e-7 * std::abs(b); }

bool is_whole_type(std::string_view element) { return is_integer(dtype_of_element(element)); }

Ref everywhere(Emitter& e, std::int64_t v, const Type& type, Ref like) {
  const DType d = dtype_of_element(type.element);
  std::vector<std::byte> bytes(size_of(d));
  store_i64(bytes.data(), d, 0, v);
  return e.spread(e.splat({true, type.element, {}}, std::move(bytes)), {}, type, e.list_of(like));
}

void one_operation(Translator& t, const Operation& o, std::string_view op, OutAttributes attributes = {}) {
  std::vector<Ref> in;
  for (std::size_t k = 0; k < o.operands.size(); ++k) in.push_back(t.in(o, k));
  t.result(o, t.emitter().elementwise(op, std::move(in), t.result_type(o), std::move(attributes)));
}

void constant(Translator& t, const Operation& o) {
  const stablehlo::Attribute& v = attribute(o, "value");
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  if (v.splat) t.result(o, e.splat(type, v.data));
  else t.result(o, e.value(e.constant(type.element, type.shape, v.data), type));
}

// x * c: of a logarithm to the base 2 it may be another logarithm, and of a sum over windows their average.
void multiply(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  for (const std::size_t k : {0, 1}) {
    const auto by = e.number(t.in(o, k));
    if (!by || !is_float(dtype_of_element(type.element))) continue;
    const Ref x = t.in(o, 1 - k);
    if (const auto l = t.log2_of.find(x); l != t.log2_of.end() && near(*by, std::numbers::ln2))
      return t.result(o, e.elementwise("Log", {l->second}, type));
    if (const auto a = t.averages.find(x); a != t.averages.end() && near(*by * a->second.by, 1))
      return t.result(o, a->second.x);
    one_operation(t, o, "Mul");
    t.scaled[t[o.results[0]]] = {x, *by};
    return;
  }
  for (const std::size_t k : {0, 1})
    if (const auto y = softmax(t, t.in(o, k), t.in(o, 1 - k), type)) return t.result(o, *y);
  one_operation(t, o, "Mul");
}

// The processor traps where the smallest integer is divided by -1.
void divide(Translator& t, const Operation& o, bool rest) {
  Emitter& e = t.emitter();
  const std::string_view op = rest ? "Mod" : "Div";
  OutAttributes attributes;
  if (rest) attributes.push_back({"fmod", std::int64_t{1}});
  const Type& type = t.result_type(o);
  const Ref x = t.in(o, 0), y = t.in(o, 1);
  const auto by = e.number(y);
  const bool may_trap = (type.element == "i32" || type.element == "i64") && !(by && *by != -1);
  if (!may_trap) return one_operation(t, o, op, std::move(attributes));
  if (type.element == "i32") {
    Type wide = type;
    wide.element = "i64";
    const Ref q = e.elementwise(op, {e.convert(x, "i64"), e.convert(y, "i64")}, wide, std::move(attributes));
    return t.result(o, e.convert(q, "i32"));
  }
  const auto whole = [&](std::int64_t v) { return everywhere(e, v, type, y); };
  Type mask = type;
  mask.element = "i1";
  const Ref traps = e.elementwise("Equal", {y, whole(-1)}, mask);
  const Ref q = e.elementwise(op, {x, e.elementwise("Where", {traps, whole(1), y}, type, {}, 1)}, type, attributes);
  const Ref special = rest ? whole(0) : e.elementwise("Sub", {whole(0), x}, type);
  t.result(o, e.elementwise("Where", {traps, special, q}, type, {}, 1));
}

// A logical operation of bools, or one of the bits of integers.
void of_bits(Translator& t, const Operation& o, std::string_view bools, std::string_view bits) {
  const bool of_bools = t.result_type(o).element == "i1";
  if (!of_bools && t.emitter().opset() < 18) throw Error("export_onnx", str_cat(bits, " of integers needs opset 18"));
  one_operation(t, o, of_bools ? bools : bits);
}

void compare(Translator& t, const Operation& o) {
  const std::string& direction = attribute(o, "comparison_direction").text;
  if (direction == "LT") return one_operation(t, o, "Less");
  if (direction == "GT") return one_operation(t, o, "Greater");
  if (direction == "GE") return one_operation(t, o, "GreaterOrEqual");
  one_operation(t, o, "Equal");
  if (direction == "EQ") return;
  check(direction == "NE", "a comparison that the writer does not make");
  t.result(o, t.emitter().elementwise("Not", {t[o.results[0]]}, t.result_type(o)));
}

void select(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  if (t.result_type(o).element != "i1") {
    t.result(o, e.elementwise("Where", {t.in(o, 0), t.in(o, 1), t.in(o, 2)}, t.result_type(o), {}, 1));
    return;
  }
  Type bytes = t.result_type(o);
  bytes.element = "ui8";
  const Ref y =
      e.elementwise("Where", {t.in(o, 0), e.convert(t.in(o, 1), "ui8"), e.convert(t.in(o, 2), "ui8")}, bytes, {}, 1);
  t.result(o, e.convert(y, "i1"));
}

void convert(Translator& t, const Operation& o) {
  const Ref x = t.in(o, 0);
  const std::string& to = t.result_type(o).element;
  if (const auto n = t.extents.find(x); n != t.extents.end() && to == "i64")
    return t.result(o, t.emitter().value(n->second, t.result_type(o)));
  t.result(o, t.emitter().convert(x, to));
}

void bitcast(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const std::string from = e.element(t.in(o, 0)), to = t.result_type(o).element;
  if (e.opset() >= 26) return t.result(o, e.bitcast(t.in(o, 0), to));
  if (!is_whole_type(from) || !is_whole_type(to))
    throw Error("export_onnx", "the bits of a floating number need opset 26 (BitCast)");
  t.result(o, e.convert(t.in(o, 0), to));
}

// a + b, or a - c if b is c times -1.
void add(Translator& t, const Operation& o) {
  const auto negated = [&](std::size_t k) {
    const auto s = t.scaled.find(t.in(o, k));
    return s != t.scaled.end() && s->second.by == -1 ? s->second.x : -1;
  };
  const std::size_t k = negated(1) >= 0 ? 1 : 0;
  if (const Ref x = negated(k); x >= 0)
    t.result(o, t.emitter().elementwise("Sub", {t.in(o, 1 - k), x}, t.result_type(o)));
  else one_operation(t, o, "Add");
  t.added[t[o.results[0]]] = {t.in(o, 0), t.in(o, 1)};
}

void exp(Translator& t, const Operation& o, Ref x) {
  const Ref y = t.emitter().elementwise("Exp", {x}, t.result_type(o));
  t.exp_of[y] = x;
  t.result(o, y);
}

// 2^x, or e^y if x is y log2 e.
void exp2(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Ref x = t.in(o, 0);
  if (const auto s = t.scaled.find(x); s != t.scaled.end() && near(s->second.by, std::numbers::log2e))
    return exp(t, o, s->second.x);
  const DType d = dtype_of_element(e.element(x));
  std::vector<std::byte> two(size_of(d));
  store_f64(two.data(), d, 0, 2);
  t.result(o, e.elementwise("Pow", {e.splat({true, e.element(x), {}}, two), x}, t.result_type(o)));
}

void log2(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Ref x = t.in(o, 0);
  const DType d = dtype_of_element(e.element(x));
  std::vector<std::byte> by(size_of(d));
  store_f64(by.data(), d, 0, std::numbers::log2e);
  const Ref log = e.elementwise("Log", {x}, t.result_type(o));
  const Ref y = e.elementwise("Mul", {log, e.splat({true, e.element(x), {}}, by)}, t.result_type(o));
  t.log2_of[y] = x;
  t.result(o, y);
}

// Pow of integers says nothing of overflow, so powers are products, by the bits of the exponent. A negative exponent
// gives 0 unless the base is 1 or -1.
void power_of_integers(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  if (e.opset() < 18) throw Error("export_onnx", "a power of integers needs opset 18 (BitwiseAnd)");
  const Type& result = t.result_type(o);
  Type type = result, mask = result;
  type.element = "i64", mask.element = "i1";
  const DType d = dtype_of_element(result.element);
  Ref base = e.convert(t.in(o, 0), "i64");
  const Ref first = base, n = e.convert(t.in(o, 1), "i64");
  const auto whole = [&](std::int64_t v) { return everywhere(e, v, type, n); };
  const auto is_bit = [&](int k) {
    const Ref bit = e.elementwise("BitwiseAnd", {n, whole(std::int64_t{1} << k)}, type);
    return e.elementwise("Not", {e.elementwise("Equal", {bit, whole(0)}, mask)}, mask);
  };
  const int bits = static_cast<int>(8 * size_of(d)) - (is_unsigned(d) ? 0 : 1);
  Ref all = whole(1);
  for (int k = 0; k < bits; ++k) {
    const Ref more = e.elementwise("Mul", {all, base}, type);
    all = e.elementwise("Where", {is_bit(k), more, all}, type, {}, 1);
    if (k + 1 < bits) base = e.elementwise("Mul", {base, base}, type);
  }
  if (!is_unsigned(d)) {
    const Ref odd = e.elementwise("Where", {is_bit(0), whole(-1), whole(1)}, type, {}, 1);
    const Ref is_one = e.elementwise("Equal", {first, whole(1)}, mask);
    const Ref is_other = e.elementwise("Equal", {first, whole(-1)}, mask);
    const Ref other = e.elementwise("Where", {is_other, odd, whole(0)}, type, {}, 1);
    const Ref inverse = e.elementwise("Where", {is_one, whole(1), other}, type, {}, 1);
    all = e.elementwise("Where", {e.elementwise("Less", {n, whole(0)}, mask), inverse, all}, type, {}, 1);
  }
  t.result(o, e.convert(all, result.element));
}

void power(Translator& t, const Operation& o) {
  if (is_whole_type(t.result_type(o).element)) return power_of_integers(t, o);
  one_operation(t, o, "Pow");
}

void maximum(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  for (const std::size_t k : {0, 1})
    if (e.number(t.in(o, k)) == 0.0 && is_float(dtype_of_element(t.result_type(o).element)))
      return t.result(o, e.elementwise("Relu", {t.in(o, 1 - k)}, t.result_type(o)));
  one_operation(t, o, "Max");
}

void clamp(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  t.result(o, e.elementwise("Clip", {t.in(o, 1), t.in(o, 0), t.in(o, 2)}, t.result_type(o)));
}

constexpr Entry kEntries[] = {
    {"stablehlo.constant", constant},
    {"stablehlo.add", add},
    {"stablehlo.subtract", [](Translator& t, const Operation& o) { one_operation(t, o, "Sub"); }},
    {"stablehlo.multiply", multiply},
    {"stablehlo.divide", [](Translator& t, const Operation& o) { divide(t, o, false); }},
    {"stablehlo.remainder", [](Translator& t, const Operation& o) { divide(t, o, true); }},
    {"stablehlo.maximum", maximum},
    {"stablehlo.minimum", [](Translator& t, const Operation& o) { one_operation(t, o, "Min"); }},
    {"stablehlo.power", power},
    {"stablehlo.and", [](Translator& t, const Operation& o) { of_bits(t, o, "And", "BitwiseAnd"); }},
    {"stablehlo.or", [](Translator& t, const Operation& o) { of_bits(t, o, "Or", "BitwiseOr"); }},
    {"stablehlo.xor", [](Translator& t, const Operation& o) { of_bits(t, o, "Xor", "BitwiseXor"); }},
    {"stablehlo.not", [](Translator& t, const Operation& o) { one_operation(t, o, "Not"); }},
    {"stablehlo.shift_right_logical",
     [](Translator& t, const Operation& o) {
       one_operation(t, o, "BitShift", {{"direction", std::string("RIGHT")}});
     }},
    {"stablehlo.sine", [](Translator& t, const Operation& o) { one_operation(t, o, "Sin"); }},
    {"stablehlo.cosine", [](Translator& t, const Operation& o) { one_operation(t, o, "Cos"); }},
    {"stablehlo.sqrt", [](Translator& t, const Operation& o) { one_operation(t, o, "Sqrt"); }},
    {"stablehlo.floor", [](Translator& t, const Operation& o) { one_operation(t, o, "Floor"); }},
    {"stablehlo.round_nearest_even", [](Translator& t, const Operation& o) { one_operation(t, o, "Round"); }},
    {"stablehlo.exponential", [](Translator& t, const Operation& o) { exp(t, o, t.in(o, 0)); }},
    {"lightcone.exp2", exp2},
    {"lightcone.log2", log2},
    {"lightcone.recip",
     [](Translator& t, const Operation& o) {
       one_operation(t, o, "Reciprocal");
       t.recip_of[t[o.results[0]]] = t.in(o, 0);
     }},
    {"stablehlo.compare", compare},
    {"stablehlo.select", select},
    {"stablehlo.clamp", clamp},
    {"stablehlo.convert", convert},
    {"stablehlo.bitcast_convert", bitcast},
    {"stablehlo.optimization_barrier", [](Translator& t, const Operation& o) { t.result(o, t.in(o, 0)); }},
};

}  // namespace

std::span<const Entry> elementwise_entries() { return kEntries; }

}  // namespace lc::onnx
