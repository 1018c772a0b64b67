// When each word is said: dynamic time warping along the attention of some heads of the decoder to the sound, as in
// OpenAI's reference implementation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lightcone/models/seq2seq/cached_decoder.h"
#include "lightcone/models/whisper/whisper.h"

namespace lc {

// For each row of a cost matrix [rows, columns] the first column of the cheapest path from one corner to the other,
// which goes right, down or both in each step.
std::vector<std::int64_t> first_columns(std::span<const double> cost, std::int64_t rows, std::int64_t columns);

// Text as words with their tokens: what begins with a space, and punctuation, begins a word. Where no spaces are
// written (zh, ja, th, lo, my, yue) each character is one.
struct SplitWord {
  std::string text;
  std::vector<int> tokens;
};
std::vector<SplitWord> split_words(const Tokenizer& tokenizer, std::span<const int> tokens,
                                   const std::string& language);

// Gives the segments of one window their words, and begin and end by them. `begin`: the window's begin in seconds;
// `frames`: those of it that hold sound; `last_end`: the end of the segment before, which is updated.
void add_words(std::vector<TranscriptSegment>& segments, CachedDecoder& decoder, const LoadedWhisper& model,
               std::span<const int> begin_tokens, const std::string& language, double begin, std::int64_t frames,
               double& last_end);

}  // namespace lc
