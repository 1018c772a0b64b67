// The scripts of characters, as SentencePiece and tokenizer.json's UnicodeScripts tell them apart.
#pragma once

#include <cstdint>

namespace lc {

// A space, and what has no script, goes with its neighbours.
constexpr int kAnyScript = 0;
// The number of a script; Hiragana and Katakana are Han's.
int script_of(std::uint32_t c);

}  // namespace lc
