// The text that every side of the rows of decoding reads (bench/peers/llama_runner.py has the same).
#pragma once

#include <cstdint>
#include <vector>

namespace lc::bench {

constexpr int kPrompt = 64, kContext = 1024;
constexpr int kLast = 512;          // tokens are decoded at positions from kPrompt up to this one
constexpr int kVocabulary = 32000;  // every model that write_model() knows has it

// Returns ids whatever the vocabulary means.
inline std::vector<int> ids(int count, int vocab) {
  std::vector<int> v;
  for (int i = 0; i < count; ++i)
    v.push_back(259 + static_cast<int>((static_cast<std::uint32_t>(i) * 2654435761u >> 7) %
                                       static_cast<std::uint32_t>(vocab - 259)));
  return v;
}

}  // namespace lc::bench
