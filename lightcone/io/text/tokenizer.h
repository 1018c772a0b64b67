// Tokenizers: text to token ids and back.
//
// Hugging Face's tokenizer.json and SentencePiece's tokenizer.model as those libraries encode and decode them;
// SentencePiece-style BPE with byte fallback (Llama 1 and 2, Mistral, TinyLlama), byte-level BPE (GPT-2, Llama 3, Qwen,
// Falcon, DeepSeek) and WordPiece (BERT) from GGUF files, and llama2.c's tokenizer.bin.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/read_options.h"

namespace lc {

struct GgufFile;

// Everything a kind of tokenizer needs to know, whichever file it came from.
struct Vocabulary {
  // Pipeline: what a tokenizer.json or tokenizer.model says is more than the fields below can: its tokenizer is made of
  // that file alone, and they hold its tokens, and those around a text.
  enum class Kind : std::uint8_t { SentencePiece, ByteBpe, WordPiece, Pipeline } kind = Kind::SentencePiece;
  // What a token stands for. Control tokens are never found in ordinary text.
  enum class Type : std::uint8_t { Normal, Unknown, Control, UserDefined, Unused, Byte };

  std::vector<std::string> pieces;
  std::vector<float> scores;                                // SentencePiece: the highest merges first
  std::vector<Type> types;                                  // empty: all Normal
  std::vector<std::pair<std::string, std::string>> merges;  // ByteBpe: the first merge first
  std::vector<std::string> split;                           // ByteBpe: PCRE2 patterns, applied one after the other
  int bos = -1, eos = -1, unk = -1;
  std::vector<int> ends;  // further tokens that end a text: <|eot_id|>, <|im_end|>, ...
  bool add_bos = false, add_eos = false;
  bool space_prefix = true;   // SentencePiece: a space before the first word
  bool escape_spaces = true;  // SentencePiece: spaces are written as U+2581 in pieces
  bool whole_words = false;   // ByteBpe: a word that is a token is not merged (Llama 3)
  bool nfc = false;           // ByteBpe: text is composed first (Qwen)
  int longest_word = 0;       // WordPiece: words of more characters are unknown; 0: of any length
};

class Tokenizer {
 public:
  explicit Tokenizer(Vocabulary v);
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Ids of a UTF-8 text; an Error names the byte that is not UTF-8. `specials` adds what the model
  // expects around a text (<s> before it). Control tokens spelled in the text are plain text
  // unless `parse_control` is set; tokens that are added but not special always count. A tokenizer.json may cut the ids
  // off at a length or fill them up to one, as its own library does.
  std::vector<int> encode(std::string_view text, bool specials = true, bool parse_control = false) const;
  // The text of ids; control tokens are left out. Bytes that make no UTF-8 stay as they are, but for those of a
  // tokenizer.json or tokenizer.model, whose own libraries put U+FFFD in their place.
  std::string decode(std::span<const int> ids) const;
  // The bytes one more token adds to a text that already has some; "" for control tokens and for ids
  // beyond the vocabulary, which a padded embedding table has rows for.
  std::string piece(int id) const;

  int size() const { return static_cast<int>(v_.pieces.size()); }
  int bos() const { return v_.bos; }
  int eos() const { return v_.eos; }
  bool is_end(int id) const;
  const Vocabulary& vocabulary() const { return v_; }

 protected:
  virtual std::vector<int> ids_of(std::string_view text, bool specials, bool parse_control) const = 0;  // of UTF-8
  virtual std::string text_of(std::span<const int> ids) const = 0;  // of ids inside the vocabulary
  virtual std::string bytes_of(int id) const = 0;                   // the same
  Vocabulary::Type type(int id) const;

  Vocabulary v_;
};

std::shared_ptr<const Tokenizer> make_tokenizer(Vocabulary v);
// By content: GGUF, tokenizer.json, tokenizer.model, tokenizer.bin, or a directory with one of
// them. tokenizer.bin does not say how many pieces it has: `size`, or 0 to read to the end.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path, int size = 0, const ReadOptions& o = {});
std::shared_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& g, const ReadOptions& o = {});
// The tokenizer's file in a checkpoint's folder, or in the folder a checkpoint's file is in; "" when there is none.
std::string find_tokenizer_file(const std::string& checkpoint);

// The patterns a byte-level BPE splits text by, from GGUF's tokenizer.ggml.pre.
std::vector<std::string> split_patterns(std::string_view pre);

}  // namespace lc
