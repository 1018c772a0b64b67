// Finds all occurrences of many texts in another one (Aho and Corasick 1975), in time proportional to that text and to
// the number of occurrences.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/read_options.h"

namespace lc {

// An Aho-Corasick automaton.
class Occurrences {
 public:
  Occurrences() = default;
  // Values must not be negative. If texts are equal, the last one is kept. Memory is taken from the budget.
  Occurrences(std::vector<std::pair<std::string_view, int>> texts, Budget& budget);

  // For each byte, calls found(end, bytes, value) for all texts that end there, the longest first, and then
  // at_end(end).
  template <class Found, class AtEnd>
  void each(std::string_view text, const Found& found, const AtEnd& at_end) const {
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      at = step(at, static_cast<unsigned char>(text[i]));
      for (std::uint32_t n = nodes_[at].value >= 0 ? at : nodes_[at].shorter; n != 0; n = nodes_[n].shorter)
        found(i + 1, static_cast<std::size_t>(nodes_[n].depth), nodes_[n].value);
      at_end(i + 1);
    }
  }

 private:
  struct Node {
    std::uint32_t children = 0;  // index of the first child; children are contiguous and sorted by byte
    std::uint32_t depth = 0;
    std::uint32_t fall = 0;     // node of the longest proper suffix in the trie
    std::uint32_t shorter = 0;  // the longest such suffix that is a text; 0: none
    int value = -1;
    std::uint16_t count = 0;
  };
  // Returns a child; 0: none.
  std::uint32_t search(std::uint32_t at, unsigned char byte) const {
    const Node& n = nodes_[at];
    const char* begin = bytes_.data() + n.children;
    const void* found = n.count > 0 ? std::memchr(begin, byte, n.count) : nullptr;
    return found ? n.children + static_cast<std::uint32_t>(static_cast<const char*>(found) - begin) : 0;
  }
  std::uint32_t step(std::uint32_t at, unsigned char byte) const {
    for (; at != 0; at = nodes_[at].fall)
      if (const std::uint32_t c = search(at, byte)) return c;
    return first_[byte];
  }
  std::vector<Node> nodes_{Node()};
  std::string bytes_ = std::string(1, '\0');  // the byte that leads to each node
  std::array<std::uint32_t, 256> first_{};    // children of the root
};

}  // namespace lc
