// Which two symbols of BPE make a third. They are looked up by number, so that the length of their texts takes no time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/io/read_options.h"
#include "lightcone/io/text/pieces/string_map.h"

namespace lc {

class Joins {
 public:
  struct Join {
    int left, right, value;
  };
  Joins() = default;
  // `symbols`: how many there are. Of equal pairs the least value counts.
  Joins(std::vector<Join> all, std::size_t symbols);
  std::optional<int> at(int left, int right) const;  // the value; nothing when they are not joined
  int find(int left, int right) const { return at(left, right).value_or(-1); }

 private:
  std::vector<Join> all_;           // by left, then by right
  std::vector<std::size_t> begin_;  // of each left symbol
};

// Every way in which one of the first `pieces` symbols is two symbols: joins whose value is the piece. Symbols of no
// text count as absent. Time in proportion to the texts together, times a logarithm.
Joins joins_of(std::span<const std::string_view> symbols, std::size_t pieces, Budget* budget);

// The characters that a piece begins or ends with and that are no piece themselves, sorted: merges meet them, too.
std::vector<std::string_view> characters_at_ends(const StringMap& pieces, Budget* budget);

}  // namespace lc
