// What somebody probably meant to write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lc::tool {

// The one of `known` that `word` looks like: some letters missing, wrong or exchanged, or its beginning. "": none does.
std::string meant(std::string_view word, const std::vector<std::string>& known);
// "; did you mean NAME?", or "" where none looks like it.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace lc::tool
