#include <algorithm>
#include <optional>

#include "lightcone/io/jinja/functions.h"
#include "lightcone/io/jinja/texts.h"
#include "lightcone/io/printable.h"

namespace lc::jinja {
namespace {

const std::string& words(const Value& v, std::string_view of) {
  if (v.undefined()) fail(*v.as<Undefined>()->why);
  if (!v.text()) fail(of, "() takes a text, not ", type_name(v));
  return *v.text();
}

Value texts(Meter& m, const std::vector<std::string_view>& parts) {
  std::vector<Value> all;
  m.make(parts.size(), sizeof(Value));
  for (std::string_view p : parts) all.push_back(text(m, std::string(p)));
  return list(m, std::move(all));
}

// True if a text begins or ends with `what`, or with one of them if it is a tuple.
bool edge(Meter& m, std::string_view s, const Value& what, bool begins, std::string_view of) {
  m.step();
  if (what.list() && what.list()->tuple) {
    const auto& all = what.list()->items;
    return std::any_of(all.begin(), all.end(), [&](const Value& v) { return !v.list() && edge(m, s, v, begins, of); });
  }
  const std::string& w = words(what, of);
  m.read(w.size());
  return begins ? s.starts_with(w) : s.ends_with(w);
}

bool all_are(Meter& m, std::string_view s, bool (*is)(unsigned char)) {
  m.read(s.size());
  return !s.empty() && std::all_of(s.begin(), s.end(), [&](char c) { return is(static_cast<unsigned char>(c)); });
}
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool is_alpha(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80; }

Value joined(Meter& m, const std::string& between, const Value& of) {
  std::string out;
  bool first = true;
  for (const Value& v : members(m, of)) {
    const std::string& s = words(v, "join");
    m.make(between.size() + s.size());
    if (!first) out += between;
    first = false;
    out += s;
  }
  return text(m, std::move(out));
}

// Converts a byte offset to a number of characters; npos to -1.
Value index_of(Meter& m, const std::string& s, std::size_t at) {
  return {at == s.npos ? std::int64_t{-1} : static_cast<std::int64_t>(length(m, std::string_view(s).substr(0, at)))};
}

std::int64_t count(Meter& m, const std::string& s, const std::string& what) {
  if (what.empty()) return static_cast<std::int64_t>(length(m, s)) + 1;
  std::int64_t n = 0;
  for (std::size_t at = 0; (at = find(m, s, what, at)) != s.npos; at += what.size()) ++n;
  return n;
}

Value text_method(Meter& m, const std::string& s, std::string_view name, const Arguments& a) {
  const auto first = [&]() -> const Value& { return a.need(0, "", name); };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const Value* of = a.find(0, "");
    const auto set = of && !of->none() ? std::optional<std::string_view>(words(*of, name)) : std::nullopt;
    return text(m, std::string(strip(m, s, set, name != "rstrip", name != "lstrip")));
  }
  if (name == "split" || name == "rsplit") {
    const Value* by = a.find(0, "sep");
    const std::int64_t most = a.whole(1, "maxsplit", -1);
    return texts(m, by && !by->none() ? split(m, s, words(*by, name), most, name == "rsplit")
                                      : split(m, s, most, name == "rsplit"));
  }
  if (name == "splitlines") return texts(m, lines(m, s, a.flag(0, "keepends", false)));
  if (name == "startswith") return {edge(m, s, first(), true, name)};
  if (name == "endswith") return {edge(m, s, first(), false, name)};
  if (name == "replace") {
    const std::string &from = words(first(), name), &to = words(a.need(1, "", name), name);
    return text(m, replace(m, s, from, to, a.whole(2, "count", -1)));
  }
  if (name == "upper") return text(m, in_case(m, s, Case::Upper));
  if (name == "lower") return text(m, in_case(m, s, Case::Lower));
  if (name == "title") return text(m, in_case(m, s, Case::Title));
  if (name == "capitalize") return text(m, in_case(m, s, Case::Capitalize));
  if (name == "join") return joined(m, s, first());
  if (name == "find") return index_of(m, s, find(m, s, words(first(), name)));
  if (name == "rfind") return index_of(m, s, find_last(m, s, words(first(), name)));
  if (name == "index") {
    const std::size_t at = find(m, s, words(first(), name));
    if (at == s.npos) fail("substring not found");
    return index_of(m, s, at);
  }
  if (name == "count") return {count(m, s, words(first(), name))};
  if (name == "isdigit") return {all_are(m, s, is_digit)};
  if (name == "isalpha") return {all_are(m, s, is_alpha)};
  if (name == "isspace") return {!s.empty() && strip(m, s, {}, true, false).empty()};
  if (name == "removeprefix" || name == "removesuffix") {
    const std::string& end = words(first(), name);
    const bool front = name == "removeprefix", there = front ? s.starts_with(end) : s.ends_with(end);
    return text(m, !there ? s : front ? s.substr(end.size()) : s.substr(0, s.size() - end.size()));
  }
  fail("the method ", in_quotes(name), " of a text is not supported");
}

Value dict_method(Meter& m, const Dict& d, std::string_view name, const Arguments& a) {
  if (name == "get") {
    const Value* v = d.find(m, a.need(0, "key", name));
    const Value* otherwise = a.find(1, "default");
    return v ? *v : otherwise ? *otherwise : Value{None{}};
  }
  std::vector<Value> all;
  m.make(d.items.size(), sizeof(Value));
  for (const auto& [key, value] : d.items) {
    if (name == "items") all.push_back(list(m, {key, value}, true));
    else if (name == "keys") all.push_back(key);
    else if (name == "values") all.push_back(value);
  }
  if (name != "items" && name != "keys" && name != "values" && name != "copy")
    fail("the method ", in_quotes(name), " of a dict is not supported");
  return name == "copy" ? dict(m, d.items) : list(m, std::move(all));
}

Value list_method(Meter& m, const List& l, std::string_view name, const Arguments& a) {
  if (name != "index" && name != "count")
    fail("the method ", in_quotes(name), " of a list is not supported: a template changes nothing that it is given");
  std::int64_t n = 0;
  for (std::size_t i = 0; i < l.items.size(); ++i)
    if (equal(m, l.items[i], a.need(0, "", name))) {
      if (name == "index") return {static_cast<std::int64_t>(i)};
      ++n;
    }
  if (name == "index") fail("it is not in the list");
  return {n};
}

Value range(Meter& m, const Arguments& a) {
  constexpr std::int64_t kMost = 100000;  // limit of Jinja's sandbox
  std::int64_t begin = 0, end = whole(a.need(0, "", "range")), step = a.whole(2, "", 1);
  if (a.given.size() > 1) begin = end, end = whole(a.given[1]);
  if (step == 0) fail("range() arg 3 must not be zero");
  std::vector<Value> all;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (static_cast<std::int64_t>(all.size()) >= kMost) fail("range() of more than ", kMost, " numbers");
    m.make(2 * sizeof(Value));
    all.push_back({i});
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list(m, std::move(all));
}

}  // namespace

Value method(Meter& m, const Value& object, std::string_view name, const Arguments& a) {
  if (const std::string* s = object.text()) return text_method(m, *s, name, a);
  if (const Dict* d = object.dict()) return dict_method(m, *d, name, a);
  if (const List* l = object.list()) return list_method(m, *l, name, a);
  if (object.undefined()) fail(*object.as<Undefined>()->why);
  fail("'", type_name(object), "' has no method ", in_quotes(name));
}

Value function(Meter& m, Function f, const Arguments& a, std::time_t now) {
  switch (f) {
    case Function::Range: return range(m, a);
    case Function::Dict: {
      std::vector<std::pair<Value, Value>> items;
      if (const Value* from = a.find(0, "")) {
        if (!from->dict()) fail("dict() takes a dict, or names with values");
        m.make(from->dict()->items.size(), 2 * sizeof(Value));
        items = from->dict()->items;
      }
      for (const auto& [name, value] : a.named) items.emplace_back(text(m, std::string(name)), value);
      return dict(m, std::move(items));
    }
    case Function::StrftimeNow: {
      std::tm local = {};
      ::localtime_r(&now, &local);
      // The names of months and days are English, whatever the locale of the program.
      static const locale_t english = ::newlocale(LC_ALL_MASK, "C", nullptr);
      const std::string& format = words(a.need(0, "format", "strftime_now"), "strftime_now");
      if (format.empty()) return text(m, "");
      std::string out(1024, '\0');
      m.make(out.size());
      out.resize(::strftime_l(out.data(), out.size(), format.c_str(), &local, english));
      if (out.empty()) fail("strftime_now() makes more than 1,023 characters of ", in_quotes(format));
      return text(m, std::move(out));
    }
    default: break;
  }
  const std::string what = str(m, a.need(0, "message", "raise_exception"));
  fail("the template does not take this conversation: ", what);
}

}  // namespace lc::jinja
