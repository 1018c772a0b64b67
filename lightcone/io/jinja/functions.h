// The functions that a template may call, by name: filters, tests, methods of texts and dicts, operators. All of them
// throw Fault for unsuitable values.
#pragma once

#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/jinja/value.h"

namespace lc::jinja {

// The arguments of a call. The first argument of a filter or test is the value before the | or "is".
struct Arguments {
  std::vector<Value> given;
  std::vector<std::pair<std::string_view, Value>> named;
  // Returns an argument by position or by name; null if it is missing.
  const Value* find(std::size_t i, std::string_view name) const;
  // Returns an argument by position or by name. Throws Fault, naming the function `of`, if it is missing.
  const Value& need(std::size_t i, std::string_view name, std::string_view of) const;
  std::int64_t whole(std::size_t i, std::string_view name, std::int64_t otherwise) const;
  bool flag(std::size_t i, std::string_view name, bool otherwise) const;
};

// Applies a filter. Throws Fault if there is no filter of this name.
Value filter(Meter& m, std::string_view name, Arguments a);
// Evaluates a test. Throws Fault if there is no test of this name.
bool test(Meter& m, std::string_view name, const Arguments& a);
// Calls object.name(arguments).
Value method(Meter& m, const Value& object, std::string_view name, const Arguments& a);
// Calls a global function, all but namespace(). `now` is the time for strftime_now().
Value function(Meter& m, Function f, const Arguments& a, std::time_t now);
// Applies an arithmetic operator.
Value binary(Meter& m, std::string_view op, const Value& a, const Value& b);
// Applies the sign minus, or plus.
Value negative(const Value& v, bool minus);
// Returns of[key], as in Python; Undefined if there is no such element.
Value item(Meter& m, const Value& of, const Value& key);
// Returns of[begin:end:step], as in Python. Null or None stands for a missing bound.
Value slice(Meter& m, const Value& of, const Value* begin, const Value* end, const Value* step);
// Returns of.name of a value other than a namespace or loop; Undefined if there is none.
Value member(Meter& m, const Value& of, std::string_view name);

}  // namespace lc::jinja
