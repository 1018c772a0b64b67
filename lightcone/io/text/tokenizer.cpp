#include "lightcone/io/text/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lightcone/base/error.h"
#include "lightcone/io/text/pieces/longest_match.h"
#include "lightcone/io/text/steps/post_processor.h"
#include "lightcone/io/text/tokenizer_kinds.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

// Returns a matcher of the tokens to find in a text before anything else; null if there are none.
std::shared_ptr<const LongestMatch> tokens_in_text(const Vocabulary& v, bool defined, bool control) {
  std::vector<std::pair<std::string_view, int>> found;
  for (std::size_t i = 0; i < std::min(v.types.size(), v.pieces.size()); ++i)
    if (const Vocabulary::Type t = v.types[i];
        !v.pieces[i].empty() && ((defined && t == Vocabulary::Type::UserDefined) ||
                                 (control && (t == Vocabulary::Type::Control || t == Vocabulary::Type::Unknown))))
      found.emplace_back(v.pieces[i], static_cast<int>(i));
  return found.empty() ? nullptr : std::make_shared<const LongestMatch>(std::move(found), true);
}

}  // namespace

Tokenizer::Tokenizer(Vocabulary v) : v_(std::move(v)) { std::sort(v_.ends.begin(), v_.ends.end()); }

Vocabulary::Type Tokenizer::type(int id) const {
  return v_.types.empty() ? Vocabulary::Type::Normal : v_.types[static_cast<std::size_t>(id)];
}

bool Tokenizer::is_end(int id) const {
  return (id == v_.eos && id >= 0) || std::binary_search(v_.ends.begin(), v_.ends.end(), id);
}

std::string Tokenizer::piece(int id) const { return id >= 0 && id < size() ? bytes_of(id) : ""; }

std::vector<int> Tokenizer::encode(std::string_view text, bool specials, bool parse_control) const {
  require_utf8(text, "the text");
  return ids_of(text, specials, parse_control);
}

Encoding Tokenizer::encoding(std::string_view text, bool specials, bool parse_control) const {
  require_utf8(text, "the text");
  return encoding_of(std::span(&text, 1), specials, parse_control);
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second, bool specials,
                                bool parse_control) const {
  require_utf8(first, "the first text");
  require_utf8(second, "the second text");
  const std::string_view both[] = {first, second};
  return encoding_of(both, specials, parse_control);
}

Encoding Tokenizer::encode_within(std::span<const std::string_view> texts, std::size_t most) const {
  if (texts.empty() || texts.size() > 2) throw Error("tokenizer", str_cat(texts.size(), " texts, and not one or two"));
  for (const std::string_view text : texts) require_utf8(text, "the text");
  return encoding_within(texts, most);
}

Encoding Tokenizer::encoding_within(std::span<const std::string_view> texts, std::size_t most) const {
  const bool first = v_.add_bos && v_.bos >= 0, last = v_.add_eos && v_.eos >= 0;
  const bool once = first && v_.kind == Vocabulary::Kind::WordPiece;  // BERT's first token stands before the first text
  std::vector<std::vector<int>> all;
  for (const std::string_view text : texts) all.push_back(ids_of(text, false, false));
  Truncation(most).apply(all, (once ? 1 : first ? texts.size() : 0) + (last ? texts.size() : 0));
  Encoding e;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (first && !(once && i > 0)) e.ids.push_back(v_.bos);
    e.ids.insert(e.ids.end(), all[i].begin(), all[i].end());
    if (last) e.ids.push_back(v_.eos);
    e.type_ids.resize(e.ids.size(), static_cast<int>(i));
  }
  e.attention_mask.assign(e.ids.size(), 1);
  return e;
}

Encoding Tokenizer::encoding_of(std::span<const std::string_view> texts, bool specials, bool parse_control) const {
  Encoding e;
  // BERT's first token stands before the first text only.
  const bool once = specials && v_.kind == Vocabulary::Kind::WordPiece && v_.add_bos && v_.bos >= 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<int> ids = ids_of(texts[i], specials, parse_control);
    e.ids.insert(e.ids.end(), ids.begin() + (i > 0 && once ? 1 : 0), ids.end());
    e.type_ids.resize(e.ids.size(), static_cast<int>(i));
  }
  e.attention_mask.assign(e.ids.size(), 1);
  return e;
}

std::string Tokenizer::decode(std::span<const int> ids) const {
  for (const int id : ids)
    if (id < 0 || id >= size())
      throw Error("tokenizer", str_cat("token ", id, " is outside the vocabulary of ", size()));
  return text_of(ids);
}

CutTokenizer::CutTokenizer(Vocabulary v, bool defined)
    : Tokenizer(std::move(v)),
      defined_(defined ? tokens_in_text(v_, true, false) : nullptr),
      control_(tokens_in_text(v_, defined, true)) {}

std::vector<int> CutTokenizer::ids_of(std::string_view text, bool specials, bool parse_control) const {
  std::vector<int> out;
  if (specials && v_.add_bos && v_.bos >= 0) out.push_back(v_.bos);
  bool first = true;
  std::size_t begin = 0;
  const auto flush = [&](std::size_t end) {
    if (end > begin) encode_text(text.substr(begin, end - begin), first, out), first = false;
  };
  if (const auto& tokens = parse_control ? control_ : defined_) {
    std::size_t at = 0;
    tokens->cover(text, [&](int id, std::size_t bytes) {
      at += bytes;
      if (id == LongestMatch::kAny) return;
      flush(at - bytes);
      out.push_back(id);
      begin = at;
      first = v_.kind == Vocabulary::Kind::SentencePiece;  // after a special token, SentencePiece adds the space again
    });
  }
  flush(text.size());
  if (specials && v_.add_eos && v_.eos >= 0) out.push_back(v_.eos);
  return out;
}

std::string CutTokenizer::text_of(std::span<const int> ids) const {
  std::string s;
  bool first = true;
  for (const int id : ids) {
    std::string p = bytes_of(id);
    if (first && !p.empty()) {
      if (v_.kind == Vocabulary::Kind::SentencePiece && v_.space_prefix && p.front() == ' ') p.erase(0, 1);
      if (v_.kind == Vocabulary::Kind::WordPiece && p.front() == ' ') p.erase(0, 1);
      first = false;
    }
    s += p;
  }
  return s;
}

std::shared_ptr<const Tokenizer> make_tokenizer(Vocabulary v) { return make_tokenizer(std::move(v), nullptr); }

std::shared_ptr<const Tokenizer> make_tokenizer(Vocabulary v, Budget* budget) {
  const auto n = v.pieces.size();
  if (n == 0) throw Error("tokenizer", "the vocabulary is empty");
  if (n > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error("tokenizer", "the vocabulary is too large");
  if (!v.types.empty() && v.types.size() != n)
    throw Error("tokenizer", str_cat(v.types.size(), " token types for ", n, " tokens"));
  if (!v.scores.empty() && v.scores.size() != n)
    throw Error("tokenizer", str_cat(v.scores.size(), " scores for ", n, " tokens"));
  if (std::any_of(v.scores.begin(), v.scores.end(), [](float s) { return std::isnan(s); }))
    throw Error("tokenizer", "a score is not a number");
  for (int* id : {&v.bos, &v.eos, &v.unk})
    if (*id < -1 || *id >= static_cast<int>(n))
      throw Error("tokenizer", str_cat("the special token ", *id, " is outside the vocabulary of ", n));
  switch (v.kind) {
    case Vocabulary::Kind::SentencePiece: return make_sentencepiece(std::move(v), budget);
    case Vocabulary::Kind::ByteBpe: return make_byte_bpe(std::move(v));
    case Vocabulary::Kind::WordPiece: return make_wordpiece(std::move(v));
    case Vocabulary::Kind::Pipeline: break;
  }
  throw Error("tokenizer",
              "a vocabulary of a tokenizer.json or tokenizer.model does not say how texts are cut: "
              "load_tokenizer() makes a tokenizer of the file");
}

}  // namespace lc
