// Choosing the next token from logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace lc {

struct SamplerOptions {
  double temperature = 0;         // 0: greedy, the most likely token (the first of equals)
  int top_k = 0;                  // keep the k most likely; 0: all
  double top_p = 1;               // then the fewest whose probabilities reach p (Holtzman et al. 2020)
  double min_p = 0;               // then those at least min_p times as likely as the best
  double repetition_penalty = 1;  // of tokens seen lately (Keskar et al. 2019): x / p where x > 0, else x * p
  int penalty_window = 64;        // how many of the last tokens count
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& o);  // Error for options that make no sense
  // `history` are the tokens so far: Error where a repetition_penalty has none to look at.
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

}  // namespace lc
