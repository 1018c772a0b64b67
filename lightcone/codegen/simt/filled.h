// Templates of kernel texts.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace lc::codegen::simt {

using Names = std::initializer_list<std::pair<std::string_view, std::string>>;

// Replaces each $NAME in the text by its value. A name must not be a prefix of a later one.
std::string filled(std::string_view text, Names names);

}  // namespace lc::codegen::simt
