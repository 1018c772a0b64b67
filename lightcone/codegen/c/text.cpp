#include "lightcone/codegen/c/text.h"

#include <cmath>

#include "lightcone/base/numbers.h"

namespace lc::codegen {

std::string_view suffix(DType t) {
  switch (t) {
    case DType::F64: return "_d";
    case DType::I8: return "_c";
    case DType::I16: return "_s";
    case DType::I32: return "_i";
    case DType::I64: return "_l";
    case DType::U8: return "_b";
    case DType::U16: return "_us";
    case DType::U32: return "_u";
    case DType::U64: return "_ul";
    case DType::Bool: return "_t";
    default: return "_f";
  }
}
std::string loaded_as(DType t, const std::string& v) {
  if (t == DType::F16) return "lc_f16_to_f32(" + v + ")";
  if (t == DType::BF16) return "lc_bf16_to_f32(" + v + ")";
  if (is_f8(t)) return "lc_" + std::string(name(t)) + "_to_f32(" + v + ")";
  if (t == DType::Bool) return "(int)(" + v + " != 0)";
  return v;
}
namespace {
std::string_view short_name(DType t) { return t == DType::Bool ? "bool" : name(t); }
}  // namespace

std::string_view register_type(DType t) {
  switch (t) {
    case DType::Bool: return "int";  // as wide as a float, so that comparisons stay in vectors
    case DType::F16:
    case DType::BF16:
    case DType::F8E4M3FN:
    case DType::F8E5M2: return "float";
    default: return info(t).c;
  }
}

std::string number(double v, DType t) {
  const auto quote = [&](std::string s) { return "(" + s + ")"; };
  if (!is_float(t)) {
    std::int64_t i = 0;
    std::uint64_t raw = 0;
    store_f64(&raw, t, 0, v);
    i = load_i64(&raw, t, 0);
    if (t == DType::U64) return quote(std::to_string(static_cast<std::uint64_t>(i)) + "UL");
    if (i == INT64_MIN) return "(-9223372036854775807L - 1)";
    return quote(std::to_string(i) + (t == DType::I64 ? "L" : t == DType::U32 ? "U" : ""));
  }
  std::uint64_t raw = 0;
  store_f64(&raw, t, 0, v);
  v = load_f64(&raw, t, 0);
  const bool wide = t == DType::F64;
  if (std::isnan(v)) return wide ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")";
  if (std::isinf(v)) return quote(std::string(v < 0 ? "-" : "") + (wide ? "__builtin_inf()" : "__builtin_inff()"));
  return quote(formatted(wide ? "%a" : "%af", v));
}

std::string spell(Op op, DType operand, const std::string& a, const std::string& b, const std::string& c) {
  std::string s;
  for (std::size_t k = 0; k < info(op).c.size(); ++k) {
    const char x = info(op).c[k];
    if (x == '(' && k > 0) s += suffix(operand);
    if (x == '$') {
      const char which = info(op).c[++k];
      s += which == '0' ? a : which == '1' ? b : c;
    } else {
      s += x;
    }
  }
  return s;
}

std::string spell_mul_add(DType operand, const std::string& a, const std::string& b, const std::string& c) {
  return "lc_mul_add" + std::string(suffix(operand)) + "(" + a + ", " + b + ", " + c + ")";
}

std::string spell_exact_mod(DType operand, const std::string& a, const std::string& b) {
  return "lc_mod_by" + std::string(suffix(operand)) + "(" + a + ", " + b + ")";
}

std::string spell_vector(Op op, const std::string& to, const std::string& from) {
  const std::string_view c = info(op).c;
  return std::string(c.substr(0, c.find('('))) + "_v(" + to + ", " + from + ");";
}

std::string rounded(const std::string& v, DType t) {
  return is_narrow(t) ? "lc_round_" + std::string(name(t)) + "(" + v + ")" : v;
}

std::string converted(const std::string& v, DType from, DType to) {
  if (from == to) return v;
  const auto wide = [](DType t) { return is_narrow(t) ? DType::F32 : t; };
  if (from == DType::F64 && is_f8(to)) return rounded("lc_odd_f(" + v + ")", to);
  if (from == DType::F64 && is_half(to)) {
    const std::string n(name(to));
    return "lc_" + n + "_to_f32(lc_f64_to_" + n + "(" + v + "))";
  }
  if (to == DType::Bool) return "(int)((" + v + ") != 0)";
  if (is_narrow(to) && !is_float(from) && size_of(from) >= 4)
    return rounded("lc_odd" + std::string(suffix(from)) + "(" + v + ")", to);
  if (is_float(to)) return rounded("(" + std::string(register_type(to)) + ")(" + v + ")", to);
  if (is_float(from))
    return "lc_" + std::string(short_name(wide(from))) + "_to_" + std::string(short_name(to)) + "(" + v + ")";
  return "(" + std::string(register_type(to)) + ")(" + v + ")";
}

std::string bits_as(const std::string& v, DType from, DType to) {
  const auto cast = [](DType t, const std::string& x) { return "(" + std::string(info(t).c) + ")(" + x + ")"; };
  const std::string as_stored = stored(rounded(v, from), from);
  if (is_narrow(to)) return loaded_as(to, cast(unsigned_of(to), as_stored));
  if (!is_narrow(from) && is_float(from))
    return cast(to, from == DType::F64 ? "lc_bits_d(" + v + ")" : "lc_bits(" + v + ")");
  if (!is_float(to)) return cast(to, as_stored);
  return to == DType::F64 ? "lc_double(" + cast(DType::U64, v) + ")" : "lc_float(" + cast(DType::U32, v) + ")";
}

std::string loaded(const std::string& buffer, DType t, const std::string& offset) {
  return loaded_as(t, buffer + "[" + offset + "]");
}

std::string stored(const std::string& v, DType t) {
  if (t == DType::F16) return "lc_f32_to_f16(" + v + ")";
  if (t == DType::BF16) return "(unsigned short)(lc_bits(" + v + ") >> 16)";
  if (is_f8(t)) return "lc_f32_to_" + std::string(name(t)) + "(" + v + ")";
  return v;
}

std::string identity(const Reduction& r) { return r.dtype == DType::Bool ? "0" : number(info(r.op).identity, r.dtype); }

}  // namespace lc::codegen
