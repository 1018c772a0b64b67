// Vocabularies from files.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "lightcone/core/error.h"
#include "lightcone/io/gguf.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/tokenizer.h"
#include "lightcone/io/tokenizer_json.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

namespace fs = std::filesystem;
using Type = Vocabulary::Type;

// Tokens that end a turn or a text in the models people use, whatever their ids.
constexpr std::string_view kEnds[] = {"<|eot_id|>",      "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
                                      "<|end_of_text|>", "<|eom_id|>", "<EOT>",   "<|EOT|>"};

void find_ends(Vocabulary& v) {
  if (v.types.empty()) return;
  for (std::size_t i = 0; i < v.pieces.size(); ++i)
    if ((v.types[i] == Type::Control || v.types[i] == Type::UserDefined) &&
        std::find(std::begin(kEnds), std::end(kEnds), v.pieces[i]) != std::end(kEnds))
      v.ends.push_back(static_cast<int>(i));
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

// llama2.c: i32 longest piece, then for each piece f32 score, i32 length, bytes.
Vocabulary from_llama2c(const MappedFile& f, int size) {
  Vocabulary v;
  v.escape_spaces = false;
  v.bos = 1, v.eos = 2, v.unk = 0;
  v.add_bos = true;
  const auto b = f.bytes();
  std::size_t at = 4;
  while (at < b.size() && (size == 0 || static_cast<int>(v.pieces.size()) < size)) {
    float score;
    std::int32_t length;
    if (b.size() - at < 8) throw Error("tokenizer", cat(f.path(), ": truncated after ", v.pieces.size(), " pieces"));
    std::memcpy(&score, b.data() + at, 4);
    std::memcpy(&length, b.data() + at + 4, 4);
    at += 8;
    if (length < 0 || static_cast<std::size_t>(length) > b.size() - at || length > 1 << 16)
      throw Error("tokenizer", cat(f.path(), ": not a tokenizer, or a damaged one: piece ", v.pieces.size(), " has ",
                                   length, " bytes"));
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
    throw Error("tokenizer", cat(f.path(), " holds ", v.pieces.size(), " pieces, ", std::max(size, 3), " are needed"));
  return v;
}

// As much of the protocol-buffer wire format as ModelProto needs.
class Proto {
 public:
  Proto(std::string_view b, const std::string& path) : b_(b), path_(path) {}
  bool next() {  // moves to the next field
    if (at_ >= b_.size()) return false;
    const std::uint64_t key = varint();
    field = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0: number = varint(); break;
      case 1: bytes = take(8); break;
      case 2: bytes = take(varint()); break;
      case 5: bytes = take(4); break;
      default: fail();
    }
    return true;
  }
  float real() const {
    float f;
    if (bytes.size() != 4) fail();
    std::memcpy(&f, bytes.data(), 4);
    return f;
  }
  int field = 0;
  std::uint64_t number = 0;
  std::string_view bytes;

 private:
  [[noreturn]] void fail() const {
    throw Error("tokenizer", cat(path_, ": not a SentencePiece model, or a damaged one"));
  }
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= b_.size()) fail();
      const auto byte = static_cast<unsigned char>(b_[at_++]);
      v |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return v;
    }
    fail();
  }
  std::string_view take(std::uint64_t n) {
    if (n > b_.size() - at_) fail();
    const std::string_view s = b_.substr(at_, n);
    at_ += n;
    return s;
  }
  std::string_view b_;
  const std::string& path_;
  std::size_t at_ = 0;
};

// sentencepiece_model.proto: pieces (1), trainer_spec (2), normalizer_spec (3).
Vocabulary from_sentencepiece(const MappedFile& f) {
  Vocabulary v;
  v.add_bos = true;
  v.unk = 0, v.bos = 1, v.eos = 2;
  int model = 1;
  for (Proto p({reinterpret_cast<const char*>(f.bytes().data()), f.bytes().size()}, f.path()); p.next();) {
    if (p.field == 1) {
      v.pieces.emplace_back(), v.scores.push_back(0), v.types.push_back(Type::Normal);
      for (Proto q(p.bytes, f.path()); q.next();) {
        if (q.field == 1) v.pieces.back() = std::string(q.bytes);
        if (q.field == 2) v.scores.back() = q.real();
        if (q.field == 3) v.types.back() = ggml_token_type(static_cast<double>(std::min<std::uint64_t>(q.number, 7)));
      }
    } else if (p.field == 2) {
      for (Proto q(p.bytes, f.path()); q.next();) {
        const int id = static_cast<int>(static_cast<std::int32_t>(q.number));
        if (q.field == 3) model = id;
        if (q.field == 40) v.unk = id;
        if (q.field == 41) v.bos = id;
        if (q.field == 42) v.eos = id;
      }
    } else if (p.field == 3) {
      for (Proto q(p.bytes, f.path()); q.next();)
        if (q.field == 3) v.space_prefix = q.number != 0;
    }
  }
  if (model != 2) throw Error("tokenizer", cat(f.path(), ": only BPE models of SentencePiece are supported"));
  return v;
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& g) {
  const std::string path = g.file->path(), model = g.text("tokenizer.ggml.model").value_or("");
  const std::string pre = g.text("tokenizer.ggml.pre").value_or("");
  const auto* tokens = g.strings("tokenizer.ggml.tokens");
  if (!tokens) throw Error("tokenizer", cat(path, " holds no tokenizer"));
  Vocabulary v;
  v.pieces = *tokens;
  for (double s : g.numbers("tokenizer.ggml.scores")) v.scores.push_back(static_cast<float>(s));
  for (double t : g.numbers("tokenizer.ggml.token_type")) v.types.push_back(ggml_token_type(t));
  const auto id = [&](const char* key, int otherwise) {
    const auto n = g.number(key);
    return n && *n >= 0 && *n < static_cast<double>(std::numeric_limits<int>::max()) ? static_cast<int>(*n) : otherwise;
  };
  if (model == "llama") {
    v.bos = 1, v.eos = 2, v.unk = 0, v.add_bos = true;
  } else if (model == "gpt2") {
    v.kind = Vocabulary::Kind::ByteBpe;
    v.split = split_patterns(pre);
    v.whole_words = v.add_bos = pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3";
    if (pre == "tekken" || pre == "dbrx") v.whole_words = true;
    const auto* merges = g.strings("tokenizer.ggml.merges");
    if (!merges) throw Error("tokenizer", cat(path, " has no merges"));
    for (const std::string& m : *merges) {
      const std::size_t space = m.find(' ', 1);
      if (space == std::string::npos) throw Error("tokenizer", cat(path, ": the merge '", m, "' is not a pair"));
      v.merges.emplace_back(m.substr(0, space), m.substr(space + 1));
    }
  } else if (model == "bert") {
    v.kind = Vocabulary::Kind::WordPiece;
    v.bos = id("tokenizer.ggml.cls_token_id", 101), v.eos = id("tokenizer.ggml.seperator_token_id", 102);
    v.add_bos = v.add_eos = true;
  } else {
    throw Error("tokenizer",
                cat(path, ": a tokenizer of type '", model, "' is not supported (llama, gpt2 and bert are)"));
  }
  v.bos = id("tokenizer.ggml.bos_token_id", v.bos), v.eos = id("tokenizer.ggml.eos_token_id", v.eos),
  v.unk = id("tokenizer.ggml.unknown_token_id", v.unk);
  v.add_bos = g.flag("tokenizer.ggml.add_bos_token").value_or(v.add_bos);
  v.add_eos = g.flag("tokenizer.ggml.add_eos_token").value_or(v.add_eos);
  v.space_prefix = g.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  const int count = static_cast<int>(v.pieces.size());
  for (int* special : {&v.bos, &v.eos, &v.unk})
    if (*special >= count)
      throw Error("tokenizer", cat(path, ": the special token ", *special, " is outside the vocabulary of ", count));
  if (const int eot = id("tokenizer.ggml.eot_token_id", -1); eot >= 0) v.ends.push_back(eot);
  find_ends(v);
  return make_tokenizer(std::move(v));
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path, int size) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer.bin"})
      if (fs::exists(fs::path(path) / name)) return load_tokenizer((fs::path(path) / name).string(), size);
    throw Error("tokenizer", cat(path, " holds no tokenizer.json, tokenizer.model or tokenizer.bin"));
  }
  const auto file = MappedFile::open(path);
  const auto b = file->bytes();
  if (b.size() >= 4 && std::memcmp(b.data(), "GGUF", 4) == 0) return tokenizer_from_gguf(read_gguf(file));
  if (path.ends_with(".json") || b[0] == std::byte{'{'}) {
    Vocabulary v = vocabulary_from_json(*file);
    find_ends(v);
    return make_tokenizer(std::move(v));
  }
  if (b.size() < 16) throw Error("tokenizer", cat(path, " is too short for a tokenizer"));
  // a SentencePiece model begins with the field "pieces"; llama2.c's file with a small number
  if (b[0] == std::byte{0x0A} && b[3] != std::byte{0}) return make_tokenizer(from_sentencepiece(*file));
  return make_tokenizer(from_llama2c(*file, size));
}

}  // namespace lc
