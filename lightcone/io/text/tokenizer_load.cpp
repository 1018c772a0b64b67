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

}  // namespace

std::shared_ptr<const Tokenizer> indexed_tokenizer(Vocabulary v, const std::string& path, Budget& budget) {
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

void find_ends(Vocabulary& v) {
  for (std::size_t i = 0; i < std::min(v.types.size(), v.pieces.size()); ++i)
    if ((v.types[i] == Type::Control || v.types[i] == Type::UserDefined) &&
        std::find(std::begin(kEnds), std::end(kEnds), v.pieces[i]) != std::end(kEnds))
      v.ends.push_back(static_cast<int>(i));
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
  return proto ? tokenizer_from_sentencepiece(*file, budget)
               : indexed_tokenizer(from_llama2c(*file, size, budget), path, budget);
}

}  // namespace lc
