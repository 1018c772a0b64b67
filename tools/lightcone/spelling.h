// Guesses at misspelt words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lc::tool {

// Returns the word of `known` that `word` resembles: with letters missing, wrong or exchanged, or its beginning; else
// "".
std::string meant(std::string_view word, const std::vector<std::string>& known);
// Returns "; did you mean NAME?", or "" if no known word resembles it.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace lc::tool
