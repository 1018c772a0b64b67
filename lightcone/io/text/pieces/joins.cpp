#include "lightcone/io/text/pieces/joins.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "lightcone/io/utf8.h"

namespace lc {
namespace {

bool unsigned_less(char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); }

// A symbol in the order of its text, or of its reversed text.
struct Ordered {
  std::uint64_t begin;  // the first bytes, which decide most comparisons
  int symbol;
};

// Returns for each symbol the longest other symbol that is its prefix (suffix if `backwards`); -1 if there is none. In
// lexicographic order a prefix precedes the symbols it begins, so the stack `open` holds the prefixes of the last
// symbol.
std::vector<int> longest_within(std::span<const std::string_view> symbols, bool backwards) {
  const auto text = [&](int i) { return symbols[static_cast<std::size_t>(i)]; };
  std::vector<Ordered> order;
  order.reserve(symbols.size());
  for (int i = 0; i < static_cast<int>(symbols.size()); ++i) {
    const std::string_view t = text(i);
    std::uint64_t begin = 0;
    for (std::size_t k = 0; k < 8; ++k)
      begin = begin << 8 | (k < t.size() ? static_cast<unsigned char>(t[backwards ? t.size() - 1 - k : k]) : 0);
    if (!t.empty()) order.push_back({begin, i});
  }
  std::sort(order.begin(), order.end(), [&](const Ordered& x, const Ordered& y) {
    if (x.begin != y.begin) return x.begin < y.begin;
    const std::string_view a = text(x.symbol), b = text(y.symbol);
    return backwards ? std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend(), unsigned_less) : a < b;
  });
  std::vector<int> open, found(symbols.size(), -1);
  for (const Ordered& o : order) {
    const std::string_view t = text(o.symbol);
    const auto within = [&](std::string_view s) { return backwards ? t.ends_with(s) : t.starts_with(s); };
    while (!open.empty() && !within(text(open.back()))) open.pop_back();
    if (!open.empty()) found[static_cast<std::size_t>(o.symbol)] = open.back();
    open.push_back(o.symbol);
  }
  return found;
}

}  // namespace

Joins::Joins(std::vector<Join> all, std::size_t symbols) : all_(std::move(all)), begin_(symbols + 1) {
  const auto pair = [](const Join& j) { return std::tie(j.left, j.right); };
  std::sort(all_.begin(), all_.end(), [](const Join& a, const Join& b) {
    return std::tie(a.left, a.right, a.value) < std::tie(b.left, b.right, b.value);
  });
  all_.erase(std::unique(all_.begin(), all_.end(), [&](const Join& a, const Join& b) { return pair(a) == pair(b); }),
             all_.end());
  for (const Join& j : all_) ++begin_[static_cast<std::size_t>(j.left) + 1];
  for (std::size_t i = 0; i < symbols; ++i) begin_[i + 1] += begin_[i];
}

std::optional<int> Joins::at(int left, int right) const {
  const Join* const end = all_.data() + begin_[static_cast<std::size_t>(left) + 1];
  const Join* const at = std::lower_bound(all_.data() + begin_[static_cast<std::size_t>(left)], end, right,
                                          [](const Join& j, int r) { return j.right < r; });
  return at != end && at->right == right ? std::optional(at->value) : std::nullopt;
}

Joins joins_of(std::span<const std::string_view> symbols, std::size_t pieces, Budget* budget) {
  if (budget) budget->take(symbols.size(), sizeof(Ordered) + 4 * sizeof(int) + sizeof(std::size_t));
  const std::vector<int> first = longest_within(symbols, false), last = longest_within(symbols, true);
  std::vector<int> ends;
  // The prefixes of a piece become shorter along `first`; the suffixes in `ends` become longer from the back.
  const auto each = [&](const auto& found) {
    for (std::size_t i = 0; i < pieces; ++i) {
      ends.clear();
      for (int e = last[i]; e >= 0; e = last[static_cast<std::size_t>(e)]) ends.push_back(e);
      for (int b = first[i]; b >= 0 && !ends.empty(); b = first[static_cast<std::size_t>(b)]) {
        const std::size_t rest = symbols[i].size() - symbols[static_cast<std::size_t>(b)].size();
        const auto size = [&] { return symbols[static_cast<std::size_t>(ends.back())].size(); };
        while (!ends.empty() && size() < rest) ends.pop_back();
        if (!ends.empty() && size() == rest) found(b, ends.back(), static_cast<int>(i));
      }
    }
  };
  std::size_t n = 0;
  each([&](int, int, int) { ++n; });
  if (budget) budget->take(n, sizeof(Joins::Join));
  std::vector<Joins::Join> all;
  all.reserve(n);
  each([&](int left, int right, int piece) { all.push_back({left, right, piece}); });
  return {std::move(all), symbols.size()};
}

std::vector<std::string_view> characters_at_ends(const StringMap& pieces, Budget* budget) {
  std::vector<std::string_view> found;
  const auto character = [&](std::string_view text, std::size_t at, std::size_t size) {
    if (utf8_length(text, at) != size || pieces.contains(text.substr(at, size))) return;
    if (budget) budget->take(4 * sizeof(std::string_view));
    found.push_back(text.substr(at, size));
  };
  for (const auto& [text, id] : pieces)
    for (std::size_t size = 1; size <= std::min<std::size_t>(text.size(), 4); ++size)
      character(text, 0, size), character(text, text.size() - size, size);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace lc
