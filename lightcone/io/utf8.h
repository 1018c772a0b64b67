// Strict UTF-8: no overlong forms, surrogates or truncated sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lc {

// Returns the length of the valid sequence at text[at], 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);
// Throws Error "what is not UTF-8: byte 0x.. at offset n" if the text is not valid.
void require_utf8(std::string_view text, std::string_view what);
// Decodes the code point at text[at] and stores its length. Invalid bytes give U+FFFD and length 1.
std::uint32_t utf8_decode(std::string_view text, std::size_t at, std::size_t* length);
// Appends a code point as UTF-8.
void utf8_append(std::string& out, std::uint32_t codepoint);

}  // namespace lc
