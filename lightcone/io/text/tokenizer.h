// Tokenizers: text to token ids and back.
//
// SentencePiece-style BPE with byte fallback (Llama 1 and 2, Mistral, TinyLlama, llama2.c),
// byte-level BPE (GPT-2, Llama 3, Qwen, Falcon, DeepSeek) and WordPiece (BERT), from GGUF files,
// tokenizer.json, SentencePiece's tokenizer.model and llama2.c's tokenizer.bin.
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
class LongestMatch;

// Everything a kind of tokenizer needs to know, whichever file it came from.
struct Vocabulary {
  enum class Kind : std::uint8_t { SentencePiece, ByteBpe, WordPiece } kind = Kind::SentencePiece;
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
  // Which texts get it: what begins and what follows a special token, whatever they begin with; the same but for those
  // that begin with a space; what begins alone, unless it begins with a space (tokenizer.json's "always" and "first").
  enum class Prefix : std::uint8_t { Segment, Unspaced, Text } prefix = Prefix::Segment;
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
  // unless `parse_control` is set.
  std::vector<int> encode(std::string_view text, bool specials = true, bool parse_control = false) const;
  // The text of ids; control tokens are left out, bytes that make no UTF-8 stay as they are.
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
  // Appends the ids of a text without control tokens; `first`: nothing but <s> is before it.
  virtual void encode_text(std::string_view text, bool first, std::vector<int>& out) const = 0;
  virtual std::string bytes_of(int id) const = 0;  // of an id inside the vocabulary
  Vocabulary::Type type(int id) const;

  Vocabulary v_;

 private:
  std::shared_ptr<const LongestMatch> defined_, control_;  // tokens cut out of a text first, without and with control
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
