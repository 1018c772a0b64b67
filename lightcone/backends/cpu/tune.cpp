#include "lightcone/backends/cpu/tune.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/core/error.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/device/memory.h"
#include "lightcone/runtime/program.h"

namespace lc {
namespace {

using Clock = std::chrono::steady_clock;
using Candidates = std::vector<Machine>;

constexpr double kBetter = 0.98;  // of the time: what is worth another choice

constexpr std::int64_t kWidest = 4096;  // of a row

// A graph that reads as many numbers as are given, or bytes of so many, from "x"; "a" is a row of kWidest numbers.
struct Work {
  Graph (*make)(std::int64_t elements);
  bool product = false;
};
template <std::int64_t Columns, class F>
Graph rows(std::int64_t elements, const F& f) {
  Graph g;
  g.output("y", f(g.input("x", {elements / Columns, Columns})));
  return g;
}
const Work kLoops[] = {
    {[](std::int64_t n) { return rows<kWidest>(n, [](Tensor x) { return gelu(x); }); }},
    {[](std::int64_t n) { return rows<kWidest>(n, [](Tensor x) { return softmax(x, -1); }); }},
    {[](std::int64_t n) { return rows<1024>(n, [](Tensor x) { return layer_norm(x, {x.extent(-1)}); }); }},
};
// A row times quantised weights, as in decoding.
std::int64_t weight_rows(std::int64_t elements) { return elements * 4 / (kWidest / 32 * 34); }
const Work kProducts[] = {{[](std::int64_t n) {
                             Graph g;
                             const Tensor w = g.input("x", {weight_rows(n), kWidest / 32 * 34}, DType::U8,
                                                      SourceLocation::current(), kParameter);
                             g.output("y", linear(g.input("a", {1, kWidest}), prim::dequantize(w, QuantFormat::Q8_0)));
                             return g;
                           },
                           true}};

class Tuner {
 public:
  explicit Tuner(const TuneOptions& o) : options_(o), parallel_(host::threads(o.threads)) {
    best_ = host::default_machine();
    const std::int64_t beyond = std::clamp<std::int64_t>(best_.l3 / 2, 8 << 20, 32 << 20);
    elements_ = (o.elements > 0 ? o.elements : beyond) / kWidest * kWidest;
    if (elements_ < kWidest) throw Error("tune", "tensors of fewer than 4,096 elements tell nothing about a machine");
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
  void decide(const Candidates& others, std::span<const Work> works = kLoops);
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
  const Graph g = w.make(elements_);
  const auto bytes = static_cast<std::size_t>(w.product ? weight_rows(elements_) * kWidest / 32 * 34 : elements_ * 4);
  for (const Machine& m : all) {
    const CpuOptions options{.threads = options_.threads, .precision = Precision::Medium, .machine = m};
    Program p = compile(g, generic() | cpu(options));
    if (w.product) {
      p.load("x", input_.data(), bytes);
      contexts.emplace_back(p, parallel_).set("a", std::vector<float>(kWidest, 1.0f));
    } else {
      contexts.emplace_back(p, parallel_).use("x", input_.data(), bytes);
    }
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
void Tuner::decide(const Candidates& others, std::span<const Work> works) {
  Candidates all{best_};
  all.insert(all.end(), others.begin(), others.end());
  std::vector<double> score(all.size());  // time, as a part of the best so far's
  for (const Work& w : works) {
    const std::vector<double> t = times(w, all);
    for (std::size_t k = 0; k < all.size(); ++k) score[k] += t[k] / t[0] / static_cast<double>(works.size());
  }
  const auto first = std::min_element(score.begin(), score.end());
  if (*first < kBetter) best_ = all[static_cast<std::size_t>(first - score.begin())];
}

Machine Tuner::run() {
  say("width of vectors");
  if (host::detect_isa() == host::Isa::Avx512) decide(with(&Machine::vector, {std::int64_t{64}, std::int64_t{32}}));
  say("rows through a pipeline, and into which cache");
  Candidates rows;
  for (const bool pipeline : {true, false})
    for (const std::int64_t level : {1, 2}) rows.push_back(best_), rows.back().pipeline = pipeline, rows.back().fetch_level = level;
  decide(rows);
  say("rows fetched ahead");
  decide(with<std::int64_t>(&Machine::fetch_rows, {0, 4096, 8192, 16384}));
  say("streams fetched ahead");
  decide(with<std::int64_t>(&Machine::fetch, {0, 1024, 2048, 4096, 8192}));
  say("stores past the caches");
  decide(with<std::int64_t>(&Machine::stream, {16 << 20, std::int64_t{1} << 40}));
  say("streams of weights");
  decide(with<std::int64_t>(&Machine::streams, {1, 4}), kProducts);
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
