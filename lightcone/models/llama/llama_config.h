// The numbers that make a checkpoint of the Llama family: Llama 1-3, TinyLlama, Mistral (sliding
// window), Qwen 2 (biases) and Qwen 3 (norms of queries and keys).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"

namespace lc {

struct LlamaConfig {
  std::int64_t vocab = 0, hidden = 0, intermediate = 0, layers = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t context = 0;  // positions the model was trained for
  double eps = 1e-5;         // of the RMS norms
  double rope_theta = 10000;
  std::vector<double> rope_frequencies;  // [head_dim / 2], radians a position, scaling applied
  bool rope_interleaved = false;         // pairs (2i, 2i+1), or (i, i + head_dim / 2)
  std::int64_t window = 0;               // a position sees this many, itself included; 0: all
  std::vector<int> eos = {};             // ids that end a text, where the files name them

  // From config.json, GGUF metadata or llama2.c's header. Error names what is missing or wrong.
  static LlamaConfig from(const Weights& w);
  static LlamaConfig tinyllama();  // TinyLlama 1.1B, for what needs its shapes and not its weights
};

// The file's name of the parameter `path` (Hugging Face's names, e.g.
// "model.layers.0.self_attn.q_proj.weight") in a checkpoint of this format.
std::string llama_file_name(const Weights& w, const std::string& path);
std::string llama_gguf_name(const std::string& path);

}  // namespace lc
