// SentencePiece's table of characters and their replacements: a double-array trie (Darts). Its leaves are offsets of
// zero-terminated texts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lc {

// A table of replacements; empty by default.
class CharsMap {
 public:
  CharsMap() = default;
  // Parses the bytes of a `precompiled_charsmap`. Throws Error if they are invalid.
  explicit CharsMap(std::string_view bytes);
  bool empty() const { return units_.empty(); }

  struct Rule {
    std::size_t size;  // bytes of the text that are replaced
    std::string_view by;
  };
  // The rule for the longest, or the shortest, prefix of a text; nullopt if no rule applies.
  std::optional<Rule> longest(std::string_view text) const {
    if (!text.empty() && plain(text[0]) && (text.size() == 1 || text[1] >= 0)) return std::nullopt;
    return find(text, true);
  }
  std::optional<Rule> shortest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Rule> find(std::string_view text, bool longest) const;
  bool plain(char c) const { return c >= 0 && plain_[static_cast<std::size_t>(c)]; }
  std::vector<std::uint32_t> units_;
  std::array<bool, 128> plain_{};  // ASCII characters of which no rule exists, alone or before another one
  std::string words_;
};

}  // namespace lc
