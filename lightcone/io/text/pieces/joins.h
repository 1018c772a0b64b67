// The pairs of BPE symbols that join to a third one. Lookup is by number, so its time does not depend on the texts.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/io/read_options.h"
#include "lightcone/io/text/pieces/string_map.h"

namespace lc {

// A table of joins.
class Joins {
 public:
  struct Join {
    int left, right, value;
  };
  Joins() = default;
  // `symbols` is the number of symbols. If pairs are equal, the least value is kept.
  Joins(std::vector<Join> all, std::size_t symbols);
  std::optional<int> at(int left, int right) const;  // the value; nullopt if they do not join
  // The value, which must not be negative; -1 if they do not join.
  int find(int left, int right) const { return at(left, right).value_or(-1); }

 private:
  std::vector<Join> all_;           // sorted by left, then by right
  std::vector<std::size_t> begin_;  // index into all_ of each left symbol
};

// Returns all joins of two symbols to one of the first `pieces` symbols; the value is that piece. Empty symbols are
// ignored. The time is proportional to the total length of the texts, times a logarithm.
Joins joins_of(std::span<const std::string_view> symbols, std::size_t pieces, Budget* budget);

// Returns the characters, sorted, that begin or end a piece but are not pieces: merges encounter these, too.
std::vector<std::string_view> characters_at_ends(const StringMap& pieces, Budget* budget);

}  // namespace lc
