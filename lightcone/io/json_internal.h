// JSON as the readers need it: parsed in one pass into a flat list of small nodes, so that its cost is known from the
// text beforehand (16 bytes for each comma, colon and bracket) and nothing recurses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/read_options.h"

namespace lc::io {

// A value of a JsonDocument, which must outlive it. Free to copy.
class Json {
 public:
  enum class Kind : std::uint8_t { Missing, Null, Bool, Integer, TooLarge, Real, String, Array, Object };
  struct Node {                // a container is followed by its members; of an object's, each follows its name
    std::uint64_t value = 0;   // a number's bits, a text's place, a container's count
    std::uint32_t extent = 0;  // a text's length; nodes of a container, itself included
    Kind kind = Kind::Missing;
  };
  struct Member;
  class Iterator;

  Json() = default;
  Json(const Node* node, const char* texts) : node_(node), texts_(texts) {}
  Kind kind() const { return node_ ? node_->kind : Kind::Missing; }
  bool is(Kind k) const { return kind() == k; }
  // Nothing there, or null.
  bool absent() const { return is(Kind::Missing) || is(Kind::Null); }
  std::size_t size() const;                     // members of an array or object, otherwise 0
  Json operator[](std::string_view key) const;  // the last member of that name; Missing where there is none
  Json operator[](std::size_t i) const;         // of an array
  Iterator begin() const;                       // in the order of the text
  Iterator end() const;
  std::string_view text() const;  // "" when it is no string
  std::optional<bool> flag() const;
  std::optional<std::int64_t> integer() const;
  std::optional<double> number() const;

 private:
  friend class Iterator;
  const Node* node_ = nullptr;
  const char* texts_ = nullptr;
};

struct Json::Member {
  std::string_view key;  // "" in an array
  Json value;
};
class Json::Iterator {
 public:
  Iterator(const Node* at, const char* texts, bool named) : at_(at), texts_(texts), named_(named) {}
  Member operator*() const;
  Iterator& operator++();
  bool operator==(const Iterator& o) const { return at_ == o.at_; }

 private:
  const Node* at_;
  const char* texts_;
  bool named_;
};

class JsonDocument {
 public:
  // Error, beginning with `path`, when the text is no JSON or nested more than 64 deep, or the budget does not allow
  // it.
  JsonDocument(std::string_view text, std::string_view path, Budget& budget);
  Json root() const { return {nodes_.data(), texts_.data()}; }

 private:
  friend class JsonBuilder;
  std::vector<Json::Node> nodes_;
  std::string texts_;
};

// A file's; `file` is its path.
JsonDocument read_json(const std::string& file, Budget& budget);

}  // namespace lc::io
