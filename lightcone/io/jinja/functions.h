// What a template may call, by name: filters, tests, methods of texts and dicts, operators.
#pragma once

#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/jinja/value.h"

namespace lc::jinja {

// The arguments of a call. For a filter or a test the first is what stands before the | or "is".
struct Arguments {
  std::vector<Value> given;
  std::vector<std::pair<std::string_view, Value>> named;
  // By place or by name; null where it was left out.
  const Value* find(std::size_t i, std::string_view name) const;
  const Value& need(std::size_t i, std::string_view name, std::string_view of) const;
  std::int64_t whole(std::size_t i, std::string_view name, std::int64_t otherwise) const;
  bool flag(std::size_t i, std::string_view name, bool otherwise) const;
};

Value filter(Meter& m, std::string_view name, Arguments a);
bool test(Meter& m, std::string_view name, const Arguments& a);
// object.name(arguments)
Value method(Meter& m, const Value& object, std::string_view name, const Arguments& a);
Value function(Meter& m, Function f, const Arguments& a, std::time_t now);  // all but namespace()
Value binary(Meter& m, std::string_view op, const Value& a, const Value& b);
Value negative(const Value& v, bool minus);
Value item(Meter& m, const Value& of, const Value& key);
Value slice(Meter& m, const Value& of, const Value* begin, const Value* end, const Value* step);
// of.name of what is no namespace and no loop
Value member(Meter& m, const Value& of, std::string_view name);

}  // namespace lc::jinja
