// merge_symbols(): the loop of both kinds of BPE.
#pragma once

#include <optional>
#include <queue>
#include <vector>

#include "lightcone/io/utf8.h"

namespace lc {

template <class Number, class Join, class Emit>
void merge_symbols(std::string_view text, const Number& number, const Join& join, const Emit& emit) {
  struct Symbol {
    std::size_t at, size;
    int number, previous, next;
  };
  struct Pair {
    double cost;
    int left, right, number;
    std::size_t size;  // of both together: out of date when it no longer fits
    bool operator<(const Pair& o) const { return cost > o.cost || (cost == o.cost && left > o.left); }
  };
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = std::max<std::size_t>(1, utf8_length(text, at));
    const int i = static_cast<int>(symbols.size());
    symbols.push_back({at, n, number(text.substr(at, n)), i - 1, i + 1});
    at += n;
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  const auto view = [&](const Symbol& s) { return text.substr(s.at, s.size); };
  std::priority_queue<Pair> queue;
  const auto propose = [&](int left, int right) {
    if (left < 0 || right < 0) return;
    const Symbol &a = symbols[static_cast<std::size_t>(left)], &b = symbols[static_cast<std::size_t>(right)];
    if (a.number < 0 || b.number < 0) return;
    if (const std::optional<Joined> j = join(a.number, b.number))
      queue.push({j->cost, left, right, j->number, a.size + b.size});
  };
  for (int i = 1; i < static_cast<int>(symbols.size()); ++i) propose(i - 1, i);
  while (!queue.empty()) {
    const Pair p = queue.top();
    queue.pop();
    Symbol &a = symbols[static_cast<std::size_t>(p.left)], &b = symbols[static_cast<std::size_t>(p.right)];
    if (a.size == 0 || b.size == 0 || a.size + b.size != p.size || a.next != p.right) continue;
    a.size += b.size;
    a.number = p.number;
    a.next = b.next;
    b.size = 0;
    if (b.next >= 0) symbols[static_cast<std::size_t>(b.next)].previous = p.left;
    propose(a.previous, p.left);
    propose(p.left, a.next);
  }
  for (int i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next)
    emit(view(symbols[static_cast<std::size_t>(i)]));
}

}  // namespace lc
