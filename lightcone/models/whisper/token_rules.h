// The rules by which Whisper's next token is chosen: tokens that never come, and the order of timestamps (A. Radford et
// al., "Robust speech recognition via large-scale weak supervision", 2022, and OpenAI's reference implementation).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lightcone/models/whisper/whisper_tokens.h"

namespace lc {

// Puts -infinity in place of the logits of tokens that must not come next.
class TokenRules {
 public:
  // `timestamps`: text stands between timestamps, which come in pairs and never go back. `latest`: the first timestamp
  // is at most so many steps of 0.02 s after the window's begin.
  TokenRules(const WhisperTokens& tokens, bool timestamps, std::optional<int> latest = 50);
  // `sampled` are the tokens that were generated so far.
  void apply(std::span<float> logits, std::span<const int> sampled) const;

 private:
  void apply_timestamps(std::span<float> logits, std::span<const int> sampled) const;

  const WhisperTokens& tokens_;
  std::vector<int> never_;
  bool timestamps_;
  std::optional<int> latest_;
};

// The logarithm of the sum of the exponentials of logits.
double log_sum_exp(std::span<const float> logits);

}  // namespace lc
