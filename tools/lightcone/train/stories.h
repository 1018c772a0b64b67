// Short stories for children, made by a grammar: the text that the story model learns.
#pragma once

#include <cstdint>
#include <string>

namespace lc::tool {

// Returns story number `number` of a seed; the same numbers give the same text.
std::string story(std::uint64_t seed, std::uint64_t number);

}  // namespace lc::tool
