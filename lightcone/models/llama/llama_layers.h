// The layers of a Llama, shared by inference and training. x is [..., rows, hidden], with any leading axes (a batch in
// training, none in inference).
#pragma once

#include <string>

#include "lightcone/models/llama/llama_graph.h"

namespace lc {

// Builds the layers of one model in a graph.
class LlamaLayers {
 public:
  // Keeps references: all arguments must outlive the object.
  LlamaLayers(Graph& g, const LlamaConfig& c, const ParameterSource& p);

  // cos and sin of RoPE, [rows, head_dim / 2].
  struct Angles {
    Tensor cos, sin;
  };
  // The angles of the positions first, first + 1, ...; `frequencies` is f64 [head_dim / 2], radians per position.
  Angles angles(Tensor frequencies, const Dim& rows, const Dim& first) const;
  // Causal mask, bool [rows, first + rows]: the positions visible to each row, of which the last is its own; with a
  // sliding window only the nearest of them.
  Tensor mask(const Dim& rows, const Dim& first) const;

  Tensor embed(Tensor ids) const { return embedding_.rows(ids); }  // [..., rows] -> [..., rows, hidden]
  Tensor attention_norm(int i, Tensor x) const { return norm(at(i) + "input_layernorm", x); }
  // Queries of normalised rows, rotated by RoPE: [..., heads, rows, head_dim].
  Tensor query(int i, Tensor x, const Angles& a) const;
  // Keys of normalised rows, rotated by RoPE: [..., kv_heads, rows, head_dim].
  Tensor key(int i, Tensor x, const Angles& a) const;
  // Values of normalised rows: [..., kv_heads, rows, head_dim].
  Tensor value(int i, Tensor x) const;
  // The residual of layer i's attention, [..., rows, hidden], from queries of some rows and keys and values
  // [..., kv_heads, positions, head_dim]. `mask` is bool (true: attend) and broadcasts to [..., heads, rows,
  // positions].
  Tensor attend(int i, Tensor q, Tensor k, Tensor v, Tensor mask) const;
  Tensor feed_forward(int i, Tensor x) const;  // the residual of layer i's feed-forward block
  Tensor logits(Tensor x) const;               // [..., rows, vocab]

 private:
  static std::string at(int i) { return str_cat("model.layers.", i, "."); }
  nn::Parameter parameter(const std::string& path, Shape shape) const {
    return parameters_(g_, path, std::move(shape));
  }
  nn::Parameter required(const std::string& path, Shape shape) const;
  Tensor norm(const std::string& path, Tensor x) const;
  Tensor project(Tensor x, const std::string& path, std::int64_t in, std::int64_t out) const;
  Tensor heads(Tensor x, const std::string& path, const std::string& norm, std::int64_t count) const;

  Graph& g_;
  const LlamaConfig& c_;
  const ParameterSource& parameters_;
  nn::Parameter embedding_, head_;
};

}  // namespace lc
