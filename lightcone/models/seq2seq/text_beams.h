// Beam search for texts, as transformers has it: the sums of the logarithms are divided by a power of the length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lightcone/models/seq2seq/generation.h"

namespace lc {

// The likeliest sequences of tokens so far.
class TextBeams {
 public:
  // `most`: tokens of the longest text, without the start.
  TextBeams(const Seq2SeqGeneration& g, std::int64_t count, std::int64_t most);
  // Extends the beams by the tokens whose log-probabilities are [count, vocab]. Returns true if the search has ended.
  bool extend(std::span<const float> logprobs);
  struct Beam {
    std::vector<int> tokens = {};
    double score = 0;  // the sum of logarithms; of a finished text divided by a power of its length
  };
  const std::vector<Beam>& running() const { return running_; }          // [count]
  const std::vector<std::int64_t>& parents() const { return parents_; }  // the beam that each continued
  std::vector<int> best() const;                                         // with the token that ended it

 private:
  void finish(Beam b, double length);

  const Seq2SeqGeneration& g_;
  std::size_t count_, most_, length_ = 0;
  std::vector<Beam> running_, finished_;  // the best finished one first
  std::vector<std::int64_t> parents_;
};

}  // namespace lc
