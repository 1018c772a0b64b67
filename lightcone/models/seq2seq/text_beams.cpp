#include "lightcone/models/seq2seq/text_beams.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lc {
namespace {

constexpr double kFar = -1e9;  // the score of a beam that no text has

}  // namespace

TextBeams::TextBeams(const Seq2SeqGeneration& g, std::int64_t count, std::int64_t most)
    : g_(g),
      count_(static_cast<std::size_t>(count)),
      most_(static_cast<std::size_t>(most)),
      running_(count_),
      parents_(count_) {
  for (std::size_t k = 1; k < count_; ++k) running_[k].score = kFar;  // at first all beams are the same
}

void TextBeams::finish(Beam b, double length) {
  b.score /= std::pow(length, g_.length_penalty);
  const auto at = std::ranges::find_if(finished_, [&](const Beam& f) { return f.score < b.score; });
  finished_.insert(at, std::move(b));
  if (finished_.size() > count_) finished_.pop_back();
}

bool TextBeams::extend(std::span<const float> logprobs) {
  const std::size_t vocab = logprobs.size() / count_;
  const auto score = [&](std::size_t k) { return running_[k / vocab].score + static_cast<double>(logprobs[k]); };
  std::vector<std::size_t> order(logprobs.size());
  std::iota(order.begin(), order.end(), 0);
  // Each token that may end a text may be among the best once a beam.
  const std::size_t looked = std::min(order.size(), (1 + std::max<std::size_t>(g_.ends.size(), 1)) * count_);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(looked);
  std::partial_sort(order.begin(), middle, order.end(), [&](std::size_t a, std::size_t b) {
    return score(a) > score(b) || (score(a) == score(b) && a < b);
  });
  order.resize(looked);
  ++length_;
  std::vector<Beam> next;
  std::vector<std::int64_t> parents;
  for (std::size_t rank = 0; rank < looked; ++rank) {
    const std::size_t parent = order[rank] / vocab;
    Beam b{running_[parent].tokens, score(order[rank])};
    b.tokens.push_back(static_cast<int>(order[rank] % vocab));
    const bool ended = std::ranges::count(g_.ends, b.tokens.back()) > 0 || length_ >= most_;
    if (ended && rank < count_) finish(std::move(b), static_cast<double>(length_));
    else if (!ended && next.size() < count_)
      next.push_back(std::move(b)), parents.push_back(static_cast<std::int64_t>(parent));
  }
  if (next.empty()) return true;
  while (next.size() < count_) next.push_back({next.back().tokens, kFar}), parents.push_back(parents.back());
  running_ = std::move(next), parents_ = std::move(parents);
  if (finished_.size() < count_) return false;
  const double best = running_.front().score / std::pow(static_cast<double>(length_), g_.length_penalty);
  return g_.early_stopping || best <= finished_.back().score;
}

std::vector<int> TextBeams::best() const {
  return finished_.empty() ? running_.front().tokens : finished_.front().tokens;
}

}  // namespace lc
