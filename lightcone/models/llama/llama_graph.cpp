#include "lightcone/models/llama/llama_graph.h"

#include <cmath>
#include <numbers>

#include "lightcone/ops/ops.h"

namespace lc {
namespace {

class Builder {
 public:
  Builder(Graph& g, const LlamaConfig& c, const LlamaShape& s, const ParameterSource& p)
      : g_(g),
        c_(c),
        s_(s),
        parameters_(p),
        seq_(Dim::symbol("seq", 1, s.chunk)),
        past_(Dim::symbol("past", 0, s.context - 1)) {}
  void build();

 private:
  nn::Parameter parameter(const std::string& path, Shape shape) const {
    return parameters_(g_, path, std::move(shape));
  }
  nn::Parameter required(const std::string& path, Shape shape) const {
    nn::Parameter p = parameter(path, std::move(shape));
    if (!p.defined()) throw Error("llama", cat("the checkpoint has no '", path, "'"));
    return p;
  }
  Tensor project(Tensor x, const std::string& path, std::int64_t in, std::int64_t out) const {
    return nn::linear(x, required(path + ".weight", {out, in}), parameter(path + ".bias", {out}));
  }
  void angles();
  Tensor mask() const;
  Tensor heads(Tensor x, const std::string& path, const std::string& norm, std::int64_t count) const;
  Tensor rotate(Tensor heads, Tensor cos, Tensor sin) const { return rope(heads, cos, sin, c_.rope_interleaved); }
  Tensor remember(const std::string& name, Tensor now) const;
  Tensor keep(const std::string& name, Tensor now) const;
  // The rows of [seq, ...] that layer i computes further than its keys and values: the last one has no other reader
  // than the last row's logits.
  Tensor wanted(Tensor t, int i) const { return i + 1 == c_.layers && !s_.all_logits ? t.slice(0, seq_ - 1, seq_) : t; }
  Tensor attention(Tensor x, const std::string& layer, int i) const;
  Tensor mlp(Tensor x, const std::string& layer) const;

  Graph& g_;
  const LlamaConfig& c_;
  const LlamaShape& s_;
  const ParameterSource& parameters_;
  Dim seq_, past_;
  Tensor cos_, sin_, mask_;
};

// Angles in f64: position * frequency loses nothing, whatever the context.
void Builder::angles() {
  const Dim half = c_.head_dim / 2;
  const Tensor f = g_.input("rope.frequencies", {half}, DType::F64);
  const Shape shape{seq_, half};
  const Tensor position = g_.index(shape, past_ + Dim::index(0, seq_), DType::F64);
  const Tensor a = position * broadcast_to(f, shape);
  cos_ = prim::cast(sin(a + std::numbers::pi / 2), DType::F32);
  sin_ = prim::cast(sin(a), DType::F32);
}

// [seq, past + seq]: which cached positions each token sees.
Tensor Builder::mask() const {
  const Shape shape{seq_, past_ + seq_};
  const Tensor row = g_.index(shape, past_ + Dim::index(0, seq_)),
               column = g_.index(shape, Dim::index(1, past_ + seq_));
  const Tensor causal = column <= row;
  return c_.window > 0 ? logical_and(causal, row - column < static_cast<double>(c_.window)) : causal;
}

// x [rows, hidden] -> [count, rows, head_dim], normed where the model does.
Tensor Builder::heads(Tensor x, const std::string& path, const std::string& norm, std::int64_t count) const {
  Tensor h = project(x, path, c_.hidden, count * c_.head_dim).reshape({x.extent(0), count, c_.head_dim});
  if (const nn::Parameter w = norm.empty() ? nn::Parameter{} : parameter(norm, {c_.head_dim}); w.defined())
    h = nn::rms_norm(h, w, c_.eps);
  return h.permute({1, 0, 2});
}

// Writes the new positions [kv, seq, n] into a state and returns all positions so far, [kv, past + seq, n].
Tensor Builder::keep(const std::string& name, Tensor now) const {
  const Tensor cache = g_.input(name, {c_.kv_heads, s_.context, now.extent(2)}, now.dtype());
  const Tensor next = prim::slice_scatter(cache, now, 1, past_);
  g_.assign(cache, next);
  return next.slice(1, 0, past_ + seq_);
}

// Keys or values as the cache holds them: rounded to its type, or, for i8, to the nearest multiple of a 127th of
// the largest of a head and position. (All zero: 0 / 0 is a NaN, which is the whole number 0.)
Tensor Builder::remember(const std::string& name, Tensor now) const {
  if (s_.cache != DType::I8) return to(keep(name, to(now, s_.cache)), DType::F32);
  const Tensor scale = amax(abs(now), {-1}, true) * (1.0 / 127);
  const Tensor x = now / scale;
  const Tensor codes = to(x + (0.5 - to(x < 0.0, DType::F32)), DType::I8);  // the cast cuts off, and saturates
  return to(keep(name, codes), DType::F32) * keep(name + ".scale", scale);
}

Tensor Builder::attention(Tensor x, const std::string& layer, int i) const {
  const std::string at = layer + "self_attn.";
  const std::int64_t group = c_.heads / c_.kv_heads;
  const Tensor rows = wanted(x, i), key = heads(x, at + "k_proj", at + "k_norm.weight", c_.kv_heads);
  const Tensor q = rotate(heads(rows, at + "q_proj", at + "q_norm.weight", c_.heads), wanted(cos_, i), wanted(sin_, i))
                       .reshape({c_.kv_heads, group, rows.extent(0), c_.head_dim});
  const Tensor k = remember(cat("cache.", i, ".key"), rotate(key, cos_, sin_)).unsqueeze(1);
  const Tensor v = remember(cat("cache.", i, ".value"), heads(x, at + "v_proj", "", c_.kv_heads)).unsqueeze(1);
  Tensor scores = matmul(q, k.transpose(2, 3)) * (1 / std::sqrt(static_cast<double>(c_.head_dim)));
  scores = where(wanted(mask_, i), scores, -kInf);
  const Tensor y = matmul(softmax(scores, -1), v);  // [kv, group, rows, d]
  const Tensor joined = y.permute({2, 0, 1, 3}).reshape({rows.extent(0), c_.heads * c_.head_dim});
  return project(joined, at + "o_proj", c_.heads * c_.head_dim, c_.hidden);
}

Tensor Builder::mlp(Tensor x, const std::string& layer) const {
  const Tensor gate = project(x, layer + "mlp.gate_proj", c_.hidden, c_.intermediate);
  const Tensor up = project(x, layer + "mlp.up_proj", c_.hidden, c_.intermediate);
  return project(silu(gate) * up, layer + "mlp.down_proj", c_.intermediate, c_.hidden);
}

void Builder::build() {
  const nn::Parameter embedding = required("model.embed_tokens.weight", {c_.vocab, c_.hidden});
  nn::Parameter head = parameter("lm_head.weight", {c_.vocab, c_.hidden});
  if (!head.defined()) head = embedding;  // tied
  angles();
  mask_ = mask();
  Tensor x = embedding.rows(g_.input("tokens", {seq_}, DType::I64));
  for (int i = 0; i < c_.layers; ++i) {
    const std::string layer = cat("model.layers.", i, ".");
    const Tensor normed = nn::rms_norm(x, required(layer + "input_layernorm.weight", {c_.hidden}), c_.eps);
    x = wanted(x, i) + attention(normed, layer, i);
    x = x + mlp(nn::rms_norm(x, required(layer + "post_attention_layernorm.weight", {c_.hidden}), c_.eps), layer);
  }
  const Tensor logits = nn::linear(nn::rms_norm(x, required("model.norm.weight", {c_.hidden}), c_.eps), head);
  g_.output("logits", s_.all_logits ? logits : logits.squeeze(0));
}

}  // namespace

Graph llama_graph(const LlamaConfig& c, const LlamaShape& s, const ParameterSource& parameters) {
  if (s.context < 1 || s.chunk < 1 || s.chunk > s.context)
    throw Error("llama", cat("a cache of ", s.context, " positions cannot take chunks of ", s.chunk));
  if (s.cache != DType::F32 && s.cache != DType::F16 && s.cache != DType::BF16 && s.cache != DType::I8)
    throw Error("llama", cat("a cache of ", name(s.cache), ": it can be f32, f16, bf16 or i8"));
  Graph g;
  Builder(g, c, s, parameters).build();
  return g;
}

}  // namespace lc
