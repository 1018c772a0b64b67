// Beam search as Whisper's authors have it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lightcone/models/whisper/decoding.h"

namespace lc {
namespace {

bool likelier(const Candidate& a, const Candidate& b) { return a.logprob > b.logprob; }

// The numbers of the `n` largest values, the largest first and the first of equals before the others.
std::vector<std::size_t> largest(std::span<const float> values, std::size_t n) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  n = std::min(n, order.size());
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(n);
  std::partial_sort(order.begin(), middle, order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  });
  order.resize(n);
  return order;
}

}  // namespace

Beams::Beams(std::int64_t count, int end, double patience)
    : count_(static_cast<std::size_t>(count)),
      most_(std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(static_cast<double>(count) * patience)))),
      end_(end),
      running_(count_),
      parents_(count_) {}

bool Beams::extend(std::span<const float> logprobs) {
  const std::size_t vocab = logprobs.size() / count_;
  struct Next {
    Candidate candidate;
    std::size_t parent;
  };
  std::vector<Next> next;
  for (std::size_t k = 0; k < count_; ++k) {
    const std::span<const float> row = logprobs.subspan(k * vocab, vocab);
    for (const std::size_t id : largest(row, count_ + 1)) {
      if (std::isinf(row[id])) continue;
      Candidate c{running_[k].tokens, running_[k].logprob + static_cast<double>(row[id])};
      c.tokens.push_back(static_cast<int>(id));
      const auto same = [&](const Next& n) { return n.candidate.tokens == c.tokens; };
      if (std::ranges::none_of(next, same)) next.push_back({std::move(c), k});  // at first all beams are the same
    }
  }
  std::ranges::stable_sort(next, likelier, &Next::candidate);
  std::vector<Candidate> ended;
  std::size_t kept = 0;
  std::vector<Candidate> running;
  for (Next& n : next) {
    if (n.candidate.tokens.back() == end_) {
      ended.push_back(std::move(n.candidate));
      continue;
    }
    running.push_back(std::move(n.candidate));
    parents_[kept++] = static_cast<std::int64_t>(n.parent);
    if (kept == count_) break;
  }
  // With fewer tokens to choose from than beams the last beam stands for the missing ones.
  for (; kept > 0 && kept < count_; ++kept) running.push_back(running.back()), parents_[kept] = parents_[kept - 1];
  for (Candidate& c : ended)
    if (finished_.size() < most_) finished_.push_back(std::move(c));
  if (running.empty()) return true;
  running_ = std::move(running);
  return finished_.size() >= most_;
}

std::vector<Candidate> Beams::finished() const {
  std::vector<Candidate> all = finished_, rest = running_;
  std::ranges::stable_sort(rest, likelier);
  for (Candidate& c : rest)
    if (all.size() < count_) all.push_back(std::move(c));
  return all;
}

}  // namespace lc
