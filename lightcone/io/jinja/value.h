// The values of a template: Python's, as far as chat templates use them. Lists and dicts never change once they are
// made, so that nothing can hold itself; a namespace may change, and belongs to the rendering that made it.
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

struct Undefined {
  std::shared_ptr<const std::string> why;  // the sentence that whoever uses it reads
};
struct None {};
using Text = std::shared_ptr<const std::string>;

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

struct List {
  std::vector<Value> items;
  bool tuple = false;
  int depth = 1;
};
struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in the order they were added
  int depth = 1;
  const Value* find(Meter& m, const Value& key) const;
};
// What namespace() makes.
struct Space {
  std::vector<std::pair<std::string, Value>> items;
};
// The variable `loop` of a loop.
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;
  std::shared_ptr<const List> last_changed;
};

Value undefined(const std::string& why);
Value text(Meter& m, std::string s);
Value list(Meter& m, std::vector<Value> items, bool tuple = false);
Value dict(Meter& m, std::vector<std::pair<Value, Value>> items);  // of equal keys the last value, at the first's place
Value from_json(Meter& m, const io::Json& j);

bool truthy(const Value& v);
bool equal(Meter& m, const Value& a, const Value& b);
int compare(Meter& m, const Value& a, const Value& b);  // numbers, texts; Fault for others
bool contains(Meter& m, const Value& in, const Value& what);
// The members of what a loop may run over: of a dict its keys, of a text its characters. Fault for what is none.
std::vector<Value> members(Meter& m, const Value& v);
// What str() gives, and what it gives within a list.
std::string str(Meter& m, const Value& v);
std::string repr(Meter& m, const Value& v);
// json.dumps(v, ...) with what Python calls separators, indent, sort_keys and ensure_ascii.
struct JsonStyle {
  std::string between = ", ", behind_key = ": ";
  std::optional<std::string> indent = {};  // of a level; without one all is on one line
  bool sorted = false, ascii = false;
};
std::string json(Meter& m, const Value& v, const JsonStyle& style = {});
const char* type_name(const Value& v);  // as Python calls it

// Numbers: whether it is one (True and False are 0 and 1), and as what.
bool is_number(const Value& v);
bool is_whole(const Value& v);  // of int or bool
std::int64_t whole(const Value& v);
double real(const Value& v);

}  // namespace lc::jinja
