#include "lightcone/models/llama/llama_model.h"

#include <algorithm>
#include <cmath>

#include "lightcone/llm/checkpoint.h"
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
  if (!c.rope_frequencies.empty() && static_cast<std::int64_t>(c.rope_frequencies.size()) != c.head_dim / 2)
    throw Error("llama", str_cat(c.rope_frequencies.size(), " frequencies of RoPE, heads of size ", c.head_dim,
                                 " have ", c.head_dim / 2));
}

// The linear layers of a block: four of attention, then three of the feed-forward block.
constexpr const char* kLinear[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                                   "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

// f64 [head_dim / 2], radians per position: theta^(-2 i / head_dim), or the given frequencies if they are scaled.
Tensor frequencies(Graph& g, const LlamaConfig& c) {
  bool scaled = false;
  for (std::size_t i = 0; i < c.rope_frequencies.size(); ++i) {
    const double plain = std::pow(c.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_dim));
    scaled = scaled || std::abs(c.rope_frequencies[i] - plain) > 1e-9 * plain;
  }
  if (!scaled) {
    const Tensor pair = g.index({c.head_dim / 2}, Dim::index(0, c.head_dim / 2), DType::F64);
    return exp2(pair * (-2 * std::log2(c.rope_theta) / static_cast<double>(c.head_dim)));
  }
  std::vector<Tensor> each;
  for (const double f : c.rope_frequencies) each.push_back(g.constant(f, DType::F64));
  return stack(each);
}

}  // namespace

LlamaModel::LlamaModel(LlamaConfig c, const LlamaModelOptions& o) : config_(std::move(c)), o_(o) { check(config_); }

LlamaModel LlamaModel::of(const Weights& w) {
  const auto has = [&](const std::string& path) { return w.find(llm::name_in_file(w, path)) != nullptr; };
  const std::string first = "model.layers.0.";
  LlamaModelOptions o{.tied = !has("lm_head.weight"), .query_key_norms = has(first + "self_attn.q_norm.weight")};
  for (const char* layer : kLinear)
    if (has(first + layer + ".bias")) o.biases.push_back(layer);
  return LlamaModel(LlamaConfig::from(w), o);
}

std::vector<llm::ParameterInfo> LlamaModel::parameters() const {
  const LlamaConfig& c = config_;
  const std::int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  std::vector<llm::ParameterInfo> all{{"model.embed_tokens.weight", {c.vocab, c.hidden}}};
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto add = [&](const std::string& path, std::vector<std::int64_t> shape) {
      all.push_back({str_cat("model.layers.", i, ".", path), std::move(shape)});
    };
    const auto linear = [&](const char* path, std::int64_t out, std::int64_t in, std::int64_t heads = 0) {
      add(str_cat(path, ".weight"), {out, in});
      all.back().interleaved_heads = heads;
      if (std::ranges::count(o_.biases, path) == 0) return;
      add(str_cat(path, ".bias"), {out});
      all.back().interleaved_heads = heads;
    };
    const std::int64_t outs[] = {q, kv, kv, c.hidden, c.intermediate, c.intermediate, c.hidden},
                       ins[] = {c.hidden, c.hidden, c.hidden, q, c.hidden, c.hidden, c.intermediate};
    add("input_layernorm.weight", {c.hidden});
    const std::int64_t rotated[] = {c.heads, c.kv_heads, 0, 0};
    for (std::size_t k = 0; k < 4; ++k) linear(kLinear[k], outs[k], ins[k], c.rope_interleaved ? rotated[k] : 0);
    if (o_.query_key_norms) add("self_attn.q_norm.weight", {c.head_dim}), add("self_attn.k_norm.weight", {c.head_dim});
    add("post_attention_layernorm.weight", {c.hidden});
    for (std::size_t k = 4; k < 7; ++k) linear(kLinear[k], outs[k], ins[k]);
  }
  all.push_back({"model.norm.weight", {c.hidden}});
  if (!o_.tied) all.push_back({"lm_head.weight", {c.vocab, c.hidden}});
  return all;
}

void LlamaModel::visit(nn::Visitor& v) {
  const double deep = 1 / std::sqrt(2.0 * static_cast<double>(config_.layers));
  tensors_.clear();
  for (const llm::ParameterInfo& p : parameters()) {
    const bool bias = p.path.ends_with(".bias");
    const bool ends = p.path.ends_with("o_proj.weight") || p.path.ends_with("down_proj.weight");
    v.parameter(p.path, tensors_[p.path], Shape(p.shape.begin(), p.shape.end()),
                [=](const nn::init::Extents& s, const nn::init::Source& from) {
                  if (bias) return nn::init::zeros(s);
                  if (s.size() == 1) return nn::init::ones(s);
                  return nn::init::normal(s, from, 0, ends ? 0.02 * deep : 0.02);
                });
  }
}

Tensor LlamaModel::operator()(const Tensor& ids) const {
  return logits(ids, [](const Tensor& causal) { return causal; });
}

Tensor LlamaModel::operator()(const Tensor& ids, const Tensor& segments) const {
  if (!(segments.shape() == ids.shape()))
    throw Error("llama", str_cat("segments of ", str(segments.shape()), " do not number ids of ", str(ids.shape())));
  return logits(ids, [&](const Tensor& causal) {
    const Tensor own = eq(segments.unsqueeze(2), segments.unsqueeze(1));
    return logical_and(causal, own).unsqueeze(1);  // broadcast over the heads
  });
}

Tensor LlamaModel::logits(const Tensor& ids, const std::function<Tensor(const Tensor& causal)>& mask_of) const {
  if (ids.rank() != 2) throw Error("llama", str_cat("ids of ", str(ids.shape()), " are not [batch, length]"));
  const LlamaConfig& c = config_;
  Graph& g = ids.graph();
  const ParameterSource mine = [&](Graph&, const std::string& path, const Shape&) {
    const auto it = tensors_.find(path);
    return it == tensors_.end() ? nn::Parameter{} : nn::Parameter{it->second};
  };
  const LlamaLayers layers(g, c, mine);
  const Dim length = ids.extent(1);
  const LlamaLayers::Angles angles = layers.angles(frequencies(g, c), length, 0);
  const Tensor mask = mask_of(layers.mask(length, 0));
  Tensor x = layers.embed(ids);
  for (int i = 0; i < c.layers; ++i) {
    const Tensor h = layers.attention_norm(i, x);
    x = x + layers.attend(i, layers.query(i, h, angles), layers.key(i, h, angles), layers.value(i, h), mask);
    x = x + layers.feed_forward(i, x);
  }
  return layers.logits(x);
}

}  // namespace lc
