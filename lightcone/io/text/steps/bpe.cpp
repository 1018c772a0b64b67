// Byte pair encoding of tokenizer.json: symbols are tokens, and a list of merges defines which pairs join.
#include <algorithm>
#include <array>
#include <deque>

#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/joins.h"
#include "lightcone/io/text/pieces/merge.h"
#include "lightcone/io/text/steps/fields.h"
#include "lightcone/io/text/steps/model.h"

namespace lc {
namespace {

class Bpe final : public TokenModel {
 public:
  Bpe(const Fields& f, TokenIds ids, Budget& budget);
  void encode(std::string_view piece, std::vector<int>& out) const override;

 private:
  void read_merges(const Fields& f, Budget& budget);
  void add_merge(const Fields& f, std::string_view left, std::string_view right, int rank,
                 std::vector<Joins::Join>& joins) const;
  std::vector<MergeSymbol> symbols_of(std::string_view piece) const;
  int symbol(std::uint32_t c, std::string_view text) const { return c < near_.size() ? near_[c] : ids_.find(text); }

  TokenIds ids_;
  Joins joins_;                  // value: minus the rank of the merge
  std::vector<int> made_;        // result of each merge, by rank
  std::array<int, 0x400> near_;  // tokens of one character below U+0400
  std::array<int, 256> bytes_;
  int unknown_ = -1;
  bool has_unknown_, fuse_unknown_, byte_fallback_, whole_words_, merges_ = true;
  std::string unknown_text_, prefix_, suffix_;
};

Bpe::Bpe(const Fields& f, TokenIds ids, Budget& budget)
    : ids_(std::move(ids)),
      has_unknown_(f.has("unk_token")),
      fuse_unknown_(f.flag("fuse_unk")),
      byte_fallback_(f.flag("byte_fallback")),
      whole_words_(f.flag("ignore_merges")),
      unknown_text_(f.text("unk_token")),
      prefix_(f.text("continuing_subword_prefix")),
      suffix_(f.text("end_of_word_suffix")) {
  if (f.has("dropout")) {
    const std::optional<double> p = f["dropout"].number();
    if (!p || (*p != 0 && *p != 1))
      f.fail("'dropout' leaves out merges by chance, so that a text has no one encoding: only null, 0 and 1 are read");
    merges_ = *p == 0;
  }
  unknown_ = has_unknown_ ? ids_.find(unknown_text_) : -1;
  std::string name;
  for (std::uint32_t c = 0; c < near_.size(); ++c) {
    name.clear();
    utf8_append(name, c);
    near_[c] = ids_.find(name);
  }
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (std::size_t b = 0; b < 256; ++b)
    bytes_[b] = ids_.find(std::string("<0x") + kDigits[b >> 4] + kDigits[b & 15] + ">");
  read_merges(f, budget);
}

void Bpe::read_merges(const Fields& f, Budget& budget) {
  using io::Json;
  const Json all = f["merges"];
  if (!all.is(Json::Kind::Array)) f.fail("it has no merges");
  budget.take(all.size(), 2 * sizeof(Joins::Join) + sizeof(int));
  budget.take(ids_.size(), sizeof(std::size_t));
  std::vector<Joins::Join> joins;
  joins.reserve(all.size());
  made_.reserve(all.size());
  for (const auto& [unnamed, m] : all) {
    std::string_view left = m[0].text(), right = m[1].text();
    if (m.is(Json::Kind::String)) {
      const std::string_view s = m.text();
      if (s.starts_with("#version")) continue;
      const std::size_t space = s.find(' ');
      if (space == s.npos || s.find(' ', space + 1) != s.npos) f.fail("the merge ", in_quotes(s), " is not a pair");
      left = s.substr(0, space), right = s.substr(space + 1);
    } else if (m.size() != 2 || !m[0].is(Json::Kind::String) || !m[1].is(Json::Kind::String)) {
      f.fail("a merge is not a pair");
    }
    const auto id = [&](const std::string& token) {
      const int found = ids_.find(token);
      if (found < 0)
        f.fail("the merge of ", in_quotes(left), " and ", in_quotes(right), " needs ", in_quotes(token),
               ", which is not in the vocabulary");
      return found;
    };
    if (right.size() < prefix_.size()) f.fail("the merge of ", in_quotes(right), " lacks the prefix");
    const int rank = static_cast<int>(made_.size());
    joins.push_back({id(std::string(left)), id(std::string(right)), -rank});
    made_.push_back(id(std::string(left) + std::string(right.substr(prefix_.size()))));
  }
  int most = 0;
  for (const Joins::Join& j : joins) most = std::max({most, j.left, j.right});
  for (const int id : made_) most = std::max(most, id);
  for (const auto& [text, id] : ids_.all()) most = std::max(most, id);
  budget.take(static_cast<std::size_t>(most), sizeof(std::size_t));
  joins_ = Joins(std::move(joins), static_cast<std::size_t>(most) + 1);
}

// Returns the tokens of the single characters. All but the first have the prefix, and the last has the suffix.
std::vector<MergeSymbol> Bpe::symbols_of(std::string_view piece) const {
  std::vector<MergeSymbol> symbols;
  symbols.reserve(piece.size());
  const auto add = [&](int id) {
    const int i = static_cast<int>(symbols.size());
    symbols.push_back({0, 1, id, i - 1, i + 1});
  };
  int unknown = 0;  // pending characters without a token
  const auto flush = [&] {
    if (unknown > 0) add(unknown_);
    unknown = 0;
  };
  std::string spelled;
  each_character(piece, [&](std::uint32_t c, std::size_t begin, std::size_t end) {
    std::string_view text = piece.substr(begin, end - begin);
    const bool first = begin == 0, last = end == piece.size();
    int id;
    if ((!first && !prefix_.empty()) || (last && !suffix_.empty())) {
      spelled = first ? "" : prefix_;
      spelled += text;
      if (last) spelled += suffix_;
      text = spelled;
      id = ids_.find(text);
    } else {
      id = symbol(c, text);
    }
    if (id >= 0) {
      flush();
      add(id);
      return;
    }
    if (byte_fallback_ &&
        std::all_of(text.begin(), text.end(), [&](char b) { return bytes_[static_cast<unsigned char>(b)] >= 0; })) {
      for (const char b : text) add(bytes_[static_cast<unsigned char>(b)]);
      return;
    }
    if (!has_unknown_) return;  // dropped, as in the reference
    if (unknown_ < 0)
      throw Error("tokenizer", str_cat("the unknown token ", in_quotes(unknown_text_), " is not in the vocabulary"));
    if (!fuse_unknown_) flush();
    ++unknown;
  });
  flush();
  if (!symbols.empty()) symbols.back().next = -1;
  return symbols;
}

void Bpe::encode(std::string_view piece, std::vector<int>& out) const {
  if (whole_words_)
    if (const int id = ids_.find(piece); id >= 0) {
      out.push_back(id);
      return;
    }
  std::vector<MergeSymbol> symbols = symbols_of(piece);
  if (symbols.empty()) return;
  if (merges_)
    merge_symbols(symbols, [&](int left, int right) -> std::optional<Joined> {
      const std::optional<int> rank = joins_.at(left, right);
      if (!rank) return std::nullopt;
      return Joined{-static_cast<double>(*rank), made_[static_cast<std::size_t>(-*rank)]};
    });
  for (int i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next)
    out.push_back(symbols[static_cast<std::size_t>(i)].number);
}

}  // namespace

std::unique_ptr<TokenModel> make_bpe(io::Json model, TokenIds ids, Budget& budget) {
  const Fields f(model, "the model BPE",
                 {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                  "byte_fallback", "ignore_merges", "vocab", "merges"});
  return std::make_unique<Bpe>(f, std::move(ids), budget);
}

}  // namespace lc
