#include "lightcone/backends/cpu/tune.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/isa.h"
#include "lightcone/backends/cpu/limits.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/thread_pool.h"
#include "lightcone/core/error.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/memory.h"
#include "lightcone/runtime/program.h"

namespace lc {
namespace {

using Clock = std::chrono::steady_clock;
using Candidates = std::vector<Machine>;

constexpr double kBetter = 0.98;  // of the time: what is worth another choice

struct Work {
  std::int64_t columns;
  Tensor (*make)(Tensor x);
};
const Work kWorks[] = {
    {4096, [](Tensor x) { return gelu(x); }},
    {4096, [](Tensor x) { return softmax(x, -1); }},
    {1024, [](Tensor x) { return layer_norm(x, 1); }},
};

class Tuner {
 public:
  explicit Tuner(const TuneOptions& o) : options_(o), parallel_(host::threads(o.threads)) {
    best_ = host::default_machine();
    const std::int64_t beyond = std::clamp<std::int64_t>(best_.l3 / 2, 8 << 20, 32 << 20);
    elements_ = (o.elements > 0 ? o.elements : beyond) / 4096 * 4096;
    if (elements_ < 4096) throw Error("tune", "tensors of fewer than 4,096 elements tell nothing about a machine");
    input_ = Memory(static_cast<std::size_t>(elements_) * sizeof(float));
    auto* x = reinterpret_cast<float*>(input_.data());
    for (std::int64_t k = 0; k < elements_; ++k) x[k] = static_cast<float>(k * 2654435761 % 4001 - 2000) * 1e-3f;
  }
  Machine run();

 private:
  void say(std::string_view what) const {
    if (options_.said) options_.said(what);
  }
  std::vector<double> times(const Work& w, const Candidates& all) const;
  void decide(const Candidates& others);
  template <class T>
  Candidates with(T Machine::* field, std::initializer_list<T> values) const {
    Candidates all;
    for (const T& v : values)
      if (best_.*field != v) all.push_back(best_), all.back().*field = v;
    return all;
  }

  TuneOptions options_;
  std::shared_ptr<Parallel> parallel_;
  Machine best_;
  std::int64_t elements_ = 0;
  Memory input_;
};

// The fastest run of each candidate, in seconds.
std::vector<double> Tuner::times(const Work& w, const Candidates& all) const {
  std::vector<Context> contexts;
  for (const Machine& m : all) {
    Graph g;
    g.output("y", w.make(g.input("x", {elements_ / w.columns, w.columns})));
    const Program p = compile(g, generic() | cpu({.threads = options_.threads, .machine = m}));
    contexts.emplace_back(p, parallel_).use("x", input_.data(), static_cast<std::size_t>(elements_) * sizeof(float));
  }
  std::vector<double> best(all.size(), 1e30);
  for (int round = 0; round <= options_.rounds; ++round)  // the first one touches the memory
    for (std::size_t k = 0; k < all.size(); ++k) {
      const auto begin = Clock::now();
      contexts[k].run();
      if (round > 0) best[k] = std::min(best[k], std::chrono::duration<double>(Clock::now() - begin).count());
    }
  return best;
}

// The best so far, or one of the others.
void Tuner::decide(const Candidates& others) {
  Candidates all{best_};
  all.insert(all.end(), others.begin(), others.end());
  std::vector<double> score(all.size());  // time, as a part of the best so far's
  for (const Work& w : kWorks) {
    const std::vector<double> t = times(w, all);
    for (std::size_t k = 0; k < all.size(); ++k) score[k] += t[k] / t[0] / std::size(kWorks);
  }
  const auto first = std::min_element(score.begin(), score.end());
  if (*first < kBetter) best_ = all[static_cast<std::size_t>(first - score.begin())];
}

Machine Tuner::run() {
  say("width of vectors");
  if (host::detect_isa() == host::Isa::Avx512) decide(with(&Machine::vector, {std::int64_t{64}, std::int64_t{32}}));
  say("rows through a pipeline");
  decide(with(&Machine::pipeline, {true, false}));
  say("rows fetched ahead");
  decide(with<std::int64_t>(&Machine::fetch_rows, {0, 4096, 8192, 16384}));
  say("streams fetched ahead");
  decide(with<std::int64_t>(&Machine::fetch, {0, 1024, 2048, 4096, 8192}));
  say("stores past the caches");
  decide(with<std::int64_t>(&Machine::stream, {16 << 20, std::int64_t{1} << 40}));
  say("bandwidths");
  const auto bytes = static_cast<std::size_t>(elements_) * 16;
  best_.read_bandwidth = host::read_bandwidth(*parallel_, bytes, 0.3);
  best_.copy_bandwidth = host::copy_bandwidth(*parallel_, bytes / 2, 0.3);
  best_.fma_rate = host::fma_rate(*parallel_, 0.2);
  return best_;
}

}  // namespace

Machine tune(const TuneOptions& options) { return Tuner(options).run(); }

}  // namespace lc
