// A Llama as an inference graph: one program for every prompt length and position.
//
// Inputs:  "tokens" i64 [seq]; the parameters, by path; "rope.frequencies" f64 [head_dim / 2].
// States:  "cache.<layer>.key" and ".value" [kv_heads, context, head_dim] of the shape's cache type, initially zero;
//          for i8 also ".key.scale" and ".value.scale", f32 [kv_heads, context, 1]: the factor of the integers of
//          one head and position.
// Outputs: "logits" f32 [vocab] of the last token, or [seq, vocab] of all tokens.
// Symbols: seq, 1 <= seq <= chunk, and past, 0 <= past <= context - 1: the number of cached positions.
#pragma once

#include <functional>

#include "lightcone/models/llama/llama_config.h"
#include "lightcone/nn/parameter.h"

namespace lc {

// The sizes of an inference graph that the model does not determine.
struct LlamaShape {
  std::int64_t context = 0;  // positions of the cache
  std::int64_t chunk = 64;   // maximum number of tokens per run
  bool all_logits = false;
  DType cache = DType::F32;  // F32, F16, BF16 or I8
};

// Returns the parameter of a path and shape, or an undefined one if the model has none (a bias, a separate lm_head).
using ParameterSource = std::function<nn::Parameter(Graph& g, const std::string& path, Shape shape)>;

// Builds the graph. Throws Error if the chunk exceeds the context, if the cache type is not supported, or if
// `parameters` lacks a required one.
Graph llama_graph(const LlamaConfig& c, const LlamaShape& s, const ParameterSource& parameters);

}  // namespace lc
