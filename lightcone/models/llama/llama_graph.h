// A Llama as a graph: one program for every prompt length and position.
//
// Inputs:  "tokens" i64 [seq]; the parameters, by path; "rope.frequencies" f64 [head_dim / 2].
// States:  "cache.<layer>.key" and ".value" [kv_heads, context, head_dim] in the shape's cache type, zero at first;
//          for i8 also ".key.scale" and ".value.scale", f32 [kv_heads, context, 1]: what a head's whole numbers
//          of one position are times.
// Outputs: "logits" f32 [vocab] of the last token, or [seq, vocab] of all.
// Symbols: seq, 1 <= seq <= chunk, and past, 0 <= past <= context - 1: the positions already cached.
#pragma once

#include <functional>

#include "lightcone/models/llama/llama_config.h"
#include "lightcone/nn/parameter.h"

namespace lc {

struct LlamaShape {
  std::int64_t context = 0;  // positions the cache holds
  std::int64_t chunk = 64;   // the most tokens of one run
  bool all_logits = false;
  DType cache = DType::F32;  // F32, F16, BF16 or I8
};

// Gives the parameter of a path and its shape, or an undefined one where the model has none (a
// bias, a separate lm_head).
using ParameterSource = std::function<nn::Parameter(Graph& g, const std::string& path, Shape shape)>;

Graph llama_graph(const LlamaConfig& c, const LlamaShape& s, const ParameterSource& parameters);

}  // namespace lc
