#include "lightcone/io/text/steps/fields.h"

#include <algorithm>

#include "lightcone/io/text/pieces/characters.h"

namespace lc {

using io::Json;

Fields::Fields(Json object, std::string what, std::initializer_list<std::string_view> known)
    : object_(object), what_(std::move(what)) {
  if (!object.is(Json::Kind::Object)) fail("it is not an object");
  for (const auto& [key, value] : object)
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail("it has a field ", in_quotes(key), ", which is not known");
}

Json Fields::member(std::string_view key, Json::Kind kind, const char* words) const {
  const Json m = object_[key];
  if (!m.absent() && !m.is(kind)) fail(in_quotes(key), " is not ", words);
  return m;
}

std::string_view Fields::text(std::string_view key) const { return member(key, Json::Kind::String, "a string").text(); }
std::string_view Fields::text_or(std::string_view key, std::string_view other) const {
  const Json m = member(key, Json::Kind::String, "a string");
  return m.absent() ? other : m.text();
}
std::string_view Fields::required_text(std::string_view key) const {
  const Json m = member(key, Json::Kind::String, "a string");
  if (m.absent()) fail("it has no ", in_quotes(key));
  return m.text();
}
std::string_view Fields::character(std::string_view key) const {
  const std::string_view s = required_text(key);
  if (count_characters(s) != 1) fail(in_quotes(key), " is not one character");
  return s;
}

bool Fields::flag(std::string_view key, bool otherwise) const {
  return member(key, Json::Kind::Bool, "true or false").flag().value_or(otherwise);
}

std::int64_t Fields::number(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const {
  const Json m = object_[key];
  if (m.absent()) return otherwise;
  const std::optional<std::int64_t> n = m.integer();
  if (!n || *n < least || *n > most) fail(in_quotes(key), " is not a whole number from ", least, " to ", most);
  return *n;
}

Json Fields::list(std::string_view key) const { return member(key, Json::Kind::Array, "a list"); }

int Fields::choice(std::string_view key, std::initializer_list<std::string_view> names, int otherwise) const {
  const Json m = member(key, Json::Kind::String, "a string");
  if (m.absent()) return otherwise;
  const auto* at = std::find(names.begin(), names.end(), m.text());
  if (at == names.end()) fail(in_quotes(key), " is ", in_quotes(m.text()), ", which is not known");
  return static_cast<int>(at - names.begin());
}

std::string_view type_of(Json component, std::string_view what) {
  const Json type = component["type"];
  if (!type.absent() && !type.is(Json::Kind::String))
    throw Error("tokenizer", str_cat(what, ": 'type' is not a string"));
  return type.text();
}

std::vector<Json> components(Json component, std::string_view what, std::string_view members) {
  std::vector<Json> all;
  if (component.absent()) return all;
  if (!component.is(Json::Kind::Object)) throw Error("tokenizer", str_cat(what, " is not an object"));
  std::vector<Json> open{component};
  while (!open.empty()) {
    const Json j = open.back();
    open.pop_back();
    if (!j.is(Json::Kind::Object)) throw Error("tokenizer", str_cat(what, ": a member of a Sequence is not an object"));
    if (type_of(j, what) != "Sequence") {
      all.push_back(j);
    } else {
      const Fields f(j, str_cat(what, ", a Sequence"), {"type", members});
      if (!f.has(members)) f.fail("it has no ", in_quotes(members));
      const Json list = f.list(members);
      if (list.size() > kMostComponents)
        f.fail("it has ", list.size(), " members; at most ", kMostComponents, " are supported");
      const std::size_t first = open.size();
      for (const auto& [unnamed, part] : list) open.push_back(part);
      std::reverse(open.begin() + static_cast<std::ptrdiff_t>(first), open.end());
    }
    if (all.size() + open.size() > kMostComponents)
      throw Error("tokenizer", str_cat(what, ": at most ", kMostComponents, " components are supported"));
  }
  return all;
}

PatternField pattern_field(const Fields& f) {
  const Json p = f["pattern"];
  const Fields one(p, f.what() + ", its pattern", {"String", "Regex"});
  if (one.has("String") == one.has("Regex")) one.fail("it is neither a String nor a Regex");
  return {one.has("Regex") ? one.text("Regex") : one.text("String"), one.has("Regex")};
}

}  // namespace lc
