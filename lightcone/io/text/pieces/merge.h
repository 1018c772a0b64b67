// The merge loop of BPE: joins adjacent symbols, the pair of least cost first, and the leftmost of equal pairs.
#pragma once

#include <cstddef>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include "lightcone/io/utf8.h"

namespace lc {

// The cost of joining two symbols, and the number of the joined symbol.
struct Joined {
  double cost;
  int number;
};
// A symbol of a text, of `size` bytes; size 0 if it was joined to the previous symbol. Symbols with negative numbers
// are never joined.
struct MergeSymbol {
  std::size_t at, size;
  int number, previous, next;
};

// Joins adjacent symbols while join(left, right), called with their numbers, returns a value. The remaining symbols are
// linked by `next` from the first one. O(n log n).
template <class Join>
void merge_symbols(std::vector<MergeSymbol>& symbols, const Join& join) {
  struct Pair {
    double cost;
    int left, right, number;
    std::size_t size;  // size of both symbols; the pair is outdated if it differs
    bool operator<(const Pair& o) const { return cost > o.cost || (cost == o.cost && left > o.left); }
  };
  if (symbols.empty()) return;
  const auto symbol = [&](int i) -> MergeSymbol& { return symbols[static_cast<std::size_t>(i)]; };
  std::vector<Pair> pairs;
  const auto proposed = [&](int left, int right) -> std::optional<Pair> {
    if (left < 0 || right < 0) return std::nullopt;
    const MergeSymbol &a = symbol(left), &b = symbol(right);
    if (a.number < 0 || b.number < 0) return std::nullopt;
    const std::optional<Joined> j = join(a.number, b.number);
    return j ? std::optional(Pair{j->cost, left, right, j->number, a.size + b.size}) : std::nullopt;
  };
  for (int i = 1; i < static_cast<int>(symbols.size()); ++i)
    if (const auto p = proposed(i - 1, i)) pairs.push_back(*p);
  std::priority_queue<Pair> queue(std::less<Pair>(), std::move(pairs));
  while (!queue.empty()) {
    const Pair p = queue.top();
    queue.pop();
    MergeSymbol &a = symbol(p.left), &b = symbol(p.right);
    if (a.size == 0 || b.size == 0 || a.size + b.size != p.size || a.next != p.right) continue;
    a.size += b.size;
    a.number = p.number;
    a.next = b.next;
    b.size = 0;
    if (b.next >= 0) symbol(b.next).previous = p.left;
    if (const auto q = proposed(a.previous, p.left)) queue.push(*q);
    if (const auto q = proposed(p.left, a.next)) queue.push(*q);
  }
}

// Applies merge_symbols() to the characters of a text. number(text) returns the number of a symbol of one character, or
// -1. emit(text) is called for each remaining symbol.
template <class Number, class Join, class Emit>
void merge_characters(std::string_view text, const Number& number, const Join& join, const Emit& emit) {
  std::vector<MergeSymbol> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = std::max<std::size_t>(1, utf8_length(text, at));
    const int i = static_cast<int>(symbols.size());
    symbols.push_back({at, n, number(text.substr(at, n)), i - 1, i + 1});
    at += n;
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  merge_symbols(symbols, join);
  for (int i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
    const MergeSymbol& s = symbols[static_cast<std::size_t>(i)];
    emit(text.substr(s.at, s.size));
  }
}

}  // namespace lc
