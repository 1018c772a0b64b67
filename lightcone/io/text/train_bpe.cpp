#include "lightcone/io/text/train_bpe.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/io/text/tokenizer_kinds.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

bool in_word(std::string_view c) {
  const unsigned char b = static_cast<unsigned char>(c[0]);
  return (c.size() > 1 && c != kSpace) || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '\'';
}

// Calls `each` for the characters of a text, with `space` for a space.
template <class Each>
void each_character(const std::string& text, std::string_view space, const Each& each) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = utf8_length(text, at);
    if (n == 0) throw Error("train_bpe", str_cat("the text is not UTF-8 at byte ", at));
    const std::string_view c = std::string_view(text).substr(at, n);
    each(c == " " ? space : c);
    at += n;
  }
}

using Pair = std::pair<int, int>;
struct PairHash {
  std::size_t operator()(const Pair& p) const {
    return static_cast<std::size_t>(p.first) * 0x9E3779B97F4A7C15u ^ static_cast<std::size_t>(p.second);
  }
};
struct Word {
  std::vector<int> symbols;
  std::int64_t count;
};

// Counts pairs, with the words that contain each, updated after each merge.
class Merger {
 public:
  void add(const std::string& word, std::int64_t count);
  void begin();
  // Merges the most frequent pair to one symbol. Returns false if there is none.
  bool merge();
  const std::vector<std::string>& symbols() const { return texts_; }

 private:
  int symbol(std::string_view text) {
    const auto [it, fresh] = ids_.try_emplace(std::string(text), static_cast<int>(texts_.size()));
    if (fresh) texts_.emplace_back(text);
    return it->second;
  }
  std::string text(const Pair& p) const { return texts_[index(p.first)] + texts_[index(p.second)]; }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  void count(std::size_t word, std::int64_t sign);
  Pair most_frequent() const;
  std::vector<std::string> texts_;
  std::map<std::string, int, std::less<>> ids_;
  std::vector<Word> words_;
  std::unordered_map<Pair, std::int64_t, PairHash> counts_;
  std::unordered_map<Pair, std::unordered_set<std::size_t>, PairHash> where_;
};

void Merger::add(const std::string& word, std::int64_t count) {
  Word w{{}, count};
  each_character(word, " ", [&](std::string_view c) { w.symbols.push_back(symbol(c)); });
  words_.push_back(std::move(w));
}
void Merger::begin() {
  for (std::size_t k = 0; k < words_.size(); ++k) count(k, 1);
}
void Merger::count(std::size_t word, std::int64_t sign) {
  const Word& w = words_[word];
  for (std::size_t i = 0; i + 1 < w.symbols.size(); ++i) {
    const Pair p{w.symbols[i], w.symbols[i + 1]};
    counts_[p] += sign * w.count;
    if (sign > 0) where_[p].insert(word);
  }
}

Pair Merger::most_frequent() const {
  const std::pair<const Pair, std::int64_t>* best = nullptr;
  for (const auto& entry : counts_) {
    if (entry.second <= 0 || (best && entry.second < best->second)) continue;
    const auto texts = [&](const Pair& p) { return std::tie(texts_[index(p.first)], texts_[index(p.second)]); };
    if (!best || entry.second > best->second || texts(entry.first) > texts(best->first)) best = &entry;
  }
  return best ? best->first : Pair{-1, -1};
}

bool Merger::merge() {
  const Pair p = most_frequent();
  if (p.first < 0) return false;
  const int joined = symbol(text(p));
  for (const std::size_t k : std::exchange(where_[p], {})) {
    count(k, -1);
    std::vector<int>& s = words_[k].symbols;
    for (std::size_t i = 0; i + 1 < s.size(); ++i)
      if (s[i] == p.first && s[i + 1] == p.second)
        s[i] = joined, s.erase(s.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    count(k, 1);
  }
  counts_.erase(p);
  return true;
}

// Counts the words of all texts: an optional space followed by letters or by one other character.
std::map<std::string, std::int64_t> words_of(std::span<const std::string> texts) {
  std::map<std::string, std::int64_t> counts;
  for (const std::string& text : texts) {
    std::vector<std::string_view> c{kSpace};
    each_character(text, kSpace, [&](std::string_view one) { c.push_back(one); });
    for (std::size_t i = 0; i < c.size();) {
      std::string word;
      if (c[i] == kSpace && i + 1 < c.size()) word += c[i++];
      const bool letters = in_word(c[i]);
      do word += c[i++];
      while (letters && i < c.size() && in_word(c[i]));
      ++counts[word];
    }
  }
  return counts;
}

void add(Vocabulary& v, std::string piece, float score, Vocabulary::Type type) {
  v.pieces.push_back(std::move(piece));
  v.scores.push_back(score);
  v.types.push_back(type);
}

}  // namespace

Vocabulary train_bpe(std::span<const std::string> texts, const BpeOptions& o) {
  using Type = Vocabulary::Type;
  Vocabulary v;
  v.kind = Vocabulary::Kind::SentencePiece;
  v.unk = 0, v.bos = 1, v.eos = 2, v.add_bos = true;
  v.space_prefix = o.merges;
  add(v, "<unk>", 0, Type::Unknown), add(v, "<s>", 0, Type::Control), add(v, "</s>", 0, Type::Control);
  for (int b = 0; o.byte_fallback && b < 256; ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(b));
    add(v, name, 0, Type::Byte);
  }
  std::set<std::string, std::less<>> characters;
  for (const std::string& text : texts)
    each_character(text, kSpace, [&](std::string_view c) {
      if (!characters.contains(c)) characters.emplace(c);
    });
  if (o.merges) characters.emplace(kSpace);
  const auto size = static_cast<std::size_t>(o.size);
  if (o.size < 1 || v.pieces.size() + characters.size() > size)
    throw Error("train_bpe", str_cat("a vocabulary of ", o.size, " pieces has no room for ", v.pieces.size(),
                                     " special ones and the ", characters.size(), " characters of the text"));
  if (o.merges) {
    Merger m;
    for (const auto& [word, count] : words_of(texts)) m.add(word, count);
    m.begin();
    std::size_t first = m.symbols().size();
    while (v.pieces.size() + characters.size() < size && m.merge())
      for (; first < m.symbols().size(); ++first) add(v, m.symbols()[first], -static_cast<float>(first), Type::Normal);
  }
  for (const std::string& c : characters) add(v, c, -1e6f - static_cast<float>(v.pieces.size()), Type::Normal);
  while (v.pieces.size() < size) add(v, str_cat("<unused", v.pieces.size(), ">"), -2e6f, Type::Unused);
  return v;
}

}  // namespace lc
