// The hyperparameters of a checkpoint of the Llama family: Llama 1-3, TinyLlama, Mistral (sliding window), Qwen 2
// (biases) and Qwen 3 (norms of queries and keys).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"

namespace lc {

// Hyperparameters of a model of the Llama family.
struct LlamaConfig {
  std::int64_t vocab = 0, hidden = 0, intermediate = 0, layers = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t context = 0;  // positions the model was trained for
  double eps = 1e-5;         // epsilon of the RMS norms
  double rope_theta = 10000;
  std::vector<double> rope_frequencies;  // [head_dim / 2], radians per position, with scaling applied
  bool rope_interleaved = false;         // true: rotates pairs (2i, 2i + 1); false: pairs (i, i + head_dim / 2)
  std::int64_t window = 0;               // sliding window: positions visible to a position, itself included; 0: all
  std::vector<int> eos = {};             // ids that end a text, if the files define them

  // Reads config.json, GGUF metadata or the header of llama2.c. Throws Error that names a missing or invalid field.
  static LlamaConfig from(const Weights& w);
  // TinyLlama 1.1B, for programs that need its shapes but not its weights.
  static LlamaConfig tinyllama();
};

}  // namespace lc
