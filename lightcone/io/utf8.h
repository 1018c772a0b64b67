// UTF-8, strictly: no overlong forms, surrogates or truncated sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lc {

// Length of the valid sequence at text[at], 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);
// Throws the Error "what: not UTF-8: byte 0x.. at offset n".
void require_utf8(std::string_view text, std::string_view what);
std::uint32_t utf8_decode(std::string_view text, std::size_t at, std::size_t* length);  // of valid text
void utf8_append(std::string& out, std::uint32_t codepoint);

}  // namespace lc
