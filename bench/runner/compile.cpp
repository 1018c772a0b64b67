// How long compiling takes: the 1.1B Llama, cold (an empty kernel cache) and warm, and long graphs.
#include "lightcone/composites/composites.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/passes/composites.h"
#include "temp_dir.h"
#include "workload.h"

namespace lc::bench {
namespace {

Graph llama() {
  return llama_graph(LlamaConfig::tinyllama(), {.context = 512, .chunk = 64},
                     [](Graph& g, const std::string& path, Shape s) -> nn::Parameter {
                       if (path.ends_with(".bias") || path.ends_with("_norm.weight")) return {};
                       const bool matrix = s.size() == 2;
                       return nn::parameter(g, path, std::move(s), DType::F32,
                                            matrix ? std::optional(QuantFormat::Q8_0) : std::nullopt);
                     });
}

// A residual network: matrix products, activations and norms, as in a deep model. All layers are equal, so that the
// time is the graph's and not the C compiler's.
Graph deep_layers(std::size_t layers) {
  Graph g;
  Tensor x = g.input("x", {4, 64});
  const Tensor weight = g.input("w", {64, 64});
  for (std::size_t k = 0; k < layers; ++k) x = x + gelu(matmul(layer_norm(x, {x.extent(-1)}), weight));
  g.output("y", x);
  return g;
}

// Counts nodes with norms and rotations written out, as compilers see them: how many of them a graph keeps as one node
// is not what the row is about.
std::size_t written_out(const Graph& g) {
  PassLog log;
  return inline_transparent(g, log, builtin::attention()).size();
}

Graph deep(std::size_t nodes) {
  const std::size_t one = written_out(deep_layers(1)), layer = written_out(deep_layers(2)) - one;
  return deep_layers(1 + (nodes - one + layer - 1) / layer);
}

class Compile final : public Workload {
 public:
  explicit Compile(const Json& w)
      : cold_(w.value("cold", false)),
        options_(cpu_options(w)),
        graph_(w.at("kind") == "compile-llama" ? llama() : deep(w.at("nodes").get<std::size_t>())) {}
  void call() override { timed_call(); }
  double timed_call() override {
    std::unique_ptr<TempDir> fresh;
    if (cold_ || !kept_) fresh = std::make_unique<TempDir>();
    if (!cold_ && !kept_) kept_ = std::move(fresh);
    options_.jit.cache_dir = cold_ ? fresh->path() : kept_->path();
    const double begin = now();
    const Program p = compile(graph_, generic() | cpu(options_));
    const double seconds = now() - begin;
    kernels_ = p.kernels();
    return seconds;
  }
  Json facts() override { return {{"nodes", written_out(graph_)}, {"kernels", kernels_}}; }

 private:
  bool cold_;
  CpuOptions options_;
  Graph graph_;
  std::unique_ptr<TempDir> kept_;
  std::size_t kernels_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_compile(const Json& w) { return std::make_unique<Compile>(w); }

}  // namespace lc::bench
