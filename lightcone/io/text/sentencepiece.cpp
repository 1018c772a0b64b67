// Encoding and decoding as in SentencePiece's library (Kudo and Richardson 2018): normalisation rules, then Unigram,
// BPE, words or characters.
#include "lightcone/io/text/sentencepiece.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <functional>

#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/joins.h"
#include "lightcone/io/text/pieces/longest_match.h"
#include "lightcone/io/text/pieces/merge.h"
#include "lightcone/io/text/pieces/occurrences.h"
#include "lightcone/io/text/tokenizer_kinds.h"

namespace lc {
namespace {

using Type = Vocabulary::Type;

// The best segmentation up to each position of a text, found from the left. The reference sums floats, and takes the
// sum away from all positions ahead when it becomes large; both decide between segmentations of nearly equal scores.
class BestPaths {
 public:
  explicit BestPaths(std::size_t size) : nodes_(size + 1) {}
  // Offers a piece. The pieces of one end must come in the order of their beginnings, which must be settled.
  void offer(std::size_t end, std::size_t size, float score, int id) {
    Node& n = nodes_[end];
    const Node& before = nodes_[end - size];
    lower(n, before.lowered);
    const float sum = score + before.score;
    if (n.size == 0 || sum > n.score) n.score = sum, n.size = static_cast<std::uint32_t>(size), n.id = id;
  }
  // Ends the offers for a position, which must be reached.
  void settle(std::size_t end) {
    Node& n = nodes_[end];
    lower(n, offsets_.size());
    constexpr float kLarge = 100000;
    if (n.score < -kLarge || n.score > kLarge) offsets_.push_back(n.score), lower(n, offsets_.size());
  }
  // Calls piece(end, size, id) for the pieces of the best segmentation, in order.
  template <class Piece>
  void each(const Piece& piece) const {
    std::vector<std::size_t> ends;
    for (std::size_t end = nodes_.size() - 1; end > 0; end -= nodes_[end].size) ends.push_back(end);
    for (std::size_t i = ends.size(); i-- > 0;) piece(ends[i], nodes_[ends[i]].size, nodes_[ends[i]].id);
  }

 private:
  struct Node {
    float score = 0;
    int id = -1;
    std::uint32_t size = 0;     // bytes of the last piece; 0: not reached
    std::uint32_t lowered = 0;  // number of offsets that were taken away
  };
  void lower(Node& n, std::size_t offsets) const {
    for (; n.lowered < offsets; ++n.lowered)
      if (n.size > 0) n.score -= offsets_[n.lowered];
  }
  std::vector<Node> nodes_;
  std::vector<float> offsets_;
};

class ModelTokenizer final : public CutTokenizer {
 public:
  ModelTokenizer(Vocabulary v, SentencePieceModel m, Budget& budget);

 private:
  void encode_text(std::string_view text, bool first, std::vector<int>& out) const override;
  std::string text_of(std::span<const int> ids) const override;
  std::string bytes_of(int id) const override;
  std::string normalized(std::string_view text, const SentencePieceRules& rules, bool own) const;
  int id_of(std::string_view piece) const;

  // The algorithms that cover a text with pieces. They call emit(piece, id) in order.
  using Emit = std::function<void(std::string_view, int)>;
  void unigram(std::string_view text, const Emit& emit) const;
  void bpe(std::string_view text, const Emit& emit) const;
  void words(std::string_view text, const Emit& emit) const;
  void characters(std::string_view text, const Emit& emit) const;
  // Calls part(begin, end, defined) for the user-defined symbols of a text and for the characters between them;
  // `defined` is true for the symbols.
  template <class Part>
  void each_symbol(std::string_view text, const Part& part) const;

  void index_pieces(Budget& budget);
  void index_unigram(Budget& budget);
  void index_joins(Budget& budget);
  std::string_view text_of_symbol(int number) const {
    return number < size() ? std::string_view(v_.pieces[static_cast<std::size_t>(number)])
                           : characters_[static_cast<std::size_t>(number - size())];
  }
  int number_of(std::string_view character) const;
  int search(std::string_view character) const;

  SentencePieceModel m_;
  StringMap ids_;  // pieces that occur in texts
  int bytes_[256];
  std::shared_ptr<const LongestMatch> defined_;
  Occurrences symbols_;  // the same as defined_, for texts in which rules apply between them
  // Unigram
  Occurrences occurrences_;
  std::vector<float> scores_;
  float unknown_score_ = 0;
  // BPE: symbols are pieces by id, then the characters at the ends of pieces that are not pieces themselves.
  std::vector<std::string_view> characters_;  // sorted
  Joins joins_;                               // value: the joined piece
  std::array<int, 128> ascii_{};              // symbols of single bytes
};

ModelTokenizer::ModelTokenizer(Vocabulary v, SentencePieceModel m, Budget& budget)
    : CutTokenizer(std::move(v), m.cuts_defined), m_(std::move(m)) {
  index_pieces(budget);
  if (m_.kind == SentencePieceModel::Unigram) index_unigram(budget);
  if (m_.kind == SentencePieceModel::Bpe) index_joins(budget);
}

void ModelTokenizer::index_pieces(Budget& budget) {
  StringMap reserved;  // pieces that do not occur in texts
  budget.take(v_.pieces.size(), kIndexBytes);
  std::fill(std::begin(bytes_), std::end(bytes_), -1);
  std::vector<std::pair<std::string_view, int>> defined;
  for (int i = 0; i < size(); ++i) {
    const std::string& p = v_.pieces[static_cast<std::size_t>(i)];
    if (std::isnan(v_.scores[static_cast<std::size_t>(i)]))
      throw Error("tokenizer", str_cat("the score of the piece ", i, " is not a number"));
    if (m_.byte_fallback && p == std::string_view("\0", 1)) {  // written by converters, beside <0x00>
      v_.types[static_cast<std::size_t>(i)] = Type::Unused;
      continue;
    }
    const bool in_texts = type(i) == Type::Normal || type(i) == Type::UserDefined || type(i) == Type::Unused;
    if (!(in_texts ? ids_ : reserved).try_emplace(p, i).second)
      throw Error("tokenizer", str_cat("the piece ", in_quotes(p), " is there twice"));
    if (type(i) == Type::Unknown) {
      if (v_.unk >= 0) throw Error("tokenizer", "there are two unknown tokens");
      v_.unk = i;
    } else if (type(i) == Type::Byte) {
      if (!m_.byte_fallback || byte_piece(p) < 0)
        throw Error("tokenizer", str_cat("the byte piece ", in_quotes(p),
                                         m_.byte_fallback ? " is none" : " is there, and byte_fallback is not set"));
      bytes_[byte_piece(p)] = i;
    } else if (type(i) == Type::UserDefined) {
      defined.emplace_back(p, i);
    }
  }
  if (v_.unk < 0 && !m_.byte_fallback) throw Error("tokenizer", "there is no unknown token");
  if (m_.byte_fallback && std::find(std::begin(bytes_), std::end(bytes_), -1) != std::end(bytes_))
    throw Error("tokenizer", "byte_fallback is set, and there are not 256 byte pieces");
  if (defined.empty()) return;
  if (!m_.rules.map.empty()) symbols_ = Occurrences(defined, budget);
  defined_ = std::make_shared<const LongestMatch>(std::move(defined), true, &budget);
}

void ModelTokenizer::index_unigram(Budget& budget) {
  float least = FLT_MAX;
  for (int i = 0; i < size(); ++i) {
    const float score = v_.scores[static_cast<std::size_t>(i)];
    if (std::isinf(score)) throw Error("tokenizer", str_cat("the score of the piece ", i, " is infinite"));
    if (type(i) == Type::Normal) least = std::min(least, score);
  }
  budget.take(v_.pieces.size(), 2 * sizeof(std::pair<std::string_view, int>) + sizeof(float));
  unknown_score_ = least - 10.0f;
  std::vector<std::pair<std::string_view, int>> texts;
  for (int i = 0; i < size(); ++i) {
    const auto n = static_cast<std::size_t>(i);
    // The score of a user-defined symbol is so high that it is always chosen.
    scores_.push_back(type(i) == Type::UserDefined
                          ? static_cast<float>(0.1 * (static_cast<double>(v_.pieces[n].size()) - 1))
                          : v_.scores[n]);
    if (type(i) == Type::Normal || type(i) == Type::UserDefined) texts.emplace_back(v_.pieces[n], i);
  }
  occurrences_ = Occurrences(std::move(texts), budget);
}

void ModelTokenizer::index_joins(Budget& budget) {
  budget.take(v_.pieces.size(), sizeof(std::string_view));
  std::vector<std::string_view> symbols(v_.pieces.size());
  for (const auto& [text, id] : ids_) symbols[static_cast<std::size_t>(id)] = text;
  characters_ = characters_at_ends(ids_, &budget);
  symbols.insert(symbols.end(), characters_.begin(), characters_.end());
  joins_ = joins_of(symbols, v_.pieces.size(), &budget);
  for (std::size_t c = 0; c < ascii_.size(); ++c) ascii_[c] = search(std::string(1, static_cast<char>(c)));
}

int ModelTokenizer::id_of(std::string_view piece) const {
  const auto at = ids_.find(piece);
  return at == ids_.end() ? v_.unk : at->second;
}

int ModelTokenizer::number_of(std::string_view character) const {
  return character.size() == 1 && character[0] >= 0 ? ascii_[static_cast<std::size_t>(character[0])]
                                                    : search(character);
}

int ModelTokenizer::search(std::string_view character) const {
  if (const auto it = ids_.find(character); it != ids_.end()) return it->second;
  const auto at = std::lower_bound(characters_.begin(), characters_.end(), character);
  return at != characters_.end() && *at == character ? size() + static_cast<int>(at - characters_.begin()) : -1;
}

template <class Part>
void ModelTokenizer::each_symbol(std::string_view text, const Part& part) const {
  std::size_t at = 0, done = 0;
  const auto plain = [&](std::size_t end) {
    for (std::size_t n; done < end; done += n) {
      n = std::max<std::size_t>(1, utf8_length(text, done));
      part(done, done + n, false);
    }
  };
  if (defined_)
    defined_->cover(text, [&](int id, std::size_t bytes) {
      at += bytes;
      if (id == LongestMatch::kAny) return;
      plain(at - bytes);
      part(at - bytes, at, true);
      done = at;
    });
  plain(text.size());
}

// Applies the rules. `own` is true for a text to be encoded, in which user-defined symbols stay unchanged.
std::string ModelTokenizer::normalized(std::string_view text, const SentencePieceRules& rules, bool own) const {
  std::string out;
  const std::string_view space = rules.escape_whitespaces ? kSpace : std::string_view(" ");
  const bool suffix = own && m_.whitespace_as_suffix, trim = rules.remove_extra_whitespaces;
  const std::size_t limit = (1u << 20) + 256 * text.size();
  bool begun = false, spaced = trim;
  const auto put = [&](std::string_view s) {
    if (out.size() > limit) throw Error("tokenizer", "the tokenizer's table of characters makes too much of the text");
    if (!begun && trim && s == " ") return;
    if (!begun && rules.add_dummy_prefix && !suffix) out += space;
    begun = true;
    while (spaced && s.starts_with(' ')) s.remove_prefix(1);
    for (const char c : s) c == ' ' && rules.escape_whitespaces ? out.append(space) : out.append(1, c);
    if (!s.empty()) spaced = trim && s.ends_with(' ');
  };
  std::size_t done = 0;
  const auto rest = [&](std::size_t end) {  // a rule may extend beyond `end`, into a symbol
    while (done < end) {
      const std::optional<CharsMap::Rule> rule = rules.map.longest(text.substr(done));
      const std::size_t n = rule ? rule->size : std::max<std::size_t>(1, utf8_length(text, done));
      put(rule ? rule->by : text.substr(done, n));
      done += n;
    }
  };
  if (own && defined_ && rules.map.empty()) {
    each_symbol(text,
                [&](std::size_t begin, std::size_t end, bool) { put(text.substr(begin, end - begin)), done = end; });
  } else if (own && defined_) {
    std::vector<std::size_t> ends(text.size());  // end of the longest symbol at each position
    symbols_.each(
        text, [&](std::size_t end, std::size_t bytes, int) { ends[end - bytes] = end; }, [](std::size_t) {});
    while (done < text.size())
      if (const std::size_t end = ends[done]; end > 0) put(text.substr(done, end - done)), done = end;
      else rest(done + 1);
  } else {
    rest(text.size());
  }
  if (!begun) return out;
  while (trim && out.ends_with(space)) out.resize(out.size() - space.size());
  if (suffix && rules.add_dummy_prefix) out += space;
  return out;
}

void ModelTokenizer::encode_text(std::string_view text, bool, std::vector<int>& out) const {
  const std::string s = normalized(text, m_.rules, true);
  if (s.empty()) return;
  bool unknown = false;  // adjacent unknown pieces become one token
  const Emit emit = [&](std::string_view piece, int id) {
    const bool before = unknown;
    if (id >= 0 && type(id) == Type::Unused) id = v_.unk;
    unknown = id == v_.unk;
    if (unknown && m_.byte_fallback) {
      for (const char c : piece) out.push_back(bytes_[static_cast<unsigned char>(c)]);
    } else if (!unknown || !before) {
      out.push_back(id);
    }
  };
  switch (m_.kind) {
    case SentencePieceModel::Unigram: return unigram(s, emit);
    case SentencePieceModel::Bpe: return bpe(s, emit);
    case SentencePieceModel::Word: return words(s, emit);
    default: return characters(s, emit);
  }
}

void ModelTokenizer::unigram(std::string_view text, const Emit& emit) const {
  BestPaths best(text.size());
  std::size_t from = 0;  // beginning of the last character
  bool single = false;   // true if it is a piece
  occurrences_.each(
      text,
      [&](std::size_t end, std::size_t size, int id) {
        best.offer(end, size, scores_[static_cast<std::size_t>(id)], id);
        single = single || end - size == from;
      },
      [&](std::size_t end) {
        if (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) return;
        if (!single) best.offer(end, end - from, unknown_score_, v_.unk);
        best.settle(end);
        from = end, single = false;
      });
  best.each([&](std::size_t end, std::size_t size, int id) { emit(text.substr(end - size, size), id); });
}

void ModelTokenizer::bpe(std::string_view text, const Emit& emit) const {
  std::vector<MergeSymbol> symbols;
  each_symbol(text, [&](std::size_t begin, std::size_t end, bool defined) {
    const int i = static_cast<int>(symbols.size());
    symbols.push_back({begin, end - begin, defined ? -1 : number_of(text.substr(begin, end - begin)), i - 1, i + 1});
  });
  symbols.back().next = -1;
  // Unused pieces are joined, too, and split again in the end.
  std::unordered_map<int, std::pair<int, int>> parts;
  merge_symbols(symbols, [&](int left, int right) -> std::optional<Joined> {
    const int id = joins_.find(left, right);
    if (id < 0) return std::nullopt;
    if (type(id) == Type::Unused) parts[id] = {left, right};
    return Joined{-static_cast<double>(v_.scores[static_cast<std::size_t>(id)]), id};
  });
  std::vector<int> open;
  for (int i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
    const MergeSymbol& s = symbols[static_cast<std::size_t>(i)];
    if (s.number < 0) {
      const std::string_view piece = text.substr(s.at, s.size);
      emit(piece, id_of(piece));
      continue;
    }
    for (open.push_back(s.number); !open.empty();) {
      const int number = open.back();
      open.pop_back();
      const std::string_view piece = text_of_symbol(number);
      const int id = number < size() ? number : v_.unk;
      const auto two = id >= 0 && type(id) == Type::Unused ? parts.find(number) : parts.end();
      if (two == parts.end()) emit(piece, id);
      else open.push_back(two->second.second), open.push_back(two->second.first);
    }
  }
}

// A word begins with the mark of a space.
void ModelTokenizer::words(std::string_view text, const Emit& emit) const {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(kSpace, begin + 1), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    emit(word, id_of(word));
    begin = end;
  }
}

void ModelTokenizer::characters(std::string_view text, const Emit& emit) const {
  each_symbol(text, [&](std::size_t begin, std::size_t end, bool) {
    const std::string_view piece = text.substr(begin, end - begin);
    emit(piece, id_of(piece));
  });
}

std::string spaces_for_marks(std::string_view piece) {
  std::string s;
  std::size_t done = 0;
  for (std::size_t at; (at = piece.find(kSpace, done)) != piece.npos; done = at + kSpace.size())
    s += piece.substr(done, at - done), s += ' ';
  return s += piece.substr(done);
}

std::string ModelTokenizer::bytes_of(int id) const {
  const std::string& p = v_.pieces[static_cast<std::size_t>(id)];
  switch (type(id)) {
    case Type::Control: return "";
    case Type::Unknown: return m_.unknown_surface;
    case Type::Byte: return std::string(1, static_cast<char>(byte_piece(p)));
    default: return spaces_for_marks(p);
  }
}

// Removes the space that was added before the text, or all leading spaces if encoding drops them. Invalid UTF-8 becomes
// U+FFFD.
std::string ModelTokenizer::text_of(std::span<const int> ids) const {
  std::string out, bytes;
  const auto flush = [&] {
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = utf8_length(bytes, at);
      out += n > 0 ? std::string_view(bytes).substr(at, n) : std::string_view("\xEF\xBF\xBD");
      at += std::max<std::size_t>(1, n);
    }
    bytes.clear();
  };
  bool begins = true, taken = false;
  for (const int id : ids) {
    if (type(id) == Type::Byte) {
      bytes += bytes_of(id);
      continue;
    }
    flush();
    if (taken || !out.empty()) begins = false;
    taken = false;
    const bool piece = type(id) != Type::Control && type(id) != Type::Unknown;
    const bool drop = begins && piece && (m_.rules.add_dummy_prefix || m_.rules.remove_extra_whitespaces) &&
                      v_.pieces[static_cast<std::size_t>(id)].starts_with(kSpace);
    out += drop ? bytes_of(id).substr(1) : bytes_of(id);
    taken = drop && !m_.rules.remove_extra_whitespaces;
  }
  flush();
  return m_.back.map.empty() ? out : normalized(out, m_.back, false);
}

}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece_model(Vocabulary v, SentencePieceModel m, Budget& budget) {
  return std::make_shared<ModelTokenizer>(std::move(v), std::move(m), budget);
}

}  // namespace lc
