#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "lightcone/base/numbers.h"
#include "lightcone/io/jinja/functions.h"
#include "lightcone/io/jinja/texts.h"
#include "lightcone/io/printable.h"

namespace lc::jinja {
namespace {

// Returns a member by a path such as "function.name", or by an index.
Value by_path(Meter& m, const Value& of, const Value& path) {
  if (!path.text()) return item(m, of, path);
  Value v = of;
  for (std::string_view part : split(m, *path.text(), ".", -1, false)) {
    std::int64_t i = 0;
    const bool number = !part.empty() && std::from_chars(part.data(), part.data() + part.size(), i).ptr == part.end();
    v = number ? item(m, v, {i}) : member(m, v, part);
  }
  return v;
}

Value length_of(Meter& m, const Value& v) {
  if (v.undefined()) return {std::int64_t{0}};
  if (const std::string* s = v.text()) return {static_cast<std::int64_t>(length(m, *s))};
  if (v.list()) return {static_cast<std::int64_t>(v.list()->items.size())};
  if (v.dict()) return {static_cast<std::int64_t>(v.dict()->items.size())};
  fail("object of type '", type_name(v), "' has no len()");
}

Value joined(Meter& m, const Arguments& a) {
  const Value *between = a.find(1, "d"), *path = a.find(2, "attribute");
  const std::string by = between ? str(m, *between) : "";
  std::string out;
  bool first = true;
  for (const Value& v : members(m, a.given[0])) {
    const std::string s = str(m, path ? by_path(m, v, *path) : v);
    m.make(by.size() + s.size());
    if (!first) out += by;
    first = false;
    out += s;
  }
  return text(m, std::move(out));
}

Value rounded(Meter&, const Arguments& a) {
  const std::int64_t digits = a.whole(1, "precision", 0);
  const Value* how = a.find(2, "method");
  const double x = real(a.given[0]), scale = std::pow(10.0, static_cast<double>(digits));
  if (is_whole(a.given[0]) && digits >= 0) return a.given[0];
  if (std::abs(digits) > 300 || !std::isfinite(x)) return {x};
  if (how && how->text() && *how->text() == "ceil") return {std::ceil(x * scale) / scale};
  if (how && how->text() && *how->text() == "floor") return {std::floor(x * scale) / scale};
  if (digits < 0) return {std::nearbyint(x * scale) / scale};
  return {*real_of<double>(formatted("%.*f", static_cast<int>(digits), x))};
}

// Parses digits with an optional sign, spaces around them and underscores between them.
std::optional<std::int64_t> parsed_whole(Meter& m, std::string_view s, int base) {
  s = strip(m, s, {}, true, true);
  std::string digits;
  for (std::size_t i = 0; i < s.size() && i < 70; ++i)
    if (s[i] != '_' || i == 0 || i + 1 == s.size() || s[i - 1] == '_') digits += s[i];
  if (digits.starts_with("+")) digits.erase(0, 1);
  if (base == 16 && (digits.starts_with("0x") || digits.starts_with("0X"))) digits.erase(0, 2);
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n, base);
  if (error == std::errc::result_out_of_range) fail("a whole number goes beyond 64 bits");
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return n;
}
std::optional<double> parsed_real(Meter& m, std::string_view s) {
  const std::string word(strip(m, s, {}, true, true));
  if (word.empty() || word.find_first_of("xXpP(") != word.npos) return {};
  return real_of<double>(word);
}
Value to_whole(Meter& m, const Arguments& a) {
  const Value& v = a.given[0];
  const Value* otherwise = a.find(1, "default");
  const std::int64_t base = a.whole(2, "base", 10);
  if (base < 2 || base > 36) fail("int() of base ", base);
  std::optional<double> x;
  if (is_whole(v)) return {whole(v)};
  if (const auto* d = v.as<double>()) x = *d;
  if (const std::string* s = v.text()) {
    if (const auto n = parsed_whole(m, *s, static_cast<int>(base))) return {*n};
    x = parsed_real(m, *s);
  }
  if (!x || !std::isfinite(*x)) return otherwise ? *otherwise : Value{std::int64_t{0}};
  if (std::abs(*x) >= 0x1p63) fail("a whole number goes beyond 64 bits");
  return {static_cast<std::int64_t>(*x)};
}
Value to_real(Meter& m, const Arguments& a) {
  const Value* otherwise = a.find(1, "default");
  if (is_number(a.given[0])) return {real(a.given[0])};
  if (a.given[0].text())
    if (const auto x = parsed_real(m, *a.given[0].text())) return {*x};
  return otherwise ? *otherwise : Value{0.0};
}

Value indented(Meter& m, const Arguments& a) {
  const std::string s = str(m, a.given[0]);
  const Value* width = a.find(1, "width");
  const bool first = a.flag(2, "first", false), blank = a.flag(3, "blank", false);
  std::string by;
  if (width && width->text()) {
    by = *width->text();
  } else {
    const std::int64_t n = a.whole(1, "width", 4);
    m.make(static_cast<std::size_t>(std::max<std::int64_t>(0, n)));
    by.assign(static_cast<std::size_t>(std::max<std::int64_t>(0, n)), ' ');
  }
  std::string out;
  bool begins = true;
  const std::string ended = s + "\n";  // a line end at the end of the text ends one more, empty line
  for (std::string_view line : lines(m, ended, false)) {
    const bool in = begins ? first : blank || !line.empty();
    m.make(line.size() + by.size() + 1);
    if (!begins) out += '\n';
    begins = false;
    if (in) out += by;
    out += line;
  }
  return text(m, std::move(out));
}

Value sorted(Meter& m, std::vector<Value> all, bool sensitive, const Value* path, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  m.make(all.size(), 2 * sizeof(Value));
  for (Value& v : all) {
    Value key = path && !path->none() ? by_path(m, v, *path) : v;
    if (!sensitive && key.text()) key = text(m, in_case(m, *key.text(), Case::Lower));
    keyed.emplace_back(std::move(key), std::move(v));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? compare(m, b.first, a.first) < 0 : compare(m, a.first, b.first) < 0;
  });
  all.clear();
  for (auto& [key, v] : keyed) all.push_back(std::move(v));
  return list(m, std::move(all));
}

Value extreme(Meter& m, const Arguments& a, int sign) {
  const bool sensitive = a.flag(1, "case_sensitive", false);
  const Value* path = a.find(2, "attribute");
  const std::vector<Value> all = members(m, a.given[0]);
  if (all.empty()) return undefined("No aggregated item, sequence was empty.");
  const auto key = [&](const Value& v) {
    Value k = path ? by_path(m, v, *path) : v;
    return !sensitive && k.text() ? text(m, in_case(m, *k.text(), Case::Lower)) : k;
  };
  const Value* best = &all[0];
  for (const Value& v : all)
    if (sign * compare(m, key(v), key(*best)) > 0) best = &v;
  return *best;
}

Value unique(Meter& m, const Arguments& a) {
  const bool sensitive = a.flag(1, "case_sensitive", false);
  const Value* path = a.find(2, "attribute");
  std::vector<Value> keys, kept;
  for (const Value& v : members(m, a.given[0])) {
    Value key = path ? by_path(m, v, *path) : v;
    if (!sensitive && key.text()) key = text(m, in_case(m, *key.text(), Case::Lower));
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& k) { return equal(m, k, key); })) continue;
    m.make(2 * sizeof(Value));
    keys.push_back(std::move(key)), kept.push_back(v);
  }
  return list(m, std::move(kept));
}

Value summed(Meter& m, const Arguments& a) {
  const Value *path = a.find(1, "attribute"), *start = a.find(2, "start");
  Value sum = start ? *start : Value{std::int64_t{0}};
  for (const Value& v : members(m, a.given[0]))
    sum = binary(m, "+", sum, path && !path->none() ? by_path(m, v, *path) : v);
  return sum;
}

// Builds the arguments of an inner filter or test from those after the first `used`.
Arguments passed_on(const Arguments& a, std::size_t used, const Value& to) {
  Arguments inner{{to}, a.named};
  inner.given.insert(inner.given.end(), a.given.begin() + static_cast<std::ptrdiff_t>(std::min(used, a.given.size())),
                     a.given.end());
  return inner;
}

Value mapped(Meter& m, const Arguments& a) {
  std::vector<Value> all;
  const Value *path = a.find(99, "attribute"), *otherwise = a.find(99, "default");
  for (const Value& v : members(m, a.given[0])) {
    m.make(sizeof(Value));
    if (path) {
      all.push_back(by_path(m, v, *path));
      if (otherwise && all.back().undefined()) all.back() = *otherwise;
    } else {
      const Value& name = a.need(1, "", "map");
      if (!name.text()) fail("map() takes the name of a filter");
      all.push_back(filter(m, *name.text(), passed_on(a, 2, v)));
    }
  }
  return list(m, std::move(all));
}

Value selected(Meter& m, const Arguments& a, bool keep, bool by_attribute) {
  std::vector<Value> all;
  const std::size_t name = by_attribute ? 2 : 1;
  for (const Value& v : members(m, a.given[0])) {
    m.make(sizeof(Value));
    const Value of = by_attribute ? by_path(m, v, a.need(1, "", "selectattr")) : v;
    const Value* how = a.find(name, "");
    if (how && !how->text()) fail("the name of a test is a text");
    if ((how ? test(m, *how->text(), passed_on(a, name + 1, of)) : truthy(of)) == keep) all.push_back(v);
  }
  return list(m, std::move(all));
}

Value escaped(Meter& m, const std::string& s) {
  std::string out;
  for (const char c : s) {
    const std::string_view as = c == '&'    ? "&amp;"
                                : c == '<'  ? "&lt;"
                                : c == '>'  ? "&gt;"
                                : c == '\'' ? "&#39;"
                                : c == '"'  ? "&#34;"
                                            : std::string_view(&c, 1);
    m.make(as.size());
    out += as;
  }
  return text(m, std::move(out));
}

Value first_or_last(Meter& m, const Value& v, bool first) {
  const std::vector<Value> all = members(m, v);
  if (all.empty()) return undefined(str_cat("No ", first ? "first" : "last", " item, sequence was empty."));
  return first ? all.front() : all.back();
}

Value reversed(Meter& m, const Value& v) {
  std::vector<Value> all = members(m, v);
  std::reverse(all.begin(), all.end());
  if (!v.text()) return list(m, std::move(all));
  std::string s;
  m.make(v.text()->size());
  for (const Value& c : all) s += *c.text();
  return text(m, std::move(s));
}

Value pairs(Meter& m, const Value& v) {
  if (v.undefined()) return list(m, {});
  if (!v.dict()) fail("Can only get item pairs from a mapping.");
  return method(m, v, "items", {});
}

Value sorted_pairs(Meter& m, const Arguments& a) {
  const Value* by = a.find(2, "by");
  const Value path{std::int64_t{by && by->text() && *by->text() == "value"}};
  return sorted(m, pairs(m, a.given[0]).list()->items, a.flag(1, "case_sensitive", false), &path,
                a.flag(3, "reverse", false));
}

Value as_json(Meter& m, const Arguments& a) {
  if (a.given.size() > 5) fail("tojson() takes at most four arguments");
  for (const auto& [word, v] : a.named)
    if (word != "ensure_ascii" && word != "indent" && word != "separators" && word != "sort_keys")
      fail("tojson() got an unexpected keyword argument ", in_quotes(word));
  JsonStyle style{.sorted = a.flag(4, "sort_keys", false), .ascii = a.flag(1, "ensure_ascii", false)};
  if (const Value* indent = a.find(2, "indent"); indent && !indent->none()) {
    const std::int64_t width = indent->text() ? static_cast<std::int64_t>(indent->text()->size()) : whole(*indent);
    if (width > 100) fail("tojson(indent=", width, ")");
    const auto spaces = static_cast<std::size_t>(std::max<std::int64_t>(0, width));
    style.indent = indent->text() ? *indent->text() : std::string(spaces, ' ');
    style.between = ",";
  }
  if (const Value* two = a.find(3, "separators"); two && !two->none()) {
    const std::vector<Value> both = members(m, *two);
    if (both.size() != 2 || !both[0].text() || !both[1].text())
      fail("tojson(separators=) takes two texts, what stands between members and what follows a key");
    style.between = *both[0].text(), style.behind_key = *both[1].text();
  }
  return text(m, json(m, a.given[0], style));
}

std::optional<Value> text_filter(Meter& m, std::string_view name, const Arguments& a) {
  const auto s = [&] { return str(m, a.given[0]); };
  if (name == "trim") {
    const Value* of = a.find(1, "chars");
    const std::string set = of && !of->none() ? str(m, *of) : "", whole = s();
    return text(m, std::string(strip(m, whole, of && !of->none() ? std::optional<std::string_view>(set) : std::nullopt,
                                     true, true)));
  }
  if (name == "string") return a.given[0].text() ? a.given[0] : text(m, s());
  if (name == "safe") return text(m, s());
  if (name == "escape" || name == "e" || name == "forceescape") return escaped(m, s());
  if (name == "upper") return text(m, in_case(m, s(), Case::Upper));
  if (name == "lower") return text(m, in_case(m, s(), Case::Lower));
  if (name == "title") return text(m, in_case(m, s(), Case::FilterTitle));
  if (name == "capitalize") return text(m, in_case(m, s(), Case::Capitalize));
  if (name == "replace") {
    const std::string from = str(m, a.need(1, "old", name)), to = str(m, a.need(2, "new", name));
    return text(m, replace(m, s(), from, to, a.whole(3, "count", -1)));
  }
  if (name == "indent") return indented(m, a);
  if (name == "join") return joined(m, a);
  if (name == "tojson") return as_json(m, a);
  if (name == "wordcount") {
    const std::string whole = s();
    return Value{static_cast<std::int64_t>(split(m, whole, -1, false).size())};
  }
  return {};
}

std::optional<Value> list_filter(Meter& m, std::string_view name, const Arguments& a) {
  const Value& v = a.given[0];
  if (name == "length" || name == "count") return length_of(m, v);
  if (name == "first" || name == "last") return first_or_last(m, v, name == "first");
  if (name == "list") return list(m, members(m, v));
  if (name == "reverse") return reversed(m, v);
  if (name == "items") return pairs(m, v);
  if (name == "dictsort") return sorted_pairs(m, a);
  if (name == "map") return mapped(m, a);
  if (name == "select" || name == "reject") return selected(m, a, name == "select", false);
  if (name == "selectattr" || name == "rejectattr") return selected(m, a, name == "selectattr", true);
  if (name == "sort")
    return sorted(m, members(m, v), a.flag(2, "case_sensitive", false), a.find(3, "attribute"),
                  a.flag(1, "reverse", false));
  if (name == "unique") return unique(m, a);
  if (name == "min" || name == "max") return extreme(m, a, name == "max" ? 1 : -1);
  if (name == "sum") return summed(m, a);
  if (name == "attr") return member(m, v, str(m, a.need(1, "name", name)));
  return {};
}

}  // namespace

const Value* Arguments::find(std::size_t i, std::string_view name) const {
  if (i < given.size()) return &given[i];
  for (const auto& [word, value] : named)
    if (word == name && !name.empty()) return &value;
  return nullptr;
}
const Value& Arguments::need(std::size_t i, std::string_view name, std::string_view of) const {
  if (const Value* v = find(i, name)) return *v;
  fail(of, "() needs more arguments");
}
std::int64_t Arguments::whole(std::size_t i, std::string_view name, std::int64_t otherwise) const {
  const Value* v = find(i, name);
  return v && !v->none() ? jinja::whole(*v) : otherwise;
}
bool Arguments::flag(std::size_t i, std::string_view name, bool otherwise) const {
  const Value* v = find(i, name);
  return v ? truthy(*v) : otherwise;
}

Value filter(Meter& m, std::string_view name, Arguments a) {
  m.step();
  if (name == "default" || name == "d") {
    const bool missing = a.flag(2, "boolean", false) ? !truthy(a.given[0]) : a.given[0].undefined();
    const Value* otherwise = a.find(1, "default_value");
    return !missing ? a.given[0] : otherwise ? *otherwise : text(m, "");
  }
  if (auto v = text_filter(m, name, a)) return *v;
  if (auto v = list_filter(m, name, a)) return *v;
  if (name == "int") return to_whole(m, a);
  if (name == "float") return to_real(m, a);
  if (name == "round") return rounded(m, a);
  if (name == "abs")
    return is_whole(a.given[0]) ? (whole(a.given[0]) < 0 ? negative(a.given[0], true) : a.given[0])
                                : Value{std::abs(real(a.given[0]))};
  fail("there is no filter ", in_quotes(name), ", or it is not supported");
}

bool test(Meter& m, std::string_view name, const Arguments& a) {
  m.step();
  const Value& v = a.given.at(0);
  const auto other = [&]() -> const Value& { return a.need(1, "", name); };
  if (name == "defined") return !v.undefined();
  if (name == "undefined") return v.undefined();
  if (name == "none") return v.none();
  if (name == "boolean") return v.as<bool>() != nullptr;
  if (name == "true" || name == "false") return v.as<bool>() && *v.as<bool>() == (name == "true");
  if (name == "integer") return v.as<std::int64_t>() != nullptr;
  if (name == "float") return v.as<double>() != nullptr;
  if (name == "number") return is_number(v);
  if (name == "string") return v.text() != nullptr;
  if (name == "mapping") return v.dict() != nullptr;
  if (name == "sequence" || name == "iterable") return v.text() || v.list() || v.dict() || v.undefined();
  if (name == "callable") return v.as<const Macro*>() || v.as<Function>();
  if (name == "odd") return whole(v) % 2 != 0;
  if (name == "even") return whole(v) % 2 == 0;
  if (name == "divisibleby") {
    const Value rest = binary(m, "%", v, other());
    return !truthy(rest);
  }
  if (name == "lower" || name == "upper") {
    const std::string s = str(m, v);
    return s == in_case(m, s, name == "lower" ? Case::Lower : Case::Upper) &&
           s != in_case(m, s, name == "lower" ? Case::Upper : Case::Lower);
  }
  if (name == "eq" || name == "equalto" || name == "==") return equal(m, v, other());
  if (name == "sameas") return v.any.index() == other().any.index() && equal(m, v, other());
  if (name == "ne" || name == "!=") return !equal(m, v, other());
  if (name == "in") return contains(m, other(), v);
  if (name == "lt" || name == "<" || name == "lessthan") return compare(m, v, other()) == -1;
  if (name == "gt" || name == ">" || name == "greaterthan") return compare(m, v, other()) == 1;
  if (const bool le = name == "le" || name == "<="; le || name == "ge" || name == ">=") {
    const int order = compare(m, v, other());
    return order == 0 || order == (le ? -1 : 1);
  }
  fail("there is no test ", in_quotes(name), ", or it is not supported");
}

}  // namespace lc::jinja
