// Reads the tokenizer of a GGUF file.
#include <algorithm>
#include <limits>

#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/longest_match.h"
#include "lightcone/io/text/sentencepiece.h"
#include "lightcone/io/text/tokenizer_kinds.h"

namespace lc {
namespace {

using Type = Vocabulary::Type;

Type ggml_token_type(double t) {
  switch (t >= 2 && t < 7 ? static_cast<int>(t) : 1) {
    case 2: return Type::Unknown;
    case 3: return Type::Control;
    case 4: return Type::UserDefined;
    case 5: return Type::Unused;
    case 6: return Type::Byte;
    default: return Type::Normal;
  }
}

// Sets the fields that depend on the kind of tokenizer in a GGUF file.
void set_kind(Vocabulary& v, const GgufFile& g, Budget& budget) {
  const std::string &path = g.file->path(), model = g.text("tokenizer.ggml.model").value_or("");
  if (model == "llama") {
    v.bos = 1, v.eos = 2, v.unk = 0, v.add_bos = true;
  } else if (model == "gpt2") {
    const std::string pre = g.text("tokenizer.ggml.pre").value_or("");
    v.kind = Vocabulary::Kind::ByteBpe;
    v.split = split_patterns(pre);
    v.whole_words = v.add_bos = pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3";
    if (pre == "tekken" || pre == "dbrx") v.whole_words = true;
    const auto* merges = g.strings("tokenizer.ggml.merges");
    if (!merges) throw file_error("tokenizer", path, "it has no merges");
    for (std::string_view m : *merges) {
      const std::size_t space = m.find(' ', 1);
      if (space == m.npos) throw file_error("tokenizer", path, "the merge ", in_quotes(m), " is not a pair");
      budget.take(2 * piece_bytes(m.size()));
      v.merges.emplace_back(m.substr(0, space), m.substr(space + 1));
    }
  } else if (model == "bert") {
    v.kind = Vocabulary::Kind::WordPiece;
    v.bos = 101, v.eos = 102;
    v.add_bos = v.add_eos = true;
    v.lowercase = g.flag("tokenizer.ggml.normalizer.lowercase").value_or(true);
    v.strip_accents = g.flag("tokenizer.ggml.normalizer.strip_accents").value_or(v.lowercase);
  } else if (model == "t5") {
    v.kind = Vocabulary::Kind::Pipeline;
    v.eos = 1, v.unk = 2, v.add_eos = true;
  } else {
    throw file_error("tokenizer", path, "a tokenizer of type ", in_quotes(model),
                     " is not supported (llama, gpt2, bert and t5 are)");
  }
}

// Reads scores and types, as many as there are tokens.
void set_columns(Vocabulary& v, const GgufFile& g) {
  const auto column = [&](const char* key) {
    const GgufNumbers* c = g.numbers(key);
    if (c && c->size() != v.pieces.size())
      throw file_error("tokenizer", g.file->path(), in_quotes(key), " has ", c->size(), " values for ", v.pieces.size(),
                       " tokens");
    return c;
  };
  const GgufNumbers *scores = column("tokenizer.ggml.scores"), *types = column("tokenizer.ggml.token_type");
  for (std::size_t i = 0; scores && i < scores->size(); ++i) v.scores.push_back(static_cast<float>((*scores)[i]));
  for (std::size_t i = 0; types && i < types->size(); ++i) v.types.push_back(ggml_token_type((*types)[i]));
}

// The table of characters of a Unigram model; empty if the file has none.
std::string charsmap_of(const GgufFile& g, Budget& budget) {
  const GgufNumbers* table = g.numbers("tokenizer.ggml.precompiled_charsmap");
  std::string bytes;
  if (!table) return bytes;
  budget.take(table->size(), 3);
  bytes.reserve(table->size());
  for (std::size_t i = 0; i < table->size(); ++i) {
    const double b = (*table)[i];
    if (!(b >= -128 && b <= 255))
      throw file_error("tokenizer", g.file->path(), "the table of characters has the number ", b, ", which is no byte");
    bytes += static_cast<char>(static_cast<int>(b));
  }
  return bytes;
}

// Makes SentencePiece's Unigram, with the defaults of llama.cpp for what the file does not say.
std::shared_ptr<const Tokenizer> unigram(Vocabulary v, const GgufFile& g, Budget& budget) try {
  const std::string& path = g.file->path();
  if (v.scores.empty()) throw file_error("tokenizer", path, "its tokens have no scores");
  if (v.unk < 0 || v.unk >= static_cast<int>(v.pieces.size()))
    throw file_error("tokenizer", path, "the unknown token ", v.unk, " is outside the vocabulary of ", v.pieces.size());
  for (int* id : {&v.bos, &v.eos})
    if (*id >= static_cast<int>(v.pieces.size()))
      throw file_error("tokenizer", path, "the special token ", *id, " is outside the vocabulary of ", v.pieces.size());
  v.types.resize(v.pieces.size(), Type::Normal);
  std::replace(v.types.begin(), v.types.end(), Type::Unknown, Type::Control);
  v.types[static_cast<std::size_t>(v.unk)] = Type::Unknown;
  v.unk = -1;  // found by its type
  SentencePieceModel m;
  m.byte_fallback = std::find(v.types.begin(), v.types.end(), Type::Byte) != v.types.end();
  m.cuts_defined = true;
  if (const std::string table = charsmap_of(g, budget); !table.empty()) m.rules.map = CharsMap(table);
  v.space_prefix = m.rules.add_dummy_prefix = g.flag("tokenizer.ggml.add_space_prefix").value_or(false);
  v.escape_spaces = m.rules.escape_whitespaces = g.flag("tokenizer.ggml.escape_whitespaces").value_or(true);
  m.rules.remove_extra_whitespaces = g.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  m.whitespace_as_suffix = g.flag("tokenizer.ggml.treat_whitespace_as_suffix").value_or(false);
  std::size_t cut = 0;
  for (std::size_t i = 0; i < v.types.size(); ++i)
    if (v.types[i] == Type::UserDefined || v.types[i] == Type::Control) cut += v.pieces[i].size() + 1;
  budget.take(cut, 2 * LongestMatch::kBytesEach);
  find_ends(v);
  return make_sentencepiece_model(std::move(v), std::move(m), budget);
} catch (const Error& e) {
  if (e.op() != "tokenizer" || std::string_view(e.what()).find(g.file->path()) != std::string_view::npos) throw;
  throw file_error("tokenizer", g.file->path(), e.problem());
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& g, const ReadOptions& o) {
  const std::string& path = g.file->path();
  Budget budget(o, path);
  budget.parsed(g.header_bytes);
  const auto* tokens = g.strings("tokenizer.ggml.tokens");
  if (!tokens) throw file_error("tokenizer", path, "it holds no tokenizer");
  Vocabulary v;
  for (std::string_view t : *tokens) {
    budget.take(piece_bytes(t.size()));
    v.pieces.emplace_back(t);
  }
  set_columns(v, g);
  set_kind(v, g, budget);
  const auto id = [&](const char* key, int otherwise) {  // files write -1 or 2^32 - 1 for none
    const auto n = g.number(key);
    return n && *n >= 0 && *n < static_cast<double>(std::numeric_limits<int>::max()) ? static_cast<int>(*n) : otherwise;
  };
  if (v.kind == Vocabulary::Kind::WordPiece)
    v.bos = id("tokenizer.ggml.cls_token_id", v.bos), v.eos = id("tokenizer.ggml.seperator_token_id", v.eos);
  v.bos = id("tokenizer.ggml.bos_token_id", v.bos), v.eos = id("tokenizer.ggml.eos_token_id", v.eos),
  v.unk = id("tokenizer.ggml.unknown_token_id", v.unk);
  v.add_bos = g.flag("tokenizer.ggml.add_bos_token").value_or(v.add_bos);
  v.add_eos = g.flag("tokenizer.ggml.add_eos_token").value_or(v.add_eos);
  v.space_prefix = g.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  if (const int eot = id("tokenizer.ggml.eot_token_id", -1); eot >= 0) v.ends.push_back(eot);
  if (v.kind == Vocabulary::Kind::Pipeline) return unigram(std::move(v), g, budget);
  return indexed_tokenizer(std::move(v), path, budget);
}

}  // namespace lc
