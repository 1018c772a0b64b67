#include "lightcone/models/llama/llama_layers.h"

#include <numbers>

#include "lightcone/ops/ops.h"

namespace lc {

LlamaLayers::LlamaLayers(Graph& g, const LlamaConfig& c, const ParameterSource& p)
    : g_(g),
      c_(c),
      parameters_(p),
      embedding_(required("model.embed_tokens.weight", {c.vocab, c.hidden})),
      head_(parameter("lm_head.weight", {c.vocab, c.hidden})) {
  if (!head_.defined()) head_ = embedding_;  // tied to the embedding
}

nn::Parameter LlamaLayers::required(const std::string& path, Shape shape) const {
  nn::Parameter p = parameter(path, std::move(shape));
  if (!p.defined()) throw Error("llama", str_cat("the checkpoint has no '", path, "'"));
  return p;
}

Tensor LlamaLayers::norm(const std::string& path, Tensor x) const {
  return nn::rms_norm(x, required(path + ".weight", {c_.hidden}), c_.eps);
}

Tensor LlamaLayers::project(Tensor x, const std::string& path, std::int64_t in, std::int64_t out) const {
  return nn::linear(x, required(path + ".weight", {out, in}), parameter(path + ".bias", {out}));
}

// Computed in f64, where position * frequency is accurate for any context.
LlamaLayers::Angles LlamaLayers::angles(Tensor frequencies, const Dim& rows, const Dim& first) const {
  const Shape shape{rows, c_.head_dim / 2};
  const Tensor position = g_.index(shape, first + Dim::index(0, rows), DType::F64);
  const Tensor a = position * broadcast_to(frequencies, shape);
  return {prim::cast(sin(a + std::numbers::pi / 2), DType::F32), prim::cast(sin(a), DType::F32)};
}

Tensor LlamaLayers::mask(const Dim& rows, const Dim& first) const {
  const Shape shape{rows, first + rows};
  const Tensor row = g_.index(shape, first + Dim::index(0, rows)),
               column = g_.index(shape, Dim::index(1, first + rows));
  const Tensor causal = column <= row;
  return c_.window > 0 ? logical_and(causal, row - column < static_cast<double>(c_.window)) : causal;
}

// [..., rows, hidden] -> [..., count, rows, head_dim], normalised if the model has a norm of this name.
Tensor LlamaLayers::heads(Tensor x, const std::string& path, const std::string& norm, std::int64_t count) const {
  Shape shape = x.shape();
  shape.back() = count;
  shape.push_back(c_.head_dim);
  Tensor h = project(x, path, c_.hidden, count * c_.head_dim).reshape(shape);
  if (const nn::Parameter w = norm.empty() ? nn::Parameter{} : parameter(norm, {c_.head_dim}); w.defined())
    h = nn::rms_norm(h, w, c_.eps);
  return h.transpose(-3, -2);
}

Tensor LlamaLayers::query(int i, Tensor x, const Angles& a) const {
  const std::string layer = at(i) + "self_attn.";
  return rope(heads(x, layer + "q_proj", layer + "q_norm.weight", c_.heads), a.cos, a.sin, c_.rope_interleaved);
}
Tensor LlamaLayers::key(int i, Tensor x, const Angles& a) const {
  const std::string layer = at(i) + "self_attn.";
  return rope(heads(x, layer + "k_proj", layer + "k_norm.weight", c_.kv_heads), a.cos, a.sin, c_.rope_interleaved);
}
Tensor LlamaLayers::value(int i, Tensor x) const { return heads(x, at(i) + "self_attn.v_proj", "", c_.kv_heads); }

Tensor LlamaLayers::attend(int i, Tensor q, Tensor k, Tensor v, Tensor mask) const {
  const Tensor y = scaled_dot_product_attention(q, k, v, mask).transpose(-3, -2);  // [..., rows, heads, head_dim]
  Shape joined = y.shape();
  joined.pop_back();
  joined.back() = c_.heads * c_.head_dim;
  return project(y.reshape(joined), at(i) + "self_attn.o_proj", c_.heads * c_.head_dim, c_.hidden);
}

Tensor LlamaLayers::feed_forward(int i, Tensor x) const {
  const Tensor h = norm(at(i) + "post_attention_layernorm", x);
  const Tensor gate = project(h, at(i) + "mlp.gate_proj", c_.hidden, c_.intermediate);
  const Tensor up = project(h, at(i) + "mlp.up_proj", c_.hidden, c_.intermediate);
  return project(silu(gate) * up, at(i) + "mlp.down_proj", c_.intermediate, c_.hidden);
}

Tensor LlamaLayers::logits(Tensor x) const { return nn::linear(norm("model.norm", x), head_); }

}  // namespace lc
