// Kernels that are written as texts with gaps.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace lc::codegen::simt {

using Names = std::initializer_list<std::pair<std::string_view, std::string>>;

// The text, in which $NAME stands for what is given. No name begins another one that comes after it.
std::string filled(std::string_view text, Names names);

}  // namespace lc::codegen::simt
