#include "lightcone/models/whisper/token_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lightcone/llm/sampler.h"

namespace lc {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void forbid(std::span<float> logits, std::int64_t begin, std::int64_t end) {
  begin = std::clamp<std::int64_t>(begin, 0, std::ssize(logits));
  end = std::clamp<std::int64_t>(end, begin, std::ssize(logits));
  std::fill(logits.begin() + begin, logits.begin() + end, kNever);
}

float largest(std::span<const float> logits) { return logits[static_cast<std::size_t>(llm::most_likely(logits))]; }

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  if (logits.empty()) return -std::numeric_limits<double>::infinity();
  const float most = largest(logits);
  if (!std::isfinite(most)) return static_cast<double>(most);
  double sum = 0;
  for (const float x : logits) sum += static_cast<double>(std::exp(x - most));  // f32: most of the time of a rule
  return static_cast<double>(most) + std::log(sum);
}

TokenRules::TokenRules(const WhisperTokens& tokens, bool timestamps, std::optional<int> latest)
    : tokens_(tokens), never_(tokens.suppressed), timestamps_(timestamps), latest_(latest) {
  for (const int id :
       {tokens.transcribe, tokens.translate, tokens.start, tokens.previous, tokens.start_of_words, tokens.no_speech})
    if (id >= 0) never_.push_back(id);
  if (timestamps) never_.push_back(tokens.no_timestamps);
}

void TokenRules::apply(std::span<float> logits, std::span<const int> sampled) const {
  for (const int id : never_) logits[static_cast<std::size_t>(id)] = kNever;
  if (sampled.empty())
    for (const int id : tokens_.suppressed_first) logits[static_cast<std::size_t>(id)] = kNever;
  if (timestamps_) apply_timestamps(logits, sampled);
}

void TokenRules::apply_timestamps(std::span<float> logits, std::span<const int> sampled) const {
  const WhisperTokens& t = tokens_;
  const std::int64_t all = std::ssize(logits);
  const bool last = !sampled.empty() && t.is_timestamp(sampled.back());
  const bool before = sampled.size() < 2 || t.is_timestamp(sampled[sampled.size() - 2]);
  if (last && before) forbid(logits, t.first_timestamp, all);  // after a pair comes text
  else if (last) forbid(logits, 0, t.end);  // a text that has ended is followed by a begin, or nothing
  for (std::size_t k = sampled.size(); k-- > 0;)
    if (t.is_timestamp(sampled[k])) {
      // time does not go back, and only the begin of the next text may be the end of the last
      forbid(logits, t.first_timestamp, last && !before ? sampled[k] : sampled[k] + 1);
      break;
    }
  if (sampled.empty()) {
    forbid(logits, 0, t.first_timestamp);
    if (latest_) forbid(logits, t.first_timestamp + *latest_ + 1, all);
  }
  // A timestamp comes if all of them together are likelier than any other token.
  const auto times = static_cast<std::size_t>(t.first_timestamp);
  const std::span<const float> words = logits.first(times);
  if (log_sum_exp(logits.subspan(times)) > static_cast<double>(largest(words))) forbid(logits, 0, t.first_timestamp);
}

}  // namespace lc
