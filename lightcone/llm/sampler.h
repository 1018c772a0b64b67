// Sampler chooses the next token from logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace lc::llm {

// Options of a Sampler. The filters apply in the order of the fields.
struct SamplerOptions {
  double temperature = 0;         // 0: greedy, the most likely token (the first of equals)
  int top_k = 0;                  // keeps the k most likely tokens; 0: all
  double top_p = 1;               // then the fewest tokens of which the probabilities reach p (Holtzman et al. 2020)
  double min_p = 0;               // then the tokens at least min_p times as likely as the best
  double repetition_penalty = 1;  // penalty of recent tokens: x / p if x > 0, else x * p (Keskar et al. 2019)
  int penalty_window = 64;        // number of recent tokens
  std::uint64_t seed = 0;
};

// The index of the largest logit, the first of equals: torch.argmax. NaN is never chosen unless there is nothing else.
// Throws Error if there are no logits.
int most_likely(std::span<const float> logits);

// Chooses tokens; its random state advances with each choice that is not greedy.
class Sampler {
 public:
  // Throws Error if an option is out of range.
  explicit Sampler(const SamplerOptions& o);
  // Returns the id of the next token. `history` holds the tokens so far. Throws Error if the logits are empty, or if a
  // repetition_penalty is set and the history is empty.
  int operator()(std::span<const float> logits, std::span<const int> history = {});

 private:
  struct Candidate {
    float logit;
    int id;
  };
  void penalise(std::span<const int> history);
  void keep_likely();
  SamplerOptions o_;
  std::mt19937_64 random_;
  std::vector<Candidate> all_;
  std::vector<double> probability_;
};

}  // namespace lc::llm
