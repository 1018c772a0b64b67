#include "lightcone/models/llama/llama_graph.h"

#include "lightcone/models/llama/llama_layers.h"
#include "lightcone/nn/attention.h"
#include "lightcone/ops/ops.h"

namespace lc {
namespace {

class Builder {
 public:
  Builder(Graph& g, const LlamaConfig& c, const LlamaShape& s, const ParameterSource& p)
      : g_(g),
        c_(c),
        s_(s),
        layers_(g, c, p),
        seq_(Dim::symbol("seq", 1, s.chunk)),
        past_(Dim::symbol("past", 0, s.context - 1)) {}
  void build();

 private:
  // The rows of [seq, ...] for which layer i computes more than keys and values. In the last layer only the last row is
  // needed, unless all logits are outputs.
  Tensor wanted(Tensor t, int i) const { return i + 1 == c_.layers && !s_.all_logits ? t.slice(0, seq_ - 1, seq_) : t; }
  Tensor attention(Tensor x, int i) const;

  Graph& g_;
  const LlamaConfig& c_;
  const LlamaShape& s_;
  LlamaLayers layers_;
  Dim seq_, past_;
  LlamaLayers::Angles angles_;
  Tensor mask_;
};

Tensor Builder::attention(Tensor x, int i) const {
  const Tensor key = layers_.key(i, x, angles_);
  const Tensor q = layers_.query(i, wanted(x, i), {wanted(angles_.cos, i), wanted(angles_.sin, i)});
  const std::string cache = str_cat("cache.", i);
  const nn::KeyValueCache held(g_, cache + ".key", cache + ".value", {c_.kv_heads, s_.context, c_.head_dim}, past_,
                               s_.cache);
  const auto [k, v] = held.append(key, layers_.value(i, x));
  return layers_.attend(i, q, k, v, wanted(mask_, i));
}

void Builder::build() {
  angles_ = layers_.angles(g_.input("rope.frequencies", {c_.head_dim / 2}, DType::F64), seq_, past_);
  mask_ = layers_.mask(seq_, past_);
  Tensor x = layers_.embed(g_.input("tokens", {seq_}, DType::I64));
  for (int i = 0; i < c_.layers; ++i) {
    x = wanted(x, i) + attention(layers_.attention_norm(i, x), i);
    x = x + layers_.feed_forward(i, x);
  }
  const Tensor logits = layers_.logits(x);
  g_.output("logits", s_.all_logits ? logits : logits.squeeze(0));
}

}  // namespace

Graph llama_graph(const LlamaConfig& c, const LlamaShape& s, const ParameterSource& parameters) {
  if (s.context < 1 || s.chunk < 1 || s.chunk > s.context)
    throw Error("llama", str_cat("a cache of ", s.context, " positions cannot take chunks of ", s.chunk));
  if (s.cache != DType::F32 && s.cache != DType::F16 && s.cache != DType::BF16 && s.cache != DType::I8)
    throw Error("llama", str_cat("a cache of ", name(s.cache), ": it can be f32, f16, bf16 or i8"));
  Graph g;
  Builder(g, c, s, parameters).build();
  return g;
}

}  // namespace lc
