// The three algorithms behind make_tokenizer().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lightcone/io/text/keyed_hash.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// Like make_tokenizer(); what indexes take that depends on more than sizes is taken from the budget when it is known.
std::shared_ptr<const Tokenizer> make_tokenizer(Vocabulary v, Budget* budget);
std::shared_ptr<const Tokenizer> make_sentencepiece(Vocabulary v, Budget* budget);
std::shared_ptr<const Tokenizer> make_byte_bpe(Vocabulary v);
std::shared_ptr<const Tokenizer> make_wordpiece(Vocabulary v);

// U+2581, which stands for a space in pieces, and begins a word in WordPiece vocabularies of GGUF files.
inline constexpr std::string_view kSpace = "\xE2\x96\x81";

// Lookup by words, the first of equal keys; what the keys refer to must outlive it. No file can choose words that make
// it slow.
struct StringHash {
  std::size_t operator()(std::string_view s) const { return siphash(s, HashKey::of_process()); }
};
using StringMap = std::unordered_map<std::string_view, int, StringHash>;
// What an index, like this one, takes for each of its keys.
constexpr std::size_t kIndexBytes = 72;
// What one piece of a vocabulary takes, in lists that grow.
constexpr std::size_t piece_bytes(std::size_t size) {
  constexpr std::size_t kWithin = 15;  // of a string, without memory of its own
  return 2 * (sizeof(std::string) + sizeof(float) + sizeof(Vocabulary::Type)) + (size > kWithin ? size + 17 : 0);
}

// Joins neighbouring symbols of `text` while `join` allows it, the best pair first and the leftmost of equals:
// O(n log n). number(text) is the number of a symbol of one character, or -1; join(left, right) the cost of joining two
// of these numbers and the number of what they make, or nothing; emit(text) gets what is left in the end.
struct Joined {
  double cost;
  int number;
};
template <class Number, class Join, class Emit>
void merge_symbols(std::string_view text, const Number& number, const Join& join, const Emit& emit);

}  // namespace lc

#include "lightcone/io/text/tokenizer_merge.h"
