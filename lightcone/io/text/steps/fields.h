// A component of tokenizer.json, read strictly: a field that is not known, or that is something else than it should be,
// is an Error that names it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/error.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"

namespace lc {

class Fields {
 public:
  // `what`: what it is called in sentences. The object may have no other fields than `known`.
  Fields(io::Json object, std::string what, std::initializer_list<std::string_view> known);

  template <class... Ts>
  [[noreturn]] void fail(const Ts&... words) const {
    throw Error("tokenizer", str_cat(what_, ": ", words...));
  }
  // A member that may be left out or null, and otherwise is what it should be.
  io::Json member(std::string_view key, io::Json::Kind kind, const char* words) const;
  bool has(std::string_view key) const { return !object_[key].absent(); }
  io::Json operator[](std::string_view key) const { return object_[key]; }
  std::string_view text(std::string_view key) const;  // "" where it is left out
  std::string_view text_or(std::string_view key, std::string_view other) const;
  std::string_view required_text(std::string_view key) const;
  std::string_view character(std::string_view key) const;  // a text of one character
  bool flag(std::string_view key, bool otherwise) const;
  // Null and left out are false.
  bool flag(std::string_view key) const { return flag(key, false); }
  std::int64_t number(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  io::Json list(std::string_view key) const;
  // One of the names, by its place in the list.
  int choice(std::string_view key, std::initializer_list<std::string_view> names, int otherwise) const;
  const std::string& what() const { return what_; }

 private:
  io::Json object_;
  std::string what_;
};

// At most so many components of a kind: what a text costs grows with them.
constexpr std::size_t kMostComponents = 64;
// A component's type; "" when it has none.
std::string_view type_of(io::Json component, std::string_view what);
// A component, or the members of a Sequence of them, of Sequences too, in their order. `members`: the name of the list
// within a Sequence.
std::vector<io::Json> components(io::Json component, std::string_view what, std::string_view members);

// {"String": ...} or {"Regex": ...} of Split and Replace.
struct PatternField {
  std::string_view text;
  bool regex;
};
PatternField pattern_field(const Fields& f);

}  // namespace lc
