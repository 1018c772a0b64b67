#include "scale.h"

#include <algorithm>
#include <array>

#include "lightcone/base/error.h"
#include "lightcone/composites/composites.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/composites.h"

namespace lc::tool {
namespace {

// Elementwise operations only, each with one reader, so that only a limit ends a kernel.
Graph chain(std::size_t nodes) {
  Graph g;
  const Tensor x = g.input("x", {64, 64});
  const Tensor w[] = {g.input("w0", {64, 64}), g.input("w1", {64}), g.input("w2", {64, 1})};
  Tensor t = x;
  for (std::size_t k = 0; g.size() < nodes; ++k) {
    switch (k % 5) {
      case 0: t = t * w[k / 5 % 3]; break;
      case 1: t = t + w[k / 5 % 2]; break;
      case 2: t = maximum(t, x); break;
      case 3: t = sqrt(t); break;
      default: t = t.transpose(0, 1) + x; break;
    }
  }
  g.output("y", t);
  return g;
}

// The same with reductions and a changing shape: rows of 16 to 256 elements.
Graph rows(std::size_t nodes) {
  Graph g;
  Tensor t = g.input("x", {4096});
  const Tensor w = g.input("w", {4096});
  for (int k = 0; g.size() < nodes; ++k) {
    const int row = 16 << k % 5;
    const Tensor r = t.reshape({4096 / row, row}), v = w.reshape({4096 / row, row});
    t = (k % 2 ? softmax(r * v, -1) : layer_norm(r + v, {r.extent(-1)}) * v + r).reshape({4096});
  }
  g.output("y", t);
  return g;
}

// Many results of one input.
Graph wide(std::size_t nodes) {
  Graph g;
  const Tensor x = g.input("x", {256});
  for (int k = 0; g.size() < nodes; ++k)
    g.output(str_cat("y", k), relu(x * g.input(str_cat("w", k), {256})) + g.input(str_cat("b", k), {256}));
  return g;
}

// Many states, each with a new value.
Graph states(std::size_t nodes) {
  Graph g;
  const Tensor x = g.input("x", {256});
  for (int k = 0; g.size() < nodes; ++k) {
    const Tensor s = g.input(str_cat("s", k), {256});
    g.assign(s, s * 0.9 + x * g.input(str_cat("w", k), {256}));
  }
  return g;
}

// Repeats matmul, layer norm, GELU and a residual.
Graph blocks(std::size_t nodes) {
  Graph g;
  Tensor t = g.input("x", {32, 64});
  for (int k = 0; g.size() < nodes; ++k) {
    const Tensor h = matmul(layer_norm(t, {t.extent(-1)}), g.input(str_cat("up", k), {64, 128}));
    t = t + matmul(gelu(h + g.input(str_cat("bias", k), {128})), g.input(str_cat("down", k), {128, 64}));
  }
  g.output("y", t);
  return g;
}

Graph llama_layers(int layers) {
  LlamaConfig c{.vocab = 256,
                .hidden = 64,
                .intermediate = 128,
                .layers = layers,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = 16,
                .context = 64,
                .rope_frequencies = {}};
  c.rope_frequencies.assign(8, 0.5);
  return llama_graph(c, {.context = 64, .chunk = 8}, [](Graph& g, const std::string& path, const Shape& s) {
    return path.ends_with(".bias") || path.ends_with("_norm.weight") ? nn::Parameter{}
                                                                     : nn::parameter(g, path, s, DType::F32);
  });
}

// The nodes of a Llama whose attention, norms and rotations are written out, as compilers see them.
std::size_t written_out(int layers) {
  PassLog log;
  return inline_transparent(llama_layers(layers), log, builtin::attention()).size();
}

// A Llama with as many layers as the nodes require.
Graph llama(std::size_t nodes) {
  const std::size_t one = written_out(1), two = written_out(2);
  return llama_layers(static_cast<int>(1 + (nodes - std::min(nodes, one)) / (two - one)));
}

}  // namespace

std::span<const ScaledGraph> scaled_graphs() {
  static constexpr std::array<ScaledGraph, 6> all = {
      {{"chain", "elementwise operations in a chain", chain},
       {"rows", "softmax and layer norm over rows of changing length", rows},
       {"wide", "many results of one input", wide},
       {"states", "many states", states},
       {"blocks", "layer norm, matmul, GELU, matmul, residual", blocks},
       {"llama", "a Llama of many layers", llama}}};
  return all;
}

}  // namespace lc::tool
