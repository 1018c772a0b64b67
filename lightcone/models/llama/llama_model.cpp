#include "lightcone/models/llama/llama_model.h"

#include <cmath>

#include "lightcone/models/llama/llama_layers.h"
#include "lightcone/ops/ops.h"

namespace lc {
namespace {

void check(const LlamaConfig& c) {
  for (const std::int64_t n : {c.vocab, c.hidden, c.intermediate, c.layers, c.heads, c.kv_heads, c.head_dim, c.context})
    if (n < 1) throw Error("llama", str_cat("one of its sizes is ", n, ", which makes no model"));
  if (c.heads % c.kv_heads != 0)
    throw Error("llama", str_cat(c.kv_heads, " key heads do not divide ", c.heads, " query heads"));
  if (c.head_dim % 2 != 0) throw Error("llama", str_cat("heads of size ", c.head_dim, " cannot be rotated"));
  for (std::size_t i = 0; i < c.rope_frequencies.size(); ++i) {
    const double plain = std::pow(c.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_dim));
    if (std::abs(c.rope_frequencies[i] - plain) > 1e-9 * plain)
      throw Error("llama", "a model whose RoPE is scaled is not trained here");
  }
}

}  // namespace

LlamaModel::LlamaModel(LlamaConfig c, const LlamaModelOptions& o) : config_(std::move(c)), o_(o) { check(config_); }

std::vector<LlamaModel::Part> LlamaModel::parts() const {
  const LlamaConfig& c = config_;
  const std::int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  std::vector<Part> all{{"model.embed_tokens.weight", {c.vocab, c.hidden}}};
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto add = [&](const char* path, std::vector<std::int64_t> shape) {
      all.push_back({str_cat("model.layers.", i, ".", path), std::move(shape)});
    };
    add("input_layernorm.weight", {c.hidden});
    add("self_attn.q_proj.weight", {q, c.hidden});
    add("self_attn.k_proj.weight", {kv, c.hidden});
    add("self_attn.v_proj.weight", {kv, c.hidden});
    add("self_attn.o_proj.weight", {c.hidden, q});
    add("post_attention_layernorm.weight", {c.hidden});
    add("mlp.gate_proj.weight", {c.intermediate, c.hidden});
    add("mlp.up_proj.weight", {c.intermediate, c.hidden});
    add("mlp.down_proj.weight", {c.hidden, c.intermediate});
  }
  all.push_back({"model.norm.weight", {c.hidden}});
  if (!o_.tied) all.push_back({"lm_head.weight", {c.vocab, c.hidden}});
  return all;
}

void LlamaModel::visit(nn::Visitor& v) {
  const double deep = 1 / std::sqrt(2.0 * static_cast<double>(config_.layers));
  tensors_.clear();
  for (const Part& p : parts()) {
    const bool ends = p.path.ends_with("o_proj.weight") || p.path.ends_with("down_proj.weight");
    v.parameter(p.path, tensors_[p.path], Shape(p.shape.begin(), p.shape.end()),
                [=](const nn::init::Extents& s, const nn::init::Source& from) {
                  if (s.size() == 1) return nn::init::ones(s);
                  return nn::init::normal(s, from, 0, ends ? 0.02 * deep : 0.02);
                });
  }
}

Tensor LlamaModel::operator()(const Tensor& ids) const {
  if (ids.rank() != 2) throw Error("llama", str_cat("ids of ", str(ids.shape()), " are not [batch, length]"));
  const LlamaConfig& c = config_;
  Graph& g = ids.graph();
  const ParameterSource mine = [&](Graph&, const std::string& path, const Shape&) {
    const auto it = tensors_.find(path);
    return it == tensors_.end() ? nn::Parameter{} : nn::Parameter{it->second};
  };
  const LlamaLayers layers(g, c, mine);
  const Dim length = ids.extent(1);
  // theta^(-2 i / head_dim), in f64
  const Tensor pair = g.index({c.head_dim / 2}, Dim::index(0, c.head_dim / 2), DType::F64);
  const Tensor frequencies = exp2(pair * (-2 * std::log2(c.rope_theta) / static_cast<double>(c.head_dim)));
  const LlamaLayers::Angles angles = layers.angles(frequencies, length, 0);
  const Tensor mask = layers.mask(length, 0);
  Tensor x = layers.embed(ids);
  for (int i = 0; i < c.layers; ++i) {
    const Tensor h = layers.attention_norm(i, x);
    x = x + layers.attend(i, layers.query(i, h, angles), layers.key(i, h, angles), layers.value(i, h), mask);
    x = x + layers.feed_forward(i, x);
  }
  return layers.logits(x);
}

}  // namespace lc
