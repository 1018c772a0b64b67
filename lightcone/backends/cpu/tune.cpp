// Decisions about a machine profile; tune_bench.cpp takes the times.
#include "lightcone/backends/cpu/tune.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace lc::backends::cpu {
namespace {

using Candidates = std::vector<Machine>;

constexpr double kBetter = 0.02, kBetterStreams = 0.05;  // smallest relative gain that changes a setting
constexpr TuneWork kLoops[] = {TuneWork::Gelu, TuneWork::Softmax, TuneWork::LayerNorm};
constexpr TuneWork kWeights[] = {TuneWork::Q8Weights, TuneWork::Q4Weights};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// The result for one workload: each candidate's best time relative to the first candidate's, and the spread of the
// first candidate's own times.
struct Compared {
  std::vector<double> ratio;
  double noise = 0;
};

class Chooser {
 public:
  Chooser(const Machine& built_in, const TuneOptions& o, const TuneBench& bench)
      : options_(o), bench_(bench), best_(built_in), until_(bench.now() + o.seconds) {}
  Machine run();

 private:
  void say(std::string_view what) const {
    if (options_.said) options_.said(what);
  }
  bool time_is_over() const { return bench_.now() >= until_; }
  Compared compare(TuneWork work, Candidates all) const;
  const Machine* better(const Candidates& others, std::span<const TuneWork> works, double least) const;
  void decide(const Candidates& others, std::span<const TuneWork> works = kLoops, double least = kBetter);
  bool slows_weights(const Machine& m) const;
  template <class T>
  Candidates with(T Machine::*field, std::initializer_list<T> values) const {
    Candidates all;
    for (const T& v : values)
      if (best_.*field != v) all.push_back(best_), all.back().*field = v;
    return all;
  }

  const TuneOptions& options_;
  const TuneBench& bench_;
  Machine best_;
  double until_;
};

Compared Chooser::compare(TuneWork work, Candidates all) const {
  const std::size_t others = all.size();
  all.push_back(all[0]);
  const TuneBench::Turn turn = bench_.prepare(work, all);
  std::vector<std::vector<double>> times(all.size());
  turn();  // warm-up: touches the memory
  for (int round = 0; round < std::max(options_.rounds, 1); ++round) {
    const std::vector<double> t = turn();
    for (std::size_t k = 0; k < t.size(); ++k) times[k].push_back(t[k]);
    if (round > 0 && time_is_over()) break;
  }
  const auto fastest = [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); };
  std::vector<double> own = times[0];
  own.insert(own.end(), times[others].begin(), times[others].end());
  const double first = fastest(own), apart = std::abs(fastest(times[0]) - fastest(times[others]));
  Compared c;
  c.noise = std::max(apart, median(own) - first) / first;
  for (std::size_t k = 0; k < others; ++k) c.ratio.push_back(k == 0 ? 1 : fastest(times[k]) / first);
  return c;
}

// Returns the best of `others` if it beats the current profile by more than the noise and `least`, and is slower in no
// workload; otherwise null.
const Machine* Chooser::better(const Candidates& others, std::span<const TuneWork> works, double least) const {
  Candidates all{best_};
  all.insert(all.end(), others.begin(), others.end());
  std::vector<double> score(all.size());
  std::vector<bool> slower(all.size());
  double noise = 0;
  for (const TuneWork w : works) {
    if (time_is_over()) return nullptr;
    const Compared c = compare(w, all);
    noise += c.noise / static_cast<double>(works.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      score[k] += c.ratio[k] / static_cast<double>(works.size());
      if (c.ratio[k] > 1 + std::max(least, c.noise)) slower[k] = true;
    }
  }
  std::size_t found = 0;
  for (std::size_t k = 1; k < all.size(); ++k)
    if (!slower[k] && score[k] < score[found]) found = k;
  return found > 0 && score[found] < 1 - std::max(least, noise) ? &others[found - 1] : nullptr;
}
void Chooser::decide(const Candidates& others, std::span<const TuneWork> works, double least) {
  if (others.empty()) return;
  if (const Machine* m = better(others, works, least)) best_ = *m;
}

// Returns whether `m` slows Q8_0 weights down. Loops decide the prefetch cache level, but it also applies to weights
// with 8-bit codes.
bool Chooser::slows_weights(const Machine& m) const {
  if (time_is_over()) return true;
  const Compared c = compare(TuneWork::Q8Weights, {best_, m});
  return c.ratio[1] > 1 + c.noise;
}

Machine Chooser::run() {
  // Weight streaming (decoding) comes first: it has the largest gains and losses.
  say("streams of weights");
  decide(with<std::int64_t>(&Machine::streams, {1, 4}), kWeights, kBetterStreams);
  say("width of vectors");
  if (bench_.wide) decide(with(&Machine::vector, {std::int64_t{64}, std::int64_t{32}}));
  say("rows through a pipeline, and into which cache");
  Candidates rows;
  for (const bool pipeline : {true, false})
    for (const std::int64_t level : {1, 2}) {
      Machine other = best_;
      other.pipeline = pipeline, other.fetch_level = level;
      if (!(other == best_)) rows.push_back(other);
    }
  const Machine* m = better(rows, kLoops, kBetter);
  if (m && (m->fetch_level == best_.fetch_level || !slows_weights(*m))) best_ = *m;
  say("rows fetched ahead");
  decide(with<std::int64_t>(&Machine::fetch_rows, {0, 4096, 8192, 16384}));
  say("streams fetched ahead");
  decide(with<std::int64_t>(&Machine::fetch, {0, 1024, 2048, 4096, 8192}));
  say("stores past the caches");
  decide(with<std::int64_t>(&Machine::stream, {16 << 20, std::int64_t{1} << 40}));
  return best_;
}

}  // namespace

Machine choose_profile(const Machine& built_in, const TuneOptions& options, const TuneBench& bench) {
  return Chooser(built_in, options, bench).run();
}

}  // namespace lc::backends::cpu
