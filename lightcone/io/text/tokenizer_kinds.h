// What is behind make_tokenizer() and load_tokenizer().
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lightcone/io/text/pieces/string_map.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// Like make_tokenizer(); what indexes take that depends on more than sizes is taken from the budget when it is known.
std::shared_ptr<const Tokenizer> make_tokenizer(Vocabulary v, Budget* budget);
std::shared_ptr<const Tokenizer> make_sentencepiece(Vocabulary v, Budget* budget);
std::shared_ptr<const Tokenizer> make_byte_bpe(Vocabulary v);
std::shared_ptr<const Tokenizer> make_wordpiece(Vocabulary v);

// U+2581, which stands for a space in pieces, and begins a word in WordPiece vocabularies of GGUF files.
inline constexpr std::string_view kSpace = "\xE2\x96\x81";

// What one piece of a vocabulary takes, in lists that grow.
constexpr std::size_t piece_bytes(std::size_t size) {
  constexpr std::size_t kWithin = 15;  // of a string, without memory of its own
  return 2 * (sizeof(std::string) + sizeof(float) + sizeof(Vocabulary::Type)) + (size > kWithin ? size + 17 : 0);
}

class LongestMatch;

// Adds the tokens that end a turn or a text in the models people use to the vocabulary's.
void find_ends(Vocabulary& v);

// Tokenizers that cut tokens out of a text and encode what is between them.
class CutTokenizer : public Tokenizer {
 public:
  // `defined`: tokens of the user's are cut out, too; otherwise control tokens alone.
  explicit CutTokenizer(Vocabulary v, bool defined = true);

 protected:
  // Appends the ids of a text without such tokens; `first`: nothing but <s> is before it.
  virtual void encode_text(std::string_view text, bool first, std::vector<int>& out) const = 0;
  std::vector<int> ids_of(std::string_view text, bool specials, bool parse_control) const final;
  std::string text_of(std::span<const int> ids) const override;

 private:
  std::shared_ptr<const LongestMatch> defined_, control_;  // without and with control tokens
};

}  // namespace lc
