// Covers a text with the longest matching pieces from the left, in time proportional to the text only, whatever the
// pieces (Song et al. 2021, "Fast WordPiece Tokenization"): each node of a trie holds the pieces to emit and the node
// to continue at if the text leaves the trie there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/read_options.h"

namespace lc {

// A trie of pieces.
class LongestMatch {
 public:
  // Maximum memory for each byte of the pieces, except for bytes in a prefix that a piece shares with the previous one,
  // during construction.
  static constexpr std::size_t kBytesEach = 56;
  static constexpr int kAny = -1;  // the id of a single byte that is not a piece

  // If pieces are equal, the one with the lowest id is kept; empty ones never match. If `any`, bytes with which no
  // piece begins match alone, with id kAny. Memory is taken from the budget if there is one.
  LongestMatch(std::vector<std::pair<std::string_view, int>> pieces, bool any, Budget* budget = nullptr);

  // Covers the text with pieces and calls emit(id, bytes) for each. Returns false, leaving the rest of the text, if no
  // piece fits.
  template <class Emit>
  bool cover(std::string_view text, const Emit& emit) const {
    std::uint32_t at = kRoot;
    for (char c : text) {
      std::uint32_t next;
      if (at == kRoot) {  // a byte that begins nothing longer
        next = child(kRoot, static_cast<unsigned char>(c));
        if (next != kNone && nodes_[next].count == 0) {
          emit(nodes_[next].id, 1);
          continue;
        }
      }
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
    std::uint32_t children = 0, count = 0;  // range of nodes, sorted by byte
    std::uint32_t depth = 0;
    std::uint32_t next = kNone;  // node to continue at if no child fits; kNone: none
    std::uint32_t cuts = kNone;  // pieces matched so far, index into cuts_
    int id = kAny;
    bool piece = false;
  };
  // A list of pieces as a binary tree: two lists, or a node that is a piece.
  struct Cuts {
    std::uint32_t first, second;  // if second is kNone, first is a node
  };
  void link(std::uint32_t parent, std::uint32_t node);
  std::uint32_t child(std::uint32_t at, unsigned char byte) const;

  template <class Emit>
  bool leave(std::uint32_t& at, const Emit& emit) const {
    const Node& n = nodes_[at];
    if (n.next == kNone) return false;
    if (const Cuts only = cuts_[n.cuts]; only.second == kNone) {
      emit(nodes_[only.first].id, static_cast<std::size_t>(nodes_[only.first].depth));
      at = n.next;
      return true;
    }
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

  std::vector<Node> nodes_;  // sorted by depth
  std::string bytes_;        // the byte that leads to each node
  std::vector<Cuts> cuts_;
};

}  // namespace lc
