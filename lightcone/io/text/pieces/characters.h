// Character classes and mappings as in the reference tokenizers. Each of these libraries has the tables of one version
// of Unicode; later characters have no class there. The version is given at each function.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lightcone/io/utf8.h"

namespace lc {

// Calls each(character, begin, end) for each character of a valid UTF-8 text.
template <class Each>
void each_character(std::string_view text, const Each& each) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t size = 1;
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::uint32_t c = byte < 0x80 ? byte : utf8_decode(text, at, &size);
    each(c, at, at + size);
    at += size;
  }
}

bool is_white_space(std::uint32_t c);          // White_Space
bool is_word_character(std::uint32_t c);       // \w of regular expressions: letters, marks, digits, connectors, joiners
bool is_numeric(std::uint32_t c);              // N: all kinds of digits
bool is_sign_or_punctuation(std::uint32_t c);  // ASCII's punctuation and symbols, P (Unicode 8)
bool is_mark(std::uint32_t c);                 // M (Unicode 9)
bool is_nonspacing_mark(std::uint32_t c);      // Mn (Unicode 8)
bool is_control(std::uint32_t c);              // Cc, Cf, Co, but neither tab nor line ends (Unicode 8)
bool is_chinese(std::uint32_t c);              // CJK ideographs by BERT's definition

void append_lower(std::string& to, std::uint32_t c);  // full lower-case mapping of one character

enum class NormalForm : std::uint8_t { C, D, KC, KD };
// NFC, NFD, NFKC and NFKD (Unicode 9; later characters stay unchanged).
std::string normal_form(std::string_view text, NormalForm form);

// GPT-2's representation of bytes by characters: printable Latin-1 stays, other bytes map above U+0100.
struct ByteAlphabet {
  std::array<std::string, 256> character;
  std::array<std::int16_t, 0x144> byte;  // byte of each character; -1: none
  ByteAlphabet();
  int byte_of(std::uint32_t c) const { return c < byte.size() ? byte[c] : -1; }
};
const ByteAlphabet& byte_alphabet();
// Returns the byte of a piece such as <0x0A>, or -1.
int byte_piece(std::string_view piece);

// Returns the number of characters.
std::size_t count_characters(std::string_view text);

}  // namespace lc
