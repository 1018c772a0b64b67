#include "lightcone/io/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "lightcone/io/jinja/texts.h"
#include "lightcone/io/utf8.h"

namespace lc::jinja {
namespace {

int depth_of(const Value& v) { return v.list() ? v.list()->depth : v.dict() ? v.dict()->depth : 0; }

int deeper(int inner) {
  if (inner >= kDeepestValue) fail("lists and dicts are too deep within each other");
  return inner + 1;
}

void append_str(Meter& m, std::string& out, const Value& v, bool within);

void append(Meter& m, std::string& out, std::string_view s) {
  m.make(s.size());
  out += s;
}

void append_members(Meter& m, std::string& out, const Value& v) {
  if (const List* l = v.list()) {
    append(m, out, l->tuple ? "(" : "[");
    for (std::size_t i = 0; i < l->items.size(); ++i) {
      if (i) append(m, out, ", ");
      append_str(m, out, l->items[i], true);
    }
    append(m, out, !l->tuple ? "]" : l->items.size() == 1 ? ",)" : ")");
    return;
  }
  append(m, out, "{");
  bool first = true;
  for (const auto& [key, value] : v.dict()->items) {
    if (!first) append(m, out, ", ");
    first = false;
    append_str(m, out, key, true);
    append(m, out, ": ");
    append_str(m, out, value, true);
  }
  append(m, out, "}");
}

void append_str(Meter& m, std::string& out, const Value& v, bool within) {
  m.step();
  if (v.undefined()) append(m, out, within ? "Undefined" : "");
  else if (v.none()) append(m, out, "None");
  else if (const bool* b = v.as<bool>()) append(m, out, *b ? "True" : "False");
  else if (const auto* i = v.as<std::int64_t>()) append(m, out, std::to_string(*i));
  else if (const auto* d = v.as<double>()) append(m, out, number(*d));
  else if (const std::string* s = v.text()) within ? append_quoted(m, out, *s) : append(m, out, *s);
  else if (v.list() || v.dict()) append_members(m, out, v);
  else append(m, out, str_cat("<", type_name(v), ">"));
}

void append_json(Meter& m, std::string& out, const Value& v, const JsonStyle& style, std::size_t depth);

void new_line(Meter& m, std::string& out, const JsonStyle& style, std::size_t depth) {
  if (!style.indent) return;
  m.make(style.indent->size() * depth + 1);
  out += '\n';
  for (std::size_t k = 0; k < depth; ++k) out += *style.indent;
}

std::string json_key(Meter& m, const Value& key) {
  if (const std::string* s = key.text()) return *s;
  if (const bool* b = key.as<bool>()) return *b ? "true" : "false";
  if (key.none()) return "null";
  if (is_number(key)) return str(m, key);
  fail("keys of JSON are texts, not ", type_name(key));
}

void append_object(Meter& m, std::string& out, const Dict& d, const JsonStyle& style, std::size_t depth) {
  std::vector<std::pair<std::string, const Value*>> all;
  for (const auto& [key, value] : d.items) {
    all.emplace_back(json_key(m, key), &value);
    m.make(all.back().first.size() + 64);
  }
  if (style.sorted)
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  append(m, out, "{");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i) append(m, out, style.between);
    new_line(m, out, style, depth + 1);
    append_json(m, out, all[i].first, style.ascii);
    append(m, out, style.behind_key);
    append_json(m, out, *all[i].second, style, depth + 1);
  }
  if (!all.empty()) new_line(m, out, style, depth);
  append(m, out, "}");
}

void append_json(Meter& m, std::string& out, const Value& v, const JsonStyle& style, std::size_t depth) {
  m.step();
  if (v.none()) return append(m, out, "null");
  if (const bool* b = v.as<bool>()) return append(m, out, *b ? "true" : "false");
  if (const auto* i = v.as<std::int64_t>()) return append(m, out, std::to_string(*i));
  if (const auto* d = v.as<double>())
    return append(m, out, std::isnan(*d) ? "NaN" : std::isinf(*d) ? (*d > 0 ? "Infinity" : "-Infinity") : number(*d));
  if (const std::string* s = v.text()) return append_json(m, out, *s, style.ascii);
  if (const Dict* d = v.dict()) return append_object(m, out, *d, style, depth);
  const List* l = v.list();
  if (!l) fail("Object of type ", type_name(v), " is not JSON serializable");
  append(m, out, "[");
  for (std::size_t i = 0; i < l->items.size(); ++i) {
    if (i) append(m, out, style.between);
    new_line(m, out, style, depth + 1);
    append_json(m, out, l->items[i], style, depth + 1);
  }
  if (!l->items.empty()) new_line(m, out, style, depth);
  append(m, out, "]");
}

}  // namespace

const Value* Dict::find(Meter& m, const Value& key) const {
  for (const auto& [k, v] : items) {
    m.step();
    if (equal(m, k, key)) return &v;
  }
  return nullptr;
}

Value undefined(const std::string& why) { return {Undefined{std::make_shared<const std::string>(why)}}; }

Value text(Meter& m, std::string s) {
  m.make(s.size() + 64);
  return {std::make_shared<const std::string>(std::move(s))};
}

Value list(Meter& m, std::vector<Value> items, bool tuple) {
  m.make(items.size() + 1, sizeof(Value) + 16);
  int depth = 0;
  for (const Value& v : items) depth = std::max(depth, depth_of(v));
  return {std::make_shared<const List>(List{std::move(items), tuple, deeper(depth)})};
}

Value dict(Meter& m, std::vector<std::pair<Value, Value>> items) {
  m.make(items.size() + 1, 2 * sizeof(Value) + 16);
  Dict d;
  int depth = 0;
  for (auto& [key, value] : items) {
    if (key.list() ? !key.list()->tuple : key.dict() != nullptr) fail("unhashable type: '", type_name(key), "'");
    depth = std::max({depth, depth_of(key), depth_of(value)});
    if (const Value* there = d.find(m, key)) const_cast<Value&>(*there) = std::move(value);
    else d.items.emplace_back(std::move(key), std::move(value));
  }
  d.depth = deeper(depth);
  return {std::make_shared<const Dict>(std::move(d))};
}

Value from_json(Meter& m, const io::Json& j) {
  using Kind = io::Json::Kind;
  switch (j.kind()) {
    case Kind::Bool: return {*j.flag()};
    case Kind::Integer: return {*j.integer()};
    case Kind::TooLarge:
    case Kind::Real: return {*j.number()};
    case Kind::String: return text(m, std::string(j.text()));
    case Kind::Array: {
      std::vector<Value> items;
      for (const auto& [unnamed, v] : j) items.push_back(from_json(m, v));
      return list(m, std::move(items));
    }
    case Kind::Object: {
      std::vector<std::pair<Value, Value>> items;
      for (const auto& [key, v] : j) items.emplace_back(text(m, std::string(key)), from_json(m, v));
      return dict(m, std::move(items));
    }
    default: return {None{}};
  }
}

bool is_whole(const Value& v) { return v.as<std::int64_t>() || v.as<bool>(); }
bool is_number(const Value& v) { return is_whole(v) || v.as<double>(); }
std::int64_t whole(const Value& v) {
  if (const bool* b = v.as<bool>()) return *b;
  if (const auto* i = v.as<std::int64_t>()) return *i;
  if (v.undefined()) fail(*v.as<Undefined>()->why);
  fail("a whole number is needed, not ", type_name(v));
}
double real(const Value& v) {
  if (const auto* d = v.as<double>()) return *d;
  return static_cast<double>(whole(v));
}

bool truthy(const Value& v) {
  if (v.undefined() || v.none()) return false;
  if (is_whole(v)) return whole(v) != 0;
  if (const auto* d = v.as<double>()) return *d != 0;
  if (const std::string* s = v.text()) return !s->empty();
  if (v.list()) return !v.list()->items.empty();
  if (v.dict()) return !v.dict()->items.empty();
  return true;
}

bool equal(Meter& m, const Value& a, const Value& b) {
  m.step();
  if (is_number(a) && is_number(b)) return is_whole(a) && is_whole(b) ? whole(a) == whole(b) : real(a) == real(b);
  if (a.any.index() != b.any.index()) return false;
  if (a.undefined() || a.none()) return true;
  if (const std::string* s = a.text()) return m.read(s->size()), *s == *b.text();
  if (const List* l = a.list()) {
    const List& r = *b.list();
    if (l->tuple != r.tuple || l->items.size() != r.items.size()) return false;
    for (std::size_t i = 0; i < r.items.size(); ++i)
      if (!equal(m, l->items[i], r.items[i])) return false;
    return true;
  }
  if (const Dict* d = a.dict()) {
    if (d->items.size() != b.dict()->items.size()) return false;
    for (const auto& [key, value] : d->items) {
      const Value* other = b.dict()->find(m, key);
      if (!other || !equal(m, value, *other)) return false;
    }
    return true;
  }
  if (const auto* s = a.as<Space*>()) return *s == *b.as<Space*>();
  if (const auto* s = a.as<const Macro*>()) return *s == *b.as<const Macro*>();
  if (const auto* s = a.as<Loop*>()) return *s == *b.as<Loop*>();
  return *a.as<Function>() == *b.as<Function>();
}

int compare(Meter& m, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (v->undefined()) fail(*v->as<Undefined>()->why);
  if (is_whole(a) && is_whole(b)) return whole(a) < whole(b) ? -1 : whole(a) > whole(b);
  if (is_number(a) && is_number(b)) {
    const double x = real(a), y = real(b);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;  // 2: NaN
  }
  if (a.text() && b.text()) {
    m.read(std::min(a.text()->size(), b.text()->size()));
    const int order = a.text()->compare(*b.text());
    return order < 0 ? -1 : order > 0;
  }
  if (a.list() && b.list() && a.list()->tuple == b.list()->tuple) {
    const auto &x = a.list()->items, &y = b.list()->items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(m, x[i], y[i])) return compare(m, x[i], y[i]);
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  fail("'", type_name(a), "' and '", type_name(b), "' have no order");
}

bool contains(Meter& m, const Value& in, const Value& what) {
  if (const std::string* s = in.text()) {
    if (what.undefined()) fail(*what.as<Undefined>()->why);
    if (!what.text()) fail("'in <string>' requires string as left operand, not ", type_name(what));
    return find(m, *s, *what.text()) != s->npos;
  }
  if (const Dict* d = in.dict()) return d->find(m, what) != nullptr;
  if (in.undefined()) return false;
  const List* l = in.list();
  if (!l) fail("argument of type '", type_name(in), "' is not iterable");
  return std::any_of(l->items.begin(), l->items.end(), [&](const Value& v) { return equal(m, v, what); });
}

std::vector<Value> members(Meter& m, const Value& v) {
  std::vector<Value> all;
  if (v.undefined()) return all;
  if (const List* l = v.list()) {
    m.make(l->items.size(), sizeof(Value));
    all = l->items;
  } else if (const Dict* d = v.dict()) {
    m.make(d->items.size(), sizeof(Value));
    for (const auto& [key, value] : d->items) all.push_back(key);
  } else if (const std::string* s = v.text()) {
    m.make(s->size(), sizeof(Value));
    for (std::string_view c : characters(m, *s)) all.push_back(text(m, std::string(c)));
  } else {
    fail("'", type_name(v), "' object is not iterable");
  }
  return all;
}

std::string str(Meter& m, const Value& v) {
  std::string s;
  append_str(m, s, v, false);
  return s;
}
std::string repr(Meter& m, const Value& v) {
  std::string s;
  append_str(m, s, v, true);
  return s;
}
std::string json(Meter& m, const Value& v, const JsonStyle& style) {
  std::string s;
  append_json(m, s, v, style, 0);
  return s;
}

const char* type_name(const Value& v) {
  if (const List* l = v.list()) return l->tuple ? "tuple" : "list";
  static constexpr const char* names[] = {"Undefined", "NoneType", "bool",      "int",   "float",       "str",
                                          "list",      "dict",     "Namespace", "Macro", "LoopContext", "function"};
  return names[v.any.index()];
}

}  // namespace lc::jinja
