// Short stories for children, made by a grammar: what the story model learns.
#pragma once

#include <cstdint>
#include <string>

namespace lc::tool {

// Story number `number` of a seed: the same numbers, the same text.
std::string story(std::uint64_t seed, std::uint64_t number);

}  // namespace lc::tool
