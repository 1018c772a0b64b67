#include "lightcone/llm/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lightcone/base/error.h"

namespace lc::llm {

// Finds the largest value first, several maxima at once, since each waits for itself alone; then where it is.
int most_likely(std::span<const float> logits) {
  if (logits.empty()) throw Error("sampler", "there are no logits");
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  std::array<float, 8> most;
  most.fill(kLeast);
  std::size_t i = 0;
  for (; i + most.size() <= logits.size(); i += most.size())
    for (std::size_t k = 0; k < most.size(); ++k) most[k] = std::max(most[k], logits[i + k]);
  for (; i < logits.size(); ++i) most[0] = std::max(most[0], logits[i]);
  const float best = *std::ranges::max_element(most);
  if (best == kLeast) return 0;
  return static_cast<int>(std::ranges::find(logits, best) - logits.begin());
}

Sampler::Sampler(const SamplerOptions& o) : o_(o), random_(o.seed) {
  const auto refuse = [](const char* what, double v, const char* range) {
    throw Error("sampler", str_cat(what, " is ", v, ", it must be ", range));
  };
  if (!(o.temperature >= 0) || std::isinf(o.temperature)) refuse("temperature", o.temperature, "0 or more");
  if (o.top_k < 0) refuse("top_k", o.top_k, "0 or more");
  if (!(o.top_p > 0 && o.top_p <= 1)) refuse("top_p", o.top_p, "above 0 and at most 1");
  if (!(o.min_p >= 0 && o.min_p <= 1)) refuse("min_p", o.min_p, "between 0 and 1");
  if (!(o.repetition_penalty > 0) || std::isinf(o.repetition_penalty))
    refuse("repetition_penalty", o.repetition_penalty, "above 0");
  if (o.penalty_window < 0) refuse("penalty_window", o.penalty_window, "0 or more");
}

int Sampler::operator()(std::span<const float> logits, std::span<const int> history) {
  if (logits.empty()) throw Error("sampler", "there are no logits");
  if (o_.temperature == 0 && o_.repetition_penalty == 1) return most_likely(logits);
  all_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // A NaN counts as -infinity: it is never chosen and does not disturb the order.
    all_[i] = {std::isnan(logits[i]) ? -std::numeric_limits<float>::infinity() : logits[i], static_cast<int>(i)};
  }
  if (o_.repetition_penalty != 1 && o_.penalty_window > 0) {
    if (history.empty())
      throw Error("sampler", str_cat("repetition_penalty is ", o_.repetition_penalty,
                                     ", and no tokens are given that could repeat: pick(logits, session.tokens())"));
    penalise(history);
  }
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  if (o_.temperature == 0) return std::min_element(all_.begin(), all_.end(), likelier)->id;
  const std::size_t keep =
      o_.top_k > 0 ? std::min<std::size_t>(static_cast<std::size_t>(o_.top_k), all_.size()) : all_.size();
  if (keep < all_.size())
    std::nth_element(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(keep), all_.end(), likelier);
  all_.resize(keep);
  std::sort(all_.begin(), all_.end(), likelier);
  keep_likely();
  double total = 0;
  for (double p : probability_) total += p;
  // 53 random bits, the same on every platform.
  double u = static_cast<double>(random_() >> 11) * 0x1p-53 * total;
  for (std::size_t i = 0; i < probability_.size(); ++i)
    if ((u -= probability_[i]) < 0) return all_[i].id;
  return all_.front().id;
}

void Sampler::penalise(std::span<const int> history) {
  std::vector<int> seen(
      history.last(std::min<std::size_t>(history.size(), static_cast<std::size_t>(o_.penalty_window))).begin(),
      history.end());
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (int id : seen) {
    if (id < 0 || static_cast<std::size_t>(id) >= all_.size()) continue;
    float& x = all_[static_cast<std::size_t>(id)].logit;
    x = static_cast<float>(x > 0 ? x / o_.repetition_penalty : x * o_.repetition_penalty);
  }
}

// Probabilities at this temperature relative to the best one, restricted by top_p and min_p.
void Sampler::keep_likely() {
  probability_.resize(all_.size());
  const double best = static_cast<double>(all_.front().logit);
  double total = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const double d = static_cast<double>(all_[i].logit) - best;
    probability_[i] =
        std::isfinite(best) ? std::exp(d / o_.temperature) : (all_[i].logit == all_.front().logit ? 1.0 : 0.0);
    total += probability_[i];
  }
  std::size_t n = 0;
  for (double sum = 0; n < probability_.size(); ++n) {
    if (n > 0 && (sum >= o_.top_p * total || probability_[n] < o_.min_p)) break;
    sum += probability_[n];
  }
  probability_.resize(n);
  all_.resize(n);
}

}  // namespace lc::llm
