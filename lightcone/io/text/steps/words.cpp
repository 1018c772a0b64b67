// WordPiece, which covers a word with the longest tokens from the left, and WordLevel, of which the tokens are words.
#include <limits>

#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/longest_match.h"
#include "lightcone/io/text/steps/fields.h"
#include "lightcone/io/text/steps/model.h"

namespace lc {
namespace {

class WholeWords final : public TokenModel {
 public:
  WholeWords(const Fields& f, TokenIds ids)
      : ids_(std::move(ids)), unknown_text_(f.text_or("unk_token", "<unk>")), unknown_(ids_.find(unknown_text_)) {}
  void encode(std::string_view piece, std::vector<int>& out) const override {
    int id = ids_.find(piece);
    if (id < 0) id = unknown_;
    if (id < 0)
      throw Error("tokenizer", str_cat("the unknown token ", in_quotes(unknown_text_), " is not in the vocabulary"));
    out.push_back(id);
  }

 private:
  TokenIds ids_;
  std::string unknown_text_;
  int unknown_;
};

class PartsOfWords final : public TokenModel {
 public:
  PartsOfWords(const Fields& f, TokenIds ids, Budget& budget);
  void encode(std::string_view piece, std::vector<int>& out) const override;

 private:
  // Marks the beginning of a word, for tokens that begin a word. No text contains this byte.
  static constexpr char kBegin = '\xFF';
  TokenIds ids_;
  std::vector<std::string> beginnings_;
  LongestMatch tokens_;
  std::size_t longest_;
  std::string unknown_text_;
  int unknown_;
  static LongestMatch tokens(const TokenIds& ids, const Fields& f, std::vector<std::string>& beginnings,
                             Budget& budget);
};

LongestMatch PartsOfWords::tokens(const TokenIds& ids, const Fields& f, std::vector<std::string>& beginnings,
                                  Budget& budget) {
  const std::string_view prefix = f.text_or("continuing_subword_prefix", "##");
  std::size_t bytes = 0;
  for (const auto& [text, id] : ids.all()) bytes += text.size();
  budget.take(bytes);
  budget.take(ids.size(), sizeof(std::string) + 24 + 2 * sizeof(std::pair<std::string_view, int>));
  std::vector<std::pair<std::string_view, int>> all;
  beginnings.reserve(ids.size());  // tokens refer to its elements
  for (const auto& [text, id] : ids.all()) {
    if (text.empty()) continue;
    all.emplace_back(beginnings.emplace_back(std::string(1, kBegin) + std::string(text)), id);
    if (text.starts_with(prefix)) all.emplace_back(text.substr(prefix.size()), id);
  }
  return LongestMatch(std::move(all), false, &budget);
}

PartsOfWords::PartsOfWords(const Fields& f, TokenIds ids, Budget& budget)
    : ids_(std::move(ids)),
      tokens_(tokens(ids_, f, beginnings_, budget)),
      longest_(static_cast<std::size_t>(
          f.number("max_input_chars_per_word", 100, 0, std::numeric_limits<std::int64_t>::max()))),
      unknown_text_(f.text_or("unk_token", "[UNK]")),
      unknown_(ids_.find(unknown_text_)) {}

void PartsOfWords::encode(std::string_view piece, std::vector<int>& out) const {
  const std::size_t before = out.size();
  std::string marked;
  marked.reserve(piece.size() + 1);
  (marked += kBegin) += piece;
  if (count_characters(piece) <= longest_ && tokens_.cover(marked, [&](int id, std::size_t) { out.push_back(id); }))
    return;
  out.resize(before);
  if (unknown_ < 0)
    throw Error("tokenizer", str_cat("the unknown token ", in_quotes(unknown_text_), " is not in the vocabulary"));
  out.push_back(unknown_);
}

}  // namespace

std::unique_ptr<TokenModel> make_words(io::Json model, TokenIds ids, Budget& budget) {
  if (model_type(model) == "WordLevel")
    return std::make_unique<WholeWords>(Fields(model, "the model WordLevel", {"type", "vocab", "unk_token"}),
                                        std::move(ids));
  return std::make_unique<PartsOfWords>(
      Fields(model, "the model WordPiece",
             {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}),
      std::move(ids), budget);
}

}  // namespace lc
