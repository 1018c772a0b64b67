#include "lightcone/models/whisper/decoding.h"

#include <algorithm>
#include <cmath>

#include "lightcone/llm/sampler.h"

namespace lc {
namespace {

// Decodes one window, step by step.
class Window {
 public:
  Window(CachedDecoder& d, const WhisperTokens& t, const WindowOptions& o, std::mt19937_64& random)
      : decoder_(d),
        tokens_(t),
        o_(o),
        rules_(t, o.timestamps),
        random_(random),
        rows_(d.programs().shape().rows),
        vocab_(static_cast<std::size_t>(d.programs().config().vocab)),
        most_(d.programs().shape().context / 2) {}

  WindowResult decode() {
    WindowResult r;
    r.temperature = o_.temperature;
    r.no_speech = begin();
    const std::vector<Candidate> found = o_.temperature == 0 && rows_ > 1 ? search() : sample();
    const Candidate& best = *std::ranges::max_element(found, {}, [&](const Candidate& c) { return score(c); });
    r.tokens = best.tokens;
    if (!r.tokens.empty() && r.tokens.back() == tokens_.end) r.tokens.pop_back();
    r.average_logprob = best.logprob / static_cast<double>(r.tokens.size() + 1);
    return r;
  }

 private:
  // Feeds what stands before the text. Returns the probability of silence, which the model says after
  // <|startoftranscript|>.
  double begin() {
    decoder_.begin();
    std::vector<int> first = o_.prompt;
    first.push_back(o_.begin.front());
    feed(first);
    double silence = 0;
    if (tokens_.no_speech >= 0)
      silence =
          std::exp(static_cast<double>(logits_[static_cast<std::size_t>(tokens_.no_speech)]) - log_sum_exp(row(0)));
    if (o_.begin.size() > 1) feed(std::span(o_.begin).subspan(1));
    return silence;
  }
  // The same tokens for every row.
  void feed(std::span<const int> ids) {
    std::vector<std::int64_t> all;
    for (std::int64_t r = 0; r < rows_; ++r) all.insert(all.end(), ids.begin(), ids.end());
    take(decoder_.step(all));
  }
  void take(std::span<const float> logits) { logits_.assign(logits.begin(), logits.end()); }
  std::span<float> row(std::int64_t r) {
    return std::span(logits_).subspan(static_cast<std::size_t>(r) * vocab_, vocab_);
  }
  bool has_room(std::size_t sampled) const {
    return static_cast<std::int64_t>(sampled) < most_ && decoder_.past() < decoder_.programs().shape().context;
  }

  std::vector<Candidate> search() {
    Beams beams(rows_, tokens_.end, o_.patience);
    for (std::size_t n = 0;; ++n) {
      for (std::int64_t r = 0; r < rows_; ++r) {
        rules_.apply(row(r), beams.running()[static_cast<std::size_t>(r)].tokens);
        const double all = log_sum_exp(row(r));
        for (float& x : row(r)) x = static_cast<float>(static_cast<double>(x) - all);
      }
      if (beams.extend(logits_) || !has_room(n + 1)) return beams.finished();
      std::vector<std::int64_t> last;
      for (const Candidate& c : beams.running()) last.push_back(c.tokens.back());
      take(decoder_.step(last, beams.parents()));
    }
  }

  std::vector<Candidate> sample() {
    std::vector<Candidate> all(static_cast<std::size_t>(rows_));
    for (std::size_t n = 0;; ++n) {
      std::vector<std::int64_t> last;
      bool goes_on = false;
      for (std::int64_t r = 0; r < rows_; ++r) {
        Candidate& c = all[static_cast<std::size_t>(r)];
        if (!ended(c)) {
          rules_.apply(row(r), c.tokens);
          const int id = pick(row(r));
          c.logprob += static_cast<double>(row(r)[static_cast<std::size_t>(id)]) - log_sum_exp(row(r));
          c.tokens.push_back(id);
        }
        goes_on = goes_on || !ended(c);
        last.push_back(c.tokens.back());
      }
      if (!goes_on || !has_room(n + 1)) return all;
      take(decoder_.step(last));
    }
  }
  bool ended(const Candidate& c) const { return !c.tokens.empty() && c.tokens.back() == tokens_.end; }

  int pick(std::span<const float> logits) {
    const int best = llm::most_likely(logits);
    if (o_.temperature == 0) return best;
    const auto most = static_cast<double>(logits[static_cast<std::size_t>(best)]);
    probability_.resize(logits.size());
    double total = 0;
    for (std::size_t k = 0; k < logits.size(); ++k) {
      probability_[k] = std::exp((static_cast<double>(logits[k]) - most) / o_.temperature);
      total += probability_[k];
    }
    double u = static_cast<double>(random_() >> 11) * 0x1p-53 * total;  // 53 random bits, the same on every platform
    for (std::size_t k = 0; k < logits.size(); ++k)
      if ((u -= probability_[k]) < 0) return static_cast<int>(k);
    return best;
  }

  double score(const Candidate& c) const {
    const auto n = static_cast<double>(std::max<std::size_t>(1, c.tokens.size() - (ended(c) ? 1 : 0)));
    return c.logprob / (o_.length_penalty ? std::pow((5 + n) / 6, *o_.length_penalty) : n);
  }

  CachedDecoder& decoder_;
  const WhisperTokens& tokens_;
  const WindowOptions& o_;
  TokenRules rules_;
  std::mt19937_64& random_;
  std::int64_t rows_;
  std::size_t vocab_;
  std::int64_t most_;  // tokens of a window
  std::vector<float> logits_;
  std::vector<double> probability_;
};

}  // namespace

WindowResult decode_window(CachedDecoder& decoder, const WhisperTokens& tokens, const WindowOptions& o,
                           std::mt19937_64& random) {
  return Window(decoder, tokens, o, random).decode();
}

}  // namespace lc
