// How a checkpoint of an encoder-decoder wants its texts generated, and the rules by which tokens are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/models/seq2seq/seq2seq_config.h"

namespace lc {

// The keys of generation_config.json (of config.json, where there is no such file) that greedy and beam search heed.
struct Seq2SeqGeneration {
  int start = 0;                                           // the first token that the decoder is given
  std::vector<int> ends = {};                              // tokens that end a text
  std::optional<int> forced_first = {}, forced_last = {};  // the second is the last token of the longest text
  std::vector<std::vector<int>> bad_words = {};            // sequences of tokens that never occur
  std::int64_t no_repeat = 0;                              // no sequence of so many tokens occurs twice; 0: any may
  double repetition_penalty = 1;                           // lessens tokens that occurred, as llm::SamplerOptions
  std::int64_t min_length = 0, max_length = 0;             // tokens with the start; 0: no limit
  std::int64_t beams = 1;
  double length_penalty = 1;    // the sum of logarithms is divided by the length to this power
  bool early_stopping = false;  // the search ends with as many texts as there are beams

  // Throws Error that names a key with a value which is not supported.
  static Seq2SeqGeneration from(const Weights& w, const Seq2SeqConfig& c);
};

// Changes logits or their log-probabilities so that the rules hold. `generated` are the tokens behind the start.
void apply_rules(const Seq2SeqGeneration& g, std::span<float> logits, std::span<const int> generated,
                 std::int64_t most);

}  // namespace lc
