// The scripts of characters, as SentencePiece and tokenizer.json's UnicodeScripts tell them apart.
#pragma once

#include <cstdint>

namespace lc {

// Of a space, and of what has no script: it goes with its neighbours.
constexpr int kAnyScript = 0;
// The number of a script; Hiragana and Katakana are Han's.
int script_of(std::uint32_t c);

}  // namespace lc
