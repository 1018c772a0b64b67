// The layers of a Llama, which inference and training share: x is [..., rows, hidden], where what stands in front of
// the rows is nothing or a batch.
#pragma once

#include <string>

#include "lightcone/models/llama/llama_graph.h"

namespace lc {

class LlamaLayers {
 public:
  // What it is given must outlive it.
  LlamaLayers(Graph& g, const LlamaConfig& c, const ParameterSource& p);

  // cos and sin, [rows, head_dim / 2], of the positions first, first + 1, ...; radians a position are f64
  // [head_dim / 2].
  struct Angles {
    Tensor cos, sin;
  };
  Angles angles(Tensor frequencies, const Dim& rows, const Dim& first) const;
  // bool [rows, first + rows]: which positions each row sees, itself the last of them.
  Tensor mask(const Dim& rows, const Dim& first) const;

  Tensor embed(Tensor ids) const { return embedding_.rows(ids); }  // [..., rows] -> [..., rows, hidden]
  Tensor attention_norm(int i, Tensor x) const { return norm(at(i) + "input_layernorm", x); }
  // Of normed rows: [..., heads or kv_heads, rows, head_dim].
  Tensor query(int i, Tensor x, const Angles& a) const;
  Tensor key(int i, Tensor x, const Angles& a) const;
  Tensor value(int i, Tensor x) const;
  // What layer i's attention adds: queries of some rows look at keys and values, [..., kv_heads, positions, head_dim].
  Tensor attend(int i, Tensor q, Tensor k, Tensor v, Tensor mask) const;
  Tensor feed_forward(int i, Tensor x) const;  // what the layer's second half adds
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
