// The three algorithms behind make_tokenizer().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lightcone/io/tokenizer.h"

namespace lc {

std::shared_ptr<const Tokenizer> make_sentencepiece(Vocabulary v);
std::shared_ptr<const Tokenizer> make_byte_bpe(Vocabulary v);
std::shared_ptr<const Tokenizer> make_wordpiece(Vocabulary v);

// Lookup by string_view, the first of equal keys.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
using StringMap = std::unordered_map<std::string, int, StringHash, std::equal_to<>>;

// Joins neighbouring symbols of `text` while `merge` allows it, the best pair first and the
// leftmost of equals: O(n log n). merge(left, right) gives the cost of joining, or nothing.
template <class Merge, class Emit>
void merge_symbols(std::string_view text, const Merge& merge, const Emit& emit);

}  // namespace lc

#include "lightcone/io/tokenizer_merge.h"
