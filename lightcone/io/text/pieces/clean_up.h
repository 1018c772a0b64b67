// Removal of the spaces that splitting leaves before punctuation and English suffixes in a decoded text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lc {

// Replaces all occurrences. An empty `from` occurs before each character and at the end.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

// The library whose rules apply: transformers leaves out one rule of tokenizers, and llama.cpp another one.
enum class CleanUp : std::uint8_t { Tokenizers, Transformers, Llama };
std::string cleaned_up(std::string text, CleanUp rules);

}  // namespace lc
