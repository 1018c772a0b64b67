#include <algorithm>
#include <cmath>
#include <optional>

#include "lightcone/io/jinja/functions.h"
#include "lightcone/io/jinja/texts.h"
#include "lightcone/io/printable.h"

namespace lc::jinja {
namespace {

[[noreturn]] void too_large() { fail("a whole number goes beyond 64 bits"); }

Value whole_power(std::int64_t a, std::int64_t b) {
  if (b < 0) {
    if (a == 0) fail("division by zero");
    return {std::pow(static_cast<double>(a), static_cast<double>(b))};
  }
  std::int64_t r = 1;
  if (a == 0 || a == 1 || a == -1) return {b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a};
  for (std::int64_t i = 0; i < b; ++i)
    if (__builtin_mul_overflow(r, a, &r)) too_large();
  return {r};
}

Value whole_arithmetic(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  bool over = false;
  if (op == "+") over = __builtin_add_overflow(a, b, &r);
  else if (op == "-") over = __builtin_sub_overflow(a, b, &r);
  else if (op == "*") over = __builtin_mul_overflow(a, b, &r);
  else if (op == "**") return whole_power(a, b);
  else if (b == 0) fail("division by zero");
  else if (op == "/") return {static_cast<double>(a) / static_cast<double>(b)};
  else if (b == -1) over = op == "//" && __builtin_sub_overflow(std::int64_t{0}, a, &r);
  else if (op == "//") r = a / b - (a % b != 0 && (a < 0) != (b < 0));
  else r = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
  if (over) too_large();
  return {r};
}

Value real_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return {a + b};
  if (op == "-") return {a - b};
  if (op == "*") return {a * b};
  if (op == "**") return {std::pow(a, b)};
  if (b == 0) fail("division by zero");
  if (op == "/") return {a / b};
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (op == "%") return {rest};
  return {std::round((a - rest) / b)};
}

Value repeated(Meter& m, const Value& what, std::int64_t times) {
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(0, times));
  if (const std::string* s = what.text()) {
    m.make(n, s->size());
    std::string out;
    for (std::size_t i = 0; i < n && !s->empty(); ++i) out += *s;
    return text(m, std::move(out));
  }
  std::vector<Value> all;
  const std::vector<Value>& items = what.list()->items;
  m.make(n, sizeof(Value) * items.size());
  for (std::size_t i = 0; i < n && !items.empty(); ++i) all.insert(all.end(), items.begin(), items.end());
  return list(m, std::move(all), what.list()->tuple);
}

// Converts an index into a sequence of n items, negative from the end, to a position; nullopt if it is out of range.
std::optional<std::size_t> place(const Value& key, std::size_t n) {
  if (!is_whole(key)) return {};
  std::int64_t i = whole(key);
  if (i < 0) i += static_cast<std::int64_t>(n);
  if (i < 0 || i >= static_cast<std::int64_t>(n)) return {};
  return static_cast<std::size_t>(i);
}

}  // namespace

Value binary(Meter& m, std::string_view op, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (v->undefined()) fail(*v->as<Undefined>()->why);
  if (is_whole(a) && is_whole(b)) return whole_arithmetic(op, whole(a), whole(b));
  if (is_number(a) && is_number(b)) return real_arithmetic(op, real(a), real(b));
  if (op == "+" && a.text() && b.text()) {
    m.make(a.text()->size() + b.text()->size());
    return text(m, *a.text() + *b.text());
  }
  if (op == "+" && a.list() && b.list() && a.list()->tuple == b.list()->tuple) {
    m.make(a.list()->items.size() + b.list()->items.size(), sizeof(Value));
    std::vector<Value> all = a.list()->items;
    all.insert(all.end(), b.list()->items.begin(), b.list()->items.end());
    return list(m, std::move(all), a.list()->tuple);
  }
  if (op == "*" && (a.text() || a.list()) && is_whole(b)) return repeated(m, a, whole(b));
  if (op == "*" && (b.text() || b.list()) && is_whole(a)) return repeated(m, b, whole(a));
  if (op == "%" && a.text()) fail("texts formatted by % are not supported: join them by ~");
  fail("unsupported operand types for ", op, ": '", type_name(a), "' and '", type_name(b), "'");
}

Value negative(const Value& v, bool minus) {
  if (const auto* d = v.as<double>()) return {minus ? -*d : *d};
  if (v.undefined()) fail(*v.as<Undefined>()->why);
  if (!is_whole(v)) fail("a number has a sign, '", type_name(v), "' has none");
  return minus ? whole_arithmetic("-", 0, whole(v)) : Value{whole(v)};
}

Value item(Meter& m, const Value& of, const Value& key) {
  if (of.undefined()) fail(*of.as<Undefined>()->why);
  if (const Dict* d = of.dict()) {
    if (const Value* v = d->find(m, key)) return *v;
  } else if (const List* l = of.list()) {
    if (const auto i = place(key, l->items.size())) return l->items[*i];
  } else if (const std::string* s = of.text()) {
    if (is_whole(key)) {
      const std::vector<std::string_view> all = characters(m, *s);
      if (const auto i = place(key, all.size())) return text(m, std::string(all[*i]));
    }
  }
  const std::string shown = key.text() ? in_quotes(*key.text()) : is_number(key) ? str(m, key) : type_name(key);
  return undefined(str_cat(type_name(of), " object has no element ", shown));
}

Value member(Meter& m, const Value& of, std::string_view name) {
  if (of.undefined()) fail(*of.as<Undefined>()->why);
  m.make(name.size() + 64);
  if (const Dict* d = of.dict())
    for (const auto& [key, value] : d->items) {
      m.step();
      if (key.text() && *key.text() == name) return value;
    }
  return undefined(
      str_cat("'", of.none() ? "None" : str_cat(type_name(of), " object"), "' has no attribute ", in_quotes(name)));
}

Value slice(Meter& m, const Value& of, const Value* begin, const Value* end, const Value* step) {
  if (of.undefined()) fail(*of.as<Undefined>()->why);
  const auto given = [](const Value* v) { return v && !v->none(); };
  const std::int64_t by = given(step) ? whole(*step) : 1;
  if (by == 0) fail("slice step cannot be zero");
  if (!of.text() && !of.list()) fail("'", type_name(of), "' cannot be sliced");
  const std::vector<std::string_view> letters = of.text() ? characters(m, *of.text()) : std::vector<std::string_view>();
  const auto n = static_cast<std::int64_t>(of.text() ? letters.size() : of.list()->items.size());
  const auto clamp = [&](const Value* v, std::int64_t otherwise) {
    if (!given(v)) return otherwise;
    std::int64_t i = whole(*v);
    if (i < 0) i = std::max<std::int64_t>(i, -n - 1) + n;
    return by > 0 ? std::clamp<std::int64_t>(i, 0, n) : std::clamp<std::int64_t>(i, -1, n - 1);
  };
  const std::int64_t from = clamp(begin, by > 0 ? 0 : n - 1), to = clamp(end, by > 0 ? n : -1);
  std::string out;
  std::vector<Value> items;
  for (std::int64_t i = from; by > 0 ? i < to : i > to;) {
    m.make(of.text() ? 4 : sizeof(Value));
    if (of.text()) out += letters[static_cast<std::size_t>(i)];
    else items.push_back(of.list()->items[static_cast<std::size_t>(i)]);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return of.text() ? text(m, std::move(out)) : list(m, std::move(items), of.list()->tuple);
}

}  // namespace lc::jinja
