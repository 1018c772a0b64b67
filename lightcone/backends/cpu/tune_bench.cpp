// Times the workloads by which a machine profile is decided, on this machine.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/backends/cpu/tune.h"
#include "lightcone/base/error.h"
#include "lightcone/composites/composites.h"
#include "lightcone/device/memory.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

namespace lc {
namespace {

using backends::cpu::TuneBench;
using backends::cpu::TuneWork;
using i64 = std::int64_t;

constexpr i64 kWidest = 4096;  // longest timed row, in elements
constexpr i64 kMB = 1 << 20;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
// An eighth of the free memory, so that timing does not push out other processes' memory.
i64 bytes_to_spare() {
#if defined(_SC_AVPHYS_PAGES)
  const long pages = ::sysconf(_SC_AVPHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) return i64{pages} * page / 8;
#endif
  return 512 * kMB;
}

QuantFormat format(TuneWork w) { return w == TuneWork::Q8Weights ? QuantFormat::Q8_0 : QuantFormat::Q4_K; }
i64 row_bytes(TuneWork w) {
  const QuantInfo& q = info(format(w));
  return kWidest / q.elements * q.bytes;
}
bool of_weights(TuneWork w) { return w == TuneWork::Q8Weights || w == TuneWork::Q4Weights; }

class Bench {
 public:
  explicit Bench(const TuneOptions& o)
      : threads_(o.threads), parallel_(backends::cpu::threads(o.threads)), small_(o.elements > 0) {
    const i64 last = backends::cpu::default_machine().l3, spare = bytes_to_spare();
    const i64 beyond = std::clamp<i64>(last / 2, 8 << 20, 32 << 20);
    elements_ = (o.elements > 0 ? o.elements : beyond) / kWidest * kWidest;
    if (elements_ < kWidest) throw Error("tune", "tensors of fewer than 4,096 elements tell nothing about a machine");
    // Each loop run reads another part of the input, and each candidate has its own copy of the weights and reads all
    // of it. With the other candidates in between, at least twice the last-level cache is read before the same data is
    // read again.
    const i64 all = small_ ? elements_ * 4 : std::min(std::clamp(2 * last, 128 * kMB, 512 * kMB), spare);
    input_ = Memory(static_cast<std::size_t>(std::max(elements_ * 4, all)));
    auto* x = reinterpret_cast<float*>(input_.data());
    for (std::size_t k = 0; k < input_.size() / 4; ++k) x[k] = static_cast<float>(k * 2654435761 % 4001) * 1e-3f - 2;
  }
  TuneBench::Turn prepare(TuneWork w, const std::vector<Machine>& candidates);
  void measure(Machine& m) const;

 private:
  Graph graph(TuneWork w) const;
  i64 weight_rows(TuneWork w) const { return static_cast<i64>(input_.size()) / row_bytes(w); }

  int threads_;
  std::shared_ptr<Parallel> parallel_;
  bool small_;  // a test asked for small tensors
  i64 elements_ = 0;
  std::size_t runs_ = 0;
  Memory input_;
};

// The graph of a workload. It reads "x"; for weights also "a", one row of kWidest numbers.
Graph Bench::graph(TuneWork w) const {
  Graph g;
  const auto input = [&](i64 columns) { return g.input("x", {elements_ / columns, columns}); };
  switch (w) {
    case TuneWork::Gelu: g.output("y", gelu(input(kWidest))); break;
    case TuneWork::Softmax: g.output("y", softmax(input(kWidest), -1)); break;
    case TuneWork::LayerNorm: g.output("y", layer_norm(input(1024), {1024})); break;
    case TuneWork::Q8Weights:
    case TuneWork::Q4Weights: {  // one row times weights, as in decoding
      const Tensor x = g.parameter("x", {weight_rows(w), row_bytes(w)}, DType::U8);
      g.output("y", linear(g.input("a", {1, kWidest}), prim::dequantize(x, format(w))));
      break;
    }
  }
  return g;
}

TuneBench::Turn Bench::prepare(TuneWork w, const std::vector<Machine>& candidates) {
  const auto contexts = std::make_shared<std::vector<Context>>();
  const Graph g = graph(w);
  for (const Machine& m : candidates) {
    Program p = compile(g, generic() | cpu({.threads = threads_, .precision = Precision::Medium, .machine = m}));
    if (of_weights(w)) {
      p.load("x", input_.data(), static_cast<std::size_t>(weight_rows(w) * row_bytes(w)));
      contexts->emplace_back(p, parallel_).set("a", std::vector<float>(kWidest, 1.0f));
    } else {
      contexts->emplace_back(p, parallel_);
    }
  }
  return [this, contexts, w] {
    const auto bytes = static_cast<std::size_t>(elements_) * sizeof(float);
    std::vector<double> seconds;
    for (Context& c : *contexts) {
      if (!of_weights(w)) c.use("x", input_.data() + runs_++ % (input_.size() / bytes) * bytes, bytes);
      const double begin = now();
      c.run();
      seconds.push_back(now() - begin);
    }
    return seconds;
  };
}

void Bench::measure(Machine& m) const {
  const i64 beyond = small_ ? 0 : std::min({4 * m.l3, 1024 * kMB, bytes_to_spare()});
  const i64 bytes = std::max(elements_ * 16, beyond);
  const auto size = static_cast<std::size_t>(bytes);
  m.read_bandwidth = backends::cpu::read_bandwidth(*parallel_, size, 0.3);
  m.copy_bandwidth = backends::cpu::copy_bandwidth(*parallel_, size / 2, 0.3);
  m.fma_rate = backends::cpu::fma_rate(*parallel_, 0.2);
}

}  // namespace

Machine tune(const TuneOptions& options) {
  Bench bench(options);
  Machine best = backends::cpu::choose_profile(
      backends::cpu::default_machine(), options,
      {.prepare = [&](TuneWork w, const std::vector<Machine>& all) { return bench.prepare(w, all); },
       .now = now,
       .wide = backends::cpu::detect_isa() == backends::cpu::Isa::Avx512});
  if (options.said) options.said("bandwidths");
  bench.measure(best);
  return best;
}

}  // namespace lc
