// SentencePiece's table of characters and what they become: a double array (Darts), whose leaves are places in a text
// of words that end with a zero byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lc {

class CharsMap {
 public:
  CharsMap() = default;
  // The bytes of a `precompiled_charsmap`; an Error where they are none.
  explicit CharsMap(std::string_view bytes);
  bool empty() const { return units_.empty(); }

  struct Rule {
    std::size_t size;  // bytes of the text that it replaces
    std::string_view by;
  };
  // The rule with the longest, or the shortest, beginning of a text; nothing where no rule fits.
  std::optional<Rule> longest(std::string_view text) const { return find(text, true); }
  std::optional<Rule> shortest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Rule> find(std::string_view text, bool longest) const;
  std::vector<std::uint32_t> units_;
  std::string words_;
};

}  // namespace lc
