// Internals of make_tokenizer() and load_tokenizer().
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lightcone/io/text/pieces/string_map.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// The same with a budget, from which indexes take the memory that depends on more than sizes.
std::shared_ptr<const Tokenizer> make_tokenizer(Vocabulary v, Budget* budget);
std::shared_ptr<const Tokenizer> make_sentencepiece(Vocabulary v, Budget* budget);
std::shared_ptr<const Tokenizer> make_byte_bpe(Vocabulary v);
std::shared_ptr<const Tokenizer> make_wordpiece(Vocabulary v);

// U+2581, which represents a space in pieces, and begins a word in WordPiece vocabularies of GGUF files.
inline constexpr std::string_view kSpace = "\xE2\x96\x81";

// Memory of one piece in growing vectors.
constexpr std::size_t piece_bytes(std::size_t size) {
  constexpr std::size_t kWithin = 15;  // capacity of a string without allocation
  return 2 * (sizeof(std::string) + sizeof(float) + sizeof(Vocabulary::Type)) + (size > kWithin ? size + 17 : 0);
}

class LongestMatch;

// Takes the memory of a vocabulary's indexes from the budget, and makes the tokenizer. Errors name the file.
std::shared_ptr<const Tokenizer> indexed_tokenizer(Vocabulary v, const std::string& path, Budget& budget);

// Adds the tokens that end a turn or a text in common models to v.ends.
void find_ends(Vocabulary& v);

// Base of tokenizers that find certain tokens in a text and encode the text between them.
class CutTokenizer : public Tokenizer {
 public:
  // If `defined`, user-defined tokens are found, too; otherwise only control tokens.
  explicit CutTokenizer(Vocabulary v, bool defined = true);

 protected:
  // Appends the ids of a text without such tokens. `first` is true if at most <s> precedes it.
  virtual void encode_text(std::string_view text, bool first, std::vector<int>& out) const = 0;
  std::vector<int> ids_of(std::string_view text, bool specials, bool parse_control) const final;
  std::string text_of(std::span<const int> ids) const override;

 private:
  std::shared_ptr<const LongestMatch> defined_, control_;  // user-defined tokens; the same and control tokens
};

}  // namespace lc
