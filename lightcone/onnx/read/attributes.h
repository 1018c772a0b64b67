// The attributes that operators have, from ONNX's own schemas.
#pragma once

#include <optional>
#include <string_view>

namespace lc::onnx {

// The names of all attributes that any version of an operator of ai.onnx or ai.onnx.ml has, with spaces between them;
// nullopt for an operator that the table does not have.
std::optional<std::string_view> attributes_of(std::string_view domain, std::string_view op);
// True if a word is among words with spaces between them.
bool has_word(std::string_view words, std::string_view word);

}  // namespace lc::onnx
