// Strict reader of a component of tokenizer.json. An unknown field, or a field of the wrong type, is an Error that
// names it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"

namespace lc {

// The fields of one JSON object.
class Fields {
 public:
  // `what` names the component in Errors. Throws Error if the object has fields that are not in `known`.
  Fields(io::Json object, std::string what, std::initializer_list<std::string_view> known);

  template <class... Ts>
  [[noreturn]] void fail(const Ts&... words) const {
    throw Error("tokenizer", str_cat(what_, ": ", words...));
  }
  // Returns a member, which may be missing or null. Throws Error if it has another kind.
  io::Json member(std::string_view key, io::Json::Kind kind, const char* words) const;
  bool has(std::string_view key) const { return !object_[key].absent(); }
  io::Json operator[](std::string_view key) const { return object_[key]; }
  std::string_view text(std::string_view key) const;  // "" if missing
  std::string_view text_or(std::string_view key, std::string_view other) const;
  std::string_view required_text(std::string_view key) const;
  std::string_view character(std::string_view key) const;  // a required text of one character
  bool flag(std::string_view key, bool otherwise) const;
  // Returns a flag; a missing one is false.
  bool flag(std::string_view key) const { return flag(key, false); }
  std::int64_t number(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  io::Json list(std::string_view key) const;
  // Returns the index of a text in the list of names. Throws Error for another text.
  int choice(std::string_view key, std::initializer_list<std::string_view> names, int otherwise) const;
  const std::string& what() const { return what_; }

 private:
  io::Json object_;
  std::string what_;
};

// Maximum number of components of a kind, because the cost of a text grows with them.
constexpr std::size_t kMostComponents = 64;
// Returns the type of a component; "" if it has none.
std::string_view type_of(io::Json component, std::string_view what);
// Returns the component, or the members of a Sequence, in order and recursively. `members` is the name of the list
// within a Sequence.
std::vector<io::Json> components(io::Json component, std::string_view what, std::string_view members);

// The pattern {"String": ...} or {"Regex": ...} of Split and Replace.
struct PatternField {
  std::string_view text;
  bool regex;
};
PatternField pattern_field(const Fields& f);

}  // namespace lc
