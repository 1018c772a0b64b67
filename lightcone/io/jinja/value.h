// The values of a template: those of Python, as far as chat templates use them. Lists and dicts are immutable, so that
// none can contain itself. A namespace is mutable and belongs to the rendering that made it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lightcone/io/jinja/meter.h"
#include "lightcone/io/json_internal.h"

namespace lc::jinja {

struct List;
struct Dict;
struct Space;
struct Macro;
struct Loop;
enum class Function : std::uint8_t { Range, Dict, Namespace, RaiseException, StrftimeNow };

// The value of a missing variable or member. Using it is a Fault.
struct Undefined {
  std::shared_ptr<const std::string> why;  // the message of that Fault
};
struct None {};
using Text = std::shared_ptr<const std::string>;

// A value of any type.
struct Value {
  std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, Space*, const Macro*, Loop*, Function>
      any;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&any);
  }
  bool undefined() const { return as<Undefined>() != nullptr; }
  bool none() const { return as<None>() != nullptr; }
  const std::string* text() const {
    const Text* t = as<Text>();
    return t ? t->get() : nullptr;
  }
  const List* list() const {
    const auto* l = as<std::shared_ptr<const List>>();
    return l ? l->get() : nullptr;
  }
  const Dict* dict() const {
    const auto* d = as<std::shared_ptr<const Dict>>();
    return d ? d->get() : nullptr;
  }
};

// A list or a tuple. `depth` is the number of nested levels.
struct List {
  std::vector<Value> items;
  bool tuple = false;
  int depth = 1;
};
// A dict. `depth` is the number of nested levels.
struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in order of insertion
  int depth = 1;
  // Returns the value of a key, or null.
  const Value* find(Meter& m, const Value& key) const;
};
// The object that namespace() returns.
struct Space {
  std::vector<std::pair<std::string, Value>> items;
};
// The variable `loop` inside a loop.
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;
  std::shared_ptr<const List> last_changed;
};

// Makes an Undefined with the message of its Fault.
Value undefined(const std::string& why);
// Makes a text, and counts its bytes.
Value text(Meter& m, std::string s);
// Makes a list or tuple. Throws Fault if it is nested too deeply.
Value list(Meter& m, std::vector<Value> items, bool tuple = false);
// Makes a dict. For equal keys, the last value is at the position of the first. Throws Fault if it is nested too deeply
// or if a key is a list or dict.
Value dict(Meter& m, std::vector<std::pair<Value, Value>> items);
// Converts a value of JSON.
Value from_json(Meter& m, const io::Json& j);

// Returns the truth value, as Python's bool().
bool truthy(const Value& v);
// Compares for equality, as Python's ==.
bool equal(Meter& m, const Value& a, const Value& b);
// Returns -1, 0 or 1, or 2 if an operand is NaN. Compares numbers, texts, and lists of these. Throws Fault for others.
int compare(Meter& m, const Value& a, const Value& b);
// Evaluates `what in in`.
bool contains(Meter& m, const Value& in, const Value& what);
// Returns the members over which a loop runs: of a dict its keys, of a text its characters. Throws Fault for a value
// that is not iterable.
std::vector<Value> members(Meter& m, const Value& v);
// Returns the text of a value, as Python's str().
std::string str(Meter& m, const Value& v);
// Returns the text of a value within a list, as Python's repr().
std::string repr(Meter& m, const Value& v);
// Options of json(), which are separators, indent, sort_keys and ensure_ascii of Python's json.dumps().
struct JsonStyle {
  std::string between = ", ", behind_key = ": ";
  std::optional<std::string> indent = {};  // per level; nullopt: everything on one line
  bool sorted = false, ascii = false;
};
// Formats a value as JSON, as json.dumps(). Throws Fault for a value that JSON does not have.
std::string json(Meter& m, const Value& v, const JsonStyle& style = {});
const char* type_name(const Value& v);  // Python's name

// True for a number. True and False are the numbers 1 and 0.
bool is_number(const Value& v);
bool is_whole(const Value& v);  // int or bool
// Returns an integer. Throws Fault for another value.
std::int64_t whole(const Value& v);
// Returns a number as double. Throws Fault for another value.
double real(const Value& v);

}  // namespace lc::jinja
