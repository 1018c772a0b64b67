// Splits the text of a template into tokens, with Jinja's rules for white space: the settings trim_blocks and
// lstrip_blocks, which chat templates are written for, and the signs of {%- -%} and {%+ +%}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lc::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    Data,
    BlockBegin,
    BlockEnd,
    PrintBegin,
    PrintEnd,
    Name,
    Whole,
    Real,
    String,
    Sign,
    End
  };
  Kind kind;
  std::uint32_t line;
  std::string text;
};

// A syntax error: its reason and its line.
struct SyntaxFault {
  std::string what;
  std::uint32_t line;
};

// Returns the tokens of a template, End last. Throws SyntaxFault.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace lc::jinja
