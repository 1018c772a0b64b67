#include "lightcone/io/text/pieces/longest_match.h"

#include <algorithm>
#include <cstring>

#include "lightcone/base/error.h"

namespace lc {

LongestMatch::LongestMatch(std::vector<std::pair<std::string_view, int>> pieces, bool any, Budget* budget) {
  static const std::string bytes = [] {
    std::string s(256, 0);
    for (int i = 0; i < 256; ++i) s[static_cast<std::size_t>(i)] = static_cast<char>(i);
    return s;
  }();
  if (any)
    for (std::size_t i = 0; i < 256; ++i) pieces.emplace_back(std::string_view(bytes).substr(i, 1), kAny);
  std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
    const int order = a.first.compare(b.first);
    return order < 0 || (order == 0 && static_cast<unsigned>(a.second) < static_cast<unsigned>(b.second));  // kAny last
  });
  std::size_t nodes = 1;
  for (std::size_t i = 0; i < pieces.size(); ++i) {  // counts bytes not shared with the previous piece
    const std::string_view p = pieces[i].first, before = i ? pieces[i - 1].first : "";
    nodes += static_cast<std::size_t>(p.end() - std::mismatch(p.begin(), p.end(), before.begin(), before.end()).first);
  }
  if (nodes >= kNone || pieces.size() >= kNone) throw Error("tokenizer", "the pieces are too long");
  if (budget) budget->take(nodes, kBytesEach);
  nodes_.reserve(nodes);
  // The pieces below each node are contiguous, and the bytes at its depth are its children. Until a node is processed,
  // its fields hold the range of its pieces.
  nodes_.push_back({.count = static_cast<std::uint32_t>(pieces.size())});
  bytes_.reserve(nodes);
  bytes_ += '\0';
  for (std::uint32_t at = 0; at < nodes_.size(); ++at) {
    std::uint32_t begin = nodes_[at].children;
    const std::uint32_t end = begin + nodes_[at].count, depth = nodes_[at].depth;
    if (begin < end && pieces[begin].first.size() == depth) {
      nodes_[at].piece = depth > 0;
      nodes_[at].id = pieces[begin].second;
      while (begin < end && pieces[begin].first.size() == depth) ++begin;
    }
    nodes_[at].children = static_cast<std::uint32_t>(nodes_.size());
    nodes_[at].count = 0;
    while (begin < end) {
      const char byte = pieces[begin].first[depth];
      std::uint32_t next = begin;
      while (next < end && pieces[next].first[depth] == byte) ++next;
      nodes_.push_back({.children = begin, .count = next - begin, .depth = depth + 1});
      bytes_ += byte;
      ++nodes_[at].count;
      begin = next;
    }
  }
  for (std::uint32_t at = 0; at < nodes_.size(); ++at)  // parents come first
    for (std::uint32_t k = 0; k < nodes_[at].count; ++k) link(at, nodes_[at].children + k);
}

// A piece is emitted whole. Another node continues where its parent would, and then with its own byte.
void LongestMatch::link(std::uint32_t parent, std::uint32_t node) {
  Node& n = nodes_[node];
  const auto list = [&](Cuts c) {
    cuts_.push_back(c);
    return static_cast<std::uint32_t>(cuts_.size() - 1);
  };
  if (n.piece) {
    n.next = kRoot;
    n.cuts = list({node, kNone});
    return;
  }
  std::uint32_t at = nodes_[parent].next, cuts = nodes_[parent].cuts;
  while (at != kNone) {
    if (const std::uint32_t c = child(at, static_cast<unsigned char>(bytes_[node])); c != kNone) {
      n.next = c;
      n.cuts = cuts;
      return;
    }
    if (nodes_[at].next != kNone) cuts = list({cuts, nodes_[at].cuts});
    at = nodes_[at].next;
  }
}

std::uint32_t LongestMatch::child(std::uint32_t at, unsigned char byte) const {
  const Node& n = nodes_[at];
  if (n.count == 256) return n.children + byte;
  const char* begin = bytes_.data() + n.children;
  const void* found = n.count > 0 ? std::memchr(begin, byte, n.count) : nullptr;
  return found ? n.children + static_cast<std::uint32_t>(static_cast<const char*>(found) - begin) : kNone;
}

}  // namespace lc
