// A JSON parser for the readers: it parses in one pass into a flat list of small nodes, so its memory is bounded by the
// text in advance (16 bytes for each comma, colon and bracket), and nothing recurses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/read_options.h"

namespace lc::io {

// A value of a JsonDocument, which must outlive it. Cheap to copy.
class Json {
 public:
  enum class Kind : std::uint8_t { Missing, Null, Bool, Integer, TooLarge, Real, String, Array, Object };
  struct Node {                // a container is followed by its members; in an object each member follows its name
    std::uint64_t value = 0;   // bits of a number, offset of a text, number of members of a container
    std::uint32_t extent = 0;  // length of a text; number of nodes of a container, itself included
    Kind kind = Kind::Missing;
  };
  struct Member;
  class Iterator;

  Json() = default;
  Json(const Node* node, const char* texts) : node_(node), texts_(texts) {}
  Kind kind() const { return node_ ? node_->kind : Kind::Missing; }
  bool is(Kind k) const { return kind() == k; }
  // True if the value is missing or null.
  bool absent() const { return is(Kind::Missing) || is(Kind::Null); }
  std::size_t size() const;                     // number of members of an array or object, otherwise 0
  Json operator[](std::string_view key) const;  // the last member of that name; Missing if there is none
  Json operator[](std::size_t i) const;         // element of an array; Missing if there is none
  Iterator begin() const;                       // iterates in the order of the text
  Iterator end() const;
  std::string_view text() const;  // "" if it is not a string
  // The value if it has this kind, otherwise nullopt.
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

// A parsed text. It owns the nodes.
class JsonDocument {
 public:
  // Throws Error, beginning with `path`, if the text is not JSON, if it is nested more than 64 levels deep, or if the
  // budget does not allow it.
  JsonDocument(std::string_view text, std::string_view path, Budget& budget);
  Json root() const { return {nodes_.data(), texts_.data()}; }

 private:
  friend class JsonBuilder;
  std::vector<Json::Node> nodes_;
  std::string texts_;
};

// Reads and parses the file with this path.
JsonDocument read_json(const std::string& file, Budget& budget);

}  // namespace lc::io
