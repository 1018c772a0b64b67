// The scripts of characters by the definition of SentencePiece and of tokenizer.json's UnicodeScripts.
#pragma once

#include <cstdint>

namespace lc {

// The value for a space and for characters without a script, which join their neighbours.
constexpr int kAnyScript = 0;
// Returns the number of a character's script. Hiragana and Katakana count as Han.
int script_of(std::uint32_t c);

}  // namespace lc
