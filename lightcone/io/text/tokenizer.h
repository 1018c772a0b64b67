// Tokenizers: text to token ids and back.
//
// Supported are Hugging Face's tokenizer.json and SentencePiece's tokenizer.model, encoded and decoded as by those
// libraries; from GGUF files SentencePiece-style BPE with byte fallback (Llama 1 and 2, Mistral, TinyLlama), Unigram
// (T5), byte-level BPE (GPT-2, Llama 3, Qwen, Falcon, DeepSeek) and WordPiece (BERT); and llama2.c's tokenizer.bin.
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

// The tokens and settings of a tokenizer, independent of the file format.
struct Vocabulary {
  // The algorithm. Pipeline stands for a tokenizer.json, a tokenizer.model or a Unigram model beyond the fields below:
  // its tokenizer can only be made from the file, and the fields hold its tokens and the ids around a text.
  enum class Kind : std::uint8_t { SentencePiece, ByteBpe, WordPiece, Pipeline } kind = Kind::SentencePiece;
  // The type of a token. Control tokens are not found in ordinary text.
  enum class Type : std::uint8_t { Normal, Unknown, Control, UserDefined, Unused, Byte };

  std::vector<std::string> pieces;
  std::vector<float> scores;                                // SentencePiece: higher scores merge first
  std::vector<Type> types;                                  // empty: all Normal
  std::vector<std::pair<std::string, std::string>> merges;  // ByteBpe: in order of priority
  std::vector<std::string> split;                           // ByteBpe: PCRE2 patterns, applied in order
  int bos = -1, eos = -1, unk = -1;
  std::vector<int> ends;  // further tokens that end a text: <|eot_id|>, <|im_end|>, ...
  bool add_bos = false, add_eos = false;
  bool space_prefix = true;   // SentencePiece: adds a space before the first word
  bool escape_spaces = true;  // SentencePiece: spaces are written as U+2581 in pieces
  bool whole_words = false;   // ByteBpe: words that are tokens are not split (Llama 3)
  bool nfc = false;           // ByteBpe: normalises texts to NFC (Qwen)
  int longest_word = 0;       // WordPiece: longer words, in characters, are unknown; 0: no limit
  bool lowercase = true;      // WordPiece: texts are converted to lower case
  bool strip_accents = true;  // WordPiece: and lose their accents
};

// The ids of a text or of a pair of texts with what models take beside them, as transformers' tokenizers return it. The
// three lists are equally long.
struct Encoding {
  std::vector<int> ids;             // input_ids
  std::vector<int> type_ids;        // token_type_ids: to which text an id belongs, as the file numbers them
  std::vector<int> attention_mask;  // 1, or 0 for an id that pads
};

// Converts texts to token ids and back. Thread-safe.
class Tokenizer {
 public:
  explicit Tokenizer(Vocabulary v);
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Returns the ids of a UTF-8 text. `specials` adds the tokens that the model expects around a text (<s> before it).
  // Control tokens in the text are plain text unless `parse_control` is set; added tokens that are not special are
  // always found. A tokenizer.json may truncate or pad the ids, as in its library. Throws Error, naming the byte, if
  // the text is not UTF-8.
  std::vector<int> encode(std::string_view text, bool specials = true, bool parse_control = false) const;
  // The same with the lists that models take beside ids.
  Encoding encoding(std::string_view text, bool specials = true, bool parse_control = false) const;
  // Encodes two texts as one input, as models do that compare them: `[CLS] first [SEP] second [SEP]` of BERT, or what
  // the file states. A tokenizer.json may truncate or pad. Throws Error as encode().
  Encoding encode_pair(std::string_view first, std::string_view second, bool specials = true,
                       bool parse_control = false) const;
  // Encodes a text, or two as one input, with the tokens that the model expects around them. The ids are cut to `most`,
  // of two texts from the longer one, and not padded, whatever the file says of both (transformers: truncation=True,
  // max_length=most). Throws Error as encode(), and if `most` leaves no room for a text.
  Encoding encode_within(std::span<const std::string_view> texts, std::size_t most) const;
  // Returns the text of ids without control tokens. Invalid UTF-8 is kept, except for a tokenizer.json or
  // tokenizer.model, where it becomes U+FFFD as in their libraries. Throws Error if an id is outside the vocabulary.
  std::string decode(std::span<const int> ids) const;
  // Returns the bytes that one more token adds to a text that is not empty; "" for control tokens and for ids beyond
  // the vocabulary, for which padded embedding tables have rows.
  std::string piece(int id) const;

  int size() const { return static_cast<int>(v_.pieces.size()); }  // number of tokens
  int bos() const { return v_.bos; }                               // the id of the token that begins a text; -1: none
  int eos() const { return v_.eos; }                               // the id of the token that ends a text; -1: none
  // True if the token ends a text.
  bool is_end(int id) const;
  const Vocabulary& vocabulary() const { return v_; }  // the tokens and settings

 protected:
  virtual std::vector<int> ids_of(std::string_view text, bool specials, bool parse_control) const = 0;  // valid UTF-8
  // The encoding of one text or of two. By default each text has the tokens that `specials` adds to one.
  virtual Encoding encoding_of(std::span<const std::string_view> texts, bool specials, bool parse_control) const;
  virtual Encoding encoding_within(std::span<const std::string_view> texts, std::size_t most) const;
  virtual std::string text_of(std::span<const int> ids) const = 0;  // ids are in the vocabulary
  virtual std::string bytes_of(int id) const = 0;                   // id is in the vocabulary
  Vocabulary::Type type(int id) const;

  Vocabulary v_;
};

// Makes a tokenizer of a vocabulary. Throws Error if it is inconsistent or of kind Pipeline.
std::shared_ptr<const Tokenizer> make_tokenizer(Vocabulary v);
// Loads a tokenizer from a GGUF file, tokenizer.json, tokenizer.model or tokenizer.bin, recognised by content, or from
// a directory with one of the latter three. A tokenizer.bin does not contain its number of pieces: `size`, or 0 to read
// to the end. Throws Error if the file is invalid or not supported.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path, int size = 0, const ReadOptions& o = {});
// Makes the tokenizer of a GGUF file. Throws Error if it has none.
std::shared_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& g, const ReadOptions& o = {});
// Returns the tokenizer file in the folder of a checkpoint, given as the folder or a file in it; "" if there is none.
std::string find_tokenizer_file(const std::string& checkpoint);

// Returns the patterns that split texts for byte-level BPE, by GGUF's tokenizer.ggml.pre. Throws Error for an unknown
// name.
std::vector<std::string> split_patterns(std::string_view pre);

}  // namespace lc
