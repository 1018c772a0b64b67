// Unigram (Kudo 2018): the segmentation of a text into tokens with the largest sum of scores.
#include <algorithm>
#include <limits>

#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/occurrences.h"
#include "lightcone/io/text/steps/fields.h"
#include "lightcone/io/text/steps/model.h"

namespace lc {
namespace {

class Unigram final : public TokenModel {
 public:
  Unigram(const Fields& f, TokenIds ids, const std::vector<ModelToken>& tokens, Budget& budget);
  void encode(std::string_view piece, std::vector<int>& out) const override;

 private:
  struct Best {  // the best segmentation that ends at a position
    double score = 0;
    std::size_t begin = 0;  // beginning of the last token
    int id = -1;            // -1: an unknown character
    bool reached = false;
  };
  void emit_unknown(std::string_view text, std::vector<int>& out) const;

  TokenIds ids_;
  std::vector<double> scores_;
  Occurrences tokens_;
  double unknown_score_ = 0;
  int unknown_;
  bool byte_fallback_;
};

Unigram::Unigram(const Fields& f, TokenIds ids, const std::vector<ModelToken>& tokens, Budget& budget)
    : ids_(std::move(ids)),
      unknown_(static_cast<int>(f.number("unk_id", -1, 0, std::numeric_limits<int>::max() - 1))),
      byte_fallback_(f.flag("byte_fallback")) {
  if (unknown_ >= static_cast<int>(tokens.size())) f.fail("'unk_id' is beyond the vocabulary");
  budget.take(tokens.size(), 2 * sizeof(std::pair<std::string_view, int>) + sizeof(double));
  std::vector<std::pair<std::string_view, int>> texts;
  double least = std::numeric_limits<double>::infinity();
  for (const ModelToken& t : tokens) {
    texts.emplace_back(t.text, static_cast<int>(t.id));
    scores_.push_back(t.score);
    least = std::min(least, t.score);
  }
  tokens_ = Occurrences(std::move(texts), budget);
  constexpr double kPenalty = 10;
  unknown_score_ = least - kPenalty;
}

void Unigram::encode(std::string_view piece, std::vector<int>& out) const {
  std::vector<Best> best(piece.size() + 1);
  best[0].reached = true;
  std::size_t from = 0;  // beginning of the last character
  bool single = false;   // true if it is a token
  const auto offer = [&](std::size_t begin, std::size_t end, double score, int id) {
    const double sum = score + best[begin].score;
    Best& b = best[end];
    if (!b.reached || sum > b.score) b = {sum, begin, id, true};
  };
  tokens_.each(
      piece,
      [&](std::size_t end, std::size_t size, int id) {
        offer(end - size, end, scores_[static_cast<std::size_t>(id)], id);
        single = single || end - size == from;
      },
      [&](std::size_t end) {
        if (end < piece.size() && (static_cast<unsigned char>(piece[end]) & 0xC0) == 0x80) return;
        if (!single) {
          if (unknown_ < 0) throw Error("tokenizer", "the text has an unknown character, and the model no 'unk_id'");
          offer(from, end, unknown_score_, -1);
        }
        from = end, single = false;
      });
  struct Found {
    std::size_t begin, end;
    int id;  // -1: unknown
  };
  std::vector<Found> found;  // from the end; adjacent unknown tokens are merged
  for (std::size_t end = piece.size(); end > 0; end = best[end].begin) {
    const Best& b = best[end];
    const int id = b.id == unknown_ ? -1 : b.id;
    if (id < 0 && !found.empty() && found.back().id < 0) found.back().begin = b.begin;
    else found.push_back({b.begin, end, id});
  }
  for (std::size_t i = found.size(); i-- > 0;)
    if (found[i].id >= 0) out.push_back(found[i].id);
    else emit_unknown(piece.substr(found[i].begin, found[i].end - found[i].begin), out);
}

// Merged characters may be a token, which no segmentation chose.
void Unigram::emit_unknown(std::string_view text, std::vector<int>& out) const {
  if (const int id = ids_.find(text); id >= 0) {
    out.push_back(id);
    return;
  }
  if (byte_fallback_) {
    const std::size_t before = out.size();
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (const char c : text) {
      const auto b = static_cast<unsigned char>(c);
      const int id = ids_.find(std::string("<0x") + kDigits[b >> 4] + kDigits[b & 15] + ">");
      if (id < 0) break;
      out.push_back(id);
    }
    if (out.size() == before + text.size()) return;
    out.resize(before);
  }
  if (unknown_ < 0) throw Error("tokenizer", "the text has an unknown character, and the model no 'unk_id'");
  out.push_back(unknown_);
}

}  // namespace

std::unique_ptr<TokenModel> make_unigram(io::Json model, TokenIds ids, Budget& budget) {
  const Fields f(model, "the model Unigram", {"type", "unk_id", "vocab", "byte_fallback"});
  return std::make_unique<Unigram>(f, std::move(ids), model_tokens(model, budget), budget);
}

}  // namespace lc
