// SentencePiece's BPE with byte fallback: pieces have scores, and spaces are written as U+2581.
#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/joins.h"
#include "lightcone/io/text/pieces/merge.h"
#include "lightcone/io/text/tokenizer_kinds.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

class SentencePiece final : public CutTokenizer {
 public:
  SentencePiece(Vocabulary v, Budget* budget);

 private:
  std::string bytes_of(int id) const override;
  void encode_text(std::string_view text, bool first, std::vector<int>& out) const override;
  int byte_of(int id) const;  // -1: not a byte token
  void index(Budget* budget);
  int number(std::string_view character) const;

  StringMap ids_;
  int bytes_[256];
  // Symbols of joins_: the pieces by id, then the characters at the ends of pieces that are not pieces themselves.
  std::vector<std::string_view> characters_;  // sorted
  Joins joins_;                               // value: the joined piece
};

SentencePiece::SentencePiece(Vocabulary v, Budget* budget) : CutTokenizer(std::move(v)) {
  std::fill(std::begin(bytes_), std::end(bytes_), -1);
  for (int i = 0; i < size(); ++i) {
    const auto n = static_cast<std::size_t>(i);
    if (const int b = byte_of(i); b >= 0) {
      if (bytes_[b] < 0) bytes_[b] = i;
    } else if (type(i) != Vocabulary::Type::Control && type(i) != Vocabulary::Type::Unknown &&
               type(i) != Vocabulary::Type::Unused) {
      ids_.try_emplace(v_.pieces[n], i);
    }
  }
  index(budget);
}

void SentencePiece::index(Budget* budget) {
  if (budget) budget->take(v_.pieces.size(), sizeof(std::string_view));
  std::vector<std::string_view> symbols(v_.pieces.size());
  for (const auto& [text, id] : ids_) symbols[static_cast<std::size_t>(id)] = text;
  characters_ = characters_at_ends(ids_, budget);
  symbols.insert(symbols.end(), characters_.begin(), characters_.end());
  joins_ = joins_of(symbols, v_.pieces.size(), budget);
}

int SentencePiece::number(std::string_view character) const {
  if (const auto it = ids_.find(character); it != ids_.end()) return it->second;
  const auto at = std::lower_bound(characters_.begin(), characters_.end(), character);
  return at != characters_.end() && *at == character ? size() + static_cast<int>(at - characters_.begin()) : -1;
}

int SentencePiece::byte_of(int id) const {
  if (!v_.types.empty() && type(id) != Vocabulary::Type::Byte) return -1;
  return byte_piece(v_.pieces[static_cast<std::size_t>(id)]);
}

void SentencePiece::encode_text(std::string_view text, bool first, std::vector<int>& out) const {
  std::string s;
  const std::string_view space = v_.escape_spaces ? kSpace : std::string_view(" ");
  if (first && v_.space_prefix) s += space;
  for (char c : text) c == ' ' ? s.append(space) : s.append(1, c);
  const auto join = [&](int left, int right) -> std::optional<Joined> {
    const int id = joins_.find(left, right);
    if (id < 0) return std::nullopt;
    return Joined{
        v_.scores.empty() ? static_cast<double>(id) : -static_cast<double>(v_.scores[static_cast<std::size_t>(id)]),
        id};
  };
  const auto numbered = [&](std::string_view character) { return number(character); };
  merge_characters(s, numbered, join, [&](std::string_view symbol) {
    if (const auto it = ids_.find(symbol); it != ids_.end()) {
      out.push_back(it->second);
      return;
    }
    for (char c : symbol) {
      const int id = bytes_[static_cast<unsigned char>(c)];
      if (id < 0 && v_.unk < 0)
        throw Error("tokenizer", str_cat("no token for ", in_quotes(symbol), ", no byte tokens and no unknown token"));
      out.push_back(id < 0 ? v_.unk : id);
      if (id < 0) break;  // one unknown token per symbol
    }
  });
}

std::string SentencePiece::bytes_of(int id) const {
  const Vocabulary::Type t = type(id);
  if (t == Vocabulary::Type::Control || id == v_.bos || id == v_.eos) return "";
  if (const int b = byte_of(id); b >= 0) return std::string(1, static_cast<char>(b));
  if (t == Vocabulary::Type::Unknown) return "\xEF\xBF\xBD";
  const std::string& p = v_.pieces[static_cast<std::size_t>(id)];
  if (!v_.escape_spaces) return p;
  std::string s;
  for (std::size_t at = 0; at < p.size();) {
    const bool space = std::string_view(p).substr(at).starts_with(kSpace);
    s += space ? ' ' : p[at];
    at += space ? kSpace.size() : 1;
  }
  return s;
}

}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece(Vocabulary v, Budget* budget) {
  return std::make_shared<SentencePiece>(std::move(v), budget);
}

}  // namespace lc
