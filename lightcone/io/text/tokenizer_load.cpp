// Loads vocabularies from files.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/joins.h"
#include "lightcone/io/text/pieces/longest_match.h"
#include "lightcone/io/text/sentencepiece.h"
#include "lightcone/io/text/tokenizer_json.h"
#include "lightcone/io/text/tokenizer_kinds.h"

namespace lc {
namespace {

namespace fs = std::filesystem;
using Type = Vocabulary::Type;

// Tokens that end a turn or a text in common models, whatever their ids.
constexpr std::string_view kEnds[] = {"<|eot_id|>",      "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
                                      "<|end_of_text|>", "<|eom_id|>", "<EOT>",   "<|EOT|>"};

// Takes the memory of a vocabulary's indexes from the budget, and makes the tokenizer.
std::shared_ptr<const Tokenizer> indexed(Vocabulary v, const std::string& path, Budget& budget) {
  std::size_t bytes = 0, cut = 0;
  for (const std::string& p : v.pieces) bytes += p.size();
  for (std::size_t i = 0; i < std::min(v.types.size(), v.pieces.size()); ++i)
    if (v.types[i] == Type::UserDefined || v.types[i] == Type::Control) cut += v.pieces[i].size() + 1;
  budget.take(cut, 2 * LongestMatch::kBytesEach);
  if (v.kind == Vocabulary::Kind::WordPiece) {
    budget.take(bytes + v.pieces.size(), LongestMatch::kBytesEach);
  } else {
    budget.take(v.pieces.size() + v.merges.size(), kIndexBytes);
    budget.take(v.merges.size(), sizeof(Joins::Join) + sizeof(std::size_t) + sizeof(int));
    for (const auto& [left, right] : v.merges) budget.take(piece_bytes(left.size() + right.size()));
  }
  find_ends(v);
  try {
    return make_tokenizer(std::move(v), &budget);
  } catch (const Error& e) {
    if (e.op() == "load") throw;  // an Error of the budget, which names the file
    throw file_error("tokenizer", path, e.problem());
  }
}

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

// Reads llama2.c's format: i32 longest piece, then for each piece f32 score, i32 length, bytes.
Vocabulary from_llama2c(const MappedFile& f, int size, Budget& budget) {
  Vocabulary v;
  v.escape_spaces = false;
  v.bos = 1, v.eos = 2, v.unk = 0;
  v.add_bos = true;
  const auto b = f.bytes();
  budget.parsed(b.size());
  std::size_t at = 4;
  while (at < b.size() && (size == 0 || static_cast<int>(v.pieces.size()) < size)) {
    float score;
    std::int32_t length;
    if (b.size() - at < 8) throw file_error("tokenizer", f.path(), "truncated after ", v.pieces.size(), " pieces");
    std::memcpy(&score, b.data() + at, 4);
    std::memcpy(&length, b.data() + at + 4, 4);
    at += 8;
    if (length < 0 || static_cast<std::size_t>(length) > b.size() - at || length > 1 << 16)
      throw file_error("tokenizer", f.path(), "not a tokenizer, or a damaged one: piece ", v.pieces.size(), " has ",
                       length, " bytes");
    budget.take(piece_bytes(static_cast<std::size_t>(length)));
    v.pieces.emplace_back(reinterpret_cast<const char*>(b.data() + at), static_cast<std::size_t>(length));
    v.scores.push_back(score);
    const std::string& p = v.pieces.back();
    const std::size_t i = v.pieces.size() - 1;
    v.types.push_back(i == 0                                  ? Type::Unknown
                      : i <= 2                                ? Type::Control
                      : p.size() == 6 && p.starts_with("<0x") ? Type::Byte
                                                              : Type::Normal);
    at += static_cast<std::size_t>(length);
  }
  if (v.pieces.size() < 3 || (size > 0 && static_cast<int>(v.pieces.size()) < size))
    throw file_error("tokenizer", f.path(), "it holds ", v.pieces.size(), " pieces, ", std::max(size, 3),
                     " are needed");
  if (at < b.size())  // possible only if a size is given
    throw file_error("tokenizer", f.path(), "it holds more than the ", size, " pieces that are needed");
  return v;
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
  } else {
    throw file_error("tokenizer", path, "a tokenizer of type ", in_quotes(model),
                     " is not supported (llama, gpt2 and bert are)");
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

}  // namespace

void find_ends(Vocabulary& v) {
  for (std::size_t i = 0; i < std::min(v.types.size(), v.pieces.size()); ++i)
    if ((v.types[i] == Type::Control || v.types[i] == Type::UserDefined) &&
        std::find(std::begin(kEnds), std::end(kEnds), v.pieces[i]) != std::end(kEnds))
      v.ends.push_back(static_cast<int>(i));
}

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
  return indexed(std::move(v), path, budget);
}

namespace {
constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "tokenizer.model", "tokenizer.bin"};
}

std::string find_tokenizer_file(const std::string& checkpoint) {
  return io::first_in(io::is_folder(checkpoint) ? checkpoint : fs::path(checkpoint).parent_path().string(),
                      kTokenizerFiles);
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path, int size, const ReadOptions& o) {
  if (io::is_folder(path)) {
    const std::string file = io::first_in(path, kTokenizerFiles);
    if (file.empty())
      throw Error("tokenizer", printable(path, 500) + " holds no tokenizer.json, tokenizer.model or tokenizer.bin");
    return load_tokenizer(file, size, o);
  }
  auto file = MappedFile::open(io::first_gguf_part(path));
  if (file->bytes().size() >= 4 && std::memcmp(file->bytes().data(), "GGUF", 4) == 0) {
    const GgufFile g = read_gguf(o.map ? file : MappedFile::read(file->path()), o);
    return tokenizer_from_gguf(g, o);
  }
  if (const std::string other = io::foreign_format(file->bytes()); !other.empty())
    throw file_error("tokenizer", path, other);
  file = MappedFile::read(path);  // it is small, and another program may be writing it
  Budget budget(o, path);
  const auto b = file->bytes();
  if (path.ends_with(".json") || b[0] == std::byte{'{'}) return tokenizer_from_json(*file, budget);
  if (b.size() < 16) throw file_error("tokenizer", path, "too short for a tokenizer");
  // A SentencePiece model begins with the field "pieces", a file of llama2.c with a small number.
  const bool proto = b[0] == std::byte{0x0A} && b[3] != std::byte{0};
  return proto ? tokenizer_from_sentencepiece(*file, budget) : indexed(from_llama2c(*file, size, budget), path, budget);
}

}  // namespace lc
