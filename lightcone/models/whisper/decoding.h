// Decoding of one window of 30 s: greedy, by beams or by sampling, as in OpenAI's reference implementation.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "lightcone/models/seq2seq/cached_decoder.h"
#include "lightcone/models/whisper/token_rules.h"

namespace lc {

// How a window is decoded.
struct WindowOptions {
  std::vector<int> prompt = {};  // the tokens that stand before <|startoftranscript|>
  std::vector<int> begin = {};   // from <|startoftranscript|> on: language, task, no timestamps
  bool timestamps = true;
  double temperature = 0;  // 0: beams, or greedy with one row; above: each row is sampled
  double patience = 1;     // how many times their number are finished before the search ends
  std::optional<double> length_penalty =
      {};  // alpha of Wu et al. 2016; unset: probabilities are averaged over the tokens
};

// The tokens of a window, without those that began it and the one that ended it.
struct WindowResult {
  std::vector<int> tokens;
  double average_logprob = 0;  // the mean of all tokens, the one that ended the text among them
  double no_speech = 0;        // the probability that nobody speaks
  double temperature = 0;
};

// Decodes the source that `decoder` has encoded, with as many rows as it has. Throws Error for the reasons of
// CachedDecoder::step().
WindowResult decode_window(CachedDecoder& decoder, const WhisperTokens& tokens, const WindowOptions& o,
                           std::mt19937_64& random);

// A candidate: what was generated, and the sum of the logarithms of its probabilities.
struct Candidate {
  std::vector<int> tokens;  // may end with WhisperTokens::end
  double logprob = 0;
};

// Beam search: keeps the likeliest sequences of tokens, and collects those that have ended.
class Beams {
 public:
  Beams(std::int64_t count, int end, double patience);
  // Extends the beams by the tokens whose log-probabilities are [count, vocab]. Returns true if enough have ended.
  bool extend(std::span<const float> logprobs);
  const std::vector<Candidate>& running() const { return running_; }     // [count]
  const std::vector<std::int64_t>& parents() const { return parents_; }  // the beam that each continued
  // The sequences that ended; if they are fewer than the beams, the likeliest of the others are added.
  std::vector<Candidate> finished() const;

 private:
  std::size_t count_, most_;
  int end_;
  std::vector<Candidate> running_, finished_;
  std::vector<std::int64_t> parents_;
};

}  // namespace lc
