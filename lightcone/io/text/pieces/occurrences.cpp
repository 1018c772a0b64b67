#include "lightcone/io/text/pieces/occurrences.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc {

Occurrences::Occurrences(std::vector<std::pair<std::string_view, int>> texts, Budget& budget) {
  std::stable_sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  struct Range {
    std::uint32_t begin, end, parent;
  };
  constexpr std::uint32_t kMost = ~std::uint32_t{0};
  std::size_t nodes = 1;
  for (std::size_t i = 0; i < texts.size(); ++i) {  // counts bytes not shared with the previous text
    const std::string_view t = texts[i].first, before = i ? texts[i - 1].first : "";
    nodes += static_cast<std::size_t>(t.end() - std::mismatch(t.begin(), t.end(), before.begin(), before.end()).first);
  }
  if (nodes >= kMost || texts.size() >= kMost) throw Error("tokenizer", "the pieces are too long");
  budget.take(nodes, sizeof(Node) + 1 + sizeof(Range));
  nodes_.reserve(nodes);
  bytes_.reserve(nodes);
  std::vector<Range> ranges;
  ranges.reserve(nodes);
  ranges.push_back({0, static_cast<std::uint32_t>(texts.size()), 0});
  // The texts below each node are contiguous, and the bytes at its depth are its children.
  for (std::uint32_t at = 0; at < ranges.size(); ++at) {
    auto [begin, end, parent] = ranges[at];
    const std::uint32_t depth = nodes_[at].depth;
    for (; begin < end && texts[begin].first.size() == depth; ++begin)
      if (depth > 0) nodes_[at].value = texts[begin].second;
    if (depth > 1)
      nodes_[at].fall =
          step(nodes_[parent].fall, static_cast<unsigned char>(bytes_[at]));  // shallower nodes are complete
    const Node& fall = nodes_[nodes_[at].fall];
    if (at > 0) nodes_[at].shorter = fall.value >= 0 ? nodes_[at].fall : fall.shorter;
    nodes_[at].children = static_cast<std::uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = texts[begin].first[depth];
      std::uint32_t next = begin;
      while (next < end && texts[next].first[depth] == byte) ++next;
      if (at == 0) first_[static_cast<unsigned char>(byte)] = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.depth = depth + 1});
      bytes_ += byte;
      ranges.push_back({begin, next, at});
      ++nodes_[at].count;
      begin = next;
    }
  }
}

}  // namespace lc
