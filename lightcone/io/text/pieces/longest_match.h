// The longest of many pieces at each place of a text, from the left, in time proportional to the text alone, whatever
// the pieces (Song et al. 2021, "Fast WordPiece Tokenization"): a trie that knows, for each of its nodes, what to cut
// off and where to go on when the text leaves it there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/read_options.h"

namespace lc {

class LongestMatch {
 public:
  static constexpr std::size_t kBytesEach = 56;  // of memory for each byte of the pieces, at most, while it is built
                                                 // (for each that a piece does not share with another one before it)
  static constexpr int kAny = -1;                // the id of a single byte that is no piece

  // Of equal pieces the lowest id counts, empty ones never match. `any`: a byte no piece begins with matches by itself.
  // What it takes is taken from the budget, where there is one.
  LongestMatch(std::vector<std::pair<std::string_view, int>> pieces, bool any, Budget* budget = nullptr);

  // Covers the text with pieces, emit(id, bytes) for each. False, with the rest of the text left over, where none fits.
  template <class Emit>
  bool cover(std::string_view text, const Emit& emit) const {
    std::uint32_t at = kRoot;
    for (char c : text) {
      std::uint32_t next;
      while ((next = child(at, static_cast<unsigned char>(c))) == kNone)
        if (!leave(at, emit)) return false;
      at = next;
    }
    while (at != kRoot)
      if (!leave(at, emit)) return false;
    return true;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0}, kRoot = 0;
  struct Node {
    std::uint32_t children = 0, count = 0;  // side by side, in the order of their bytes
    std::uint32_t depth = 0;
    std::uint32_t next = kNone;  // where to go on when no child fits; kNone: nowhere
    std::uint32_t cuts = kNone;  // what was matched until then, into cuts_
    int id = kAny;
    unsigned char byte = 0;
    bool piece = false;
  };
  // A list of pieces as a tree: two lists, or a node that is a piece.
  struct Cuts {
    std::uint32_t first, second;  // second kNone: first is a node
  };
  void link(std::uint32_t parent, std::uint32_t node);
  std::uint32_t child(std::uint32_t at, unsigned char byte) const;

  template <class Emit>
  bool leave(std::uint32_t& at, const Emit& emit) const {
    const Node& n = nodes_[at];
    if (n.next == kNone) return false;
    std::vector<std::uint32_t> open{n.cuts};
    while (!open.empty()) {
      const Cuts c = cuts_[open.back()];
      open.pop_back();
      if (c.second == kNone) emit(nodes_[c.first].id, static_cast<std::size_t>(nodes_[c.first].depth));
      else open.push_back(c.second), open.push_back(c.first);
    }
    at = n.next;
    return true;
  }

  std::vector<Node> nodes_;  // by depth
  std::vector<Cuts> cuts_;
};

}  // namespace lc
