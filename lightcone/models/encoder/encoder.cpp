#include "lightcone/models/encoder/encoder.h"

#include <algorithm>
#include <cmath>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/encoder/encoder_names.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

Tensor first_token(const Tensor& hidden) { return narrow(hidden, 1, 0, 1).squeeze(1); }

std::int64_t rows_of(const std::optional<DisentangledAttention>& d) { return d ? 2 * d->span : 0; }

// Weights that the layers of an encoder share.
std::vector<EncoderLayer> layers_of(const EncoderConfig& c) {
  const std::size_t count = c.groups > 0 ? static_cast<std::size_t>(c.groups * c.group_layers) : c.layers.size();
  std::vector<EncoderLayer> all;
  for (std::size_t k = 0; k < count; ++k) all.emplace_back(c, k == 0);
  return all;
}

}  // namespace

Encoder::Encoder(EncoderConfig c)
    : c_(std::move(c)),
      tokens_(c_.vocab, c_.embedding),
      positions_(c_.positions, c_.embedding),
      types_(c_.types, c_.embedding),
      embedding_norm_(c_.projects_before_norm ? c_.width : c_.embedding, {.eps = c_.eps, .bias = c_.norm_bias}),
      projection_(c_.embedding, c_.width, {.bias = !c_.projects_before_norm}),
      distances_(c_.distances ? c_.distances->buckets : 0, c_.heads),
      relative_(rows_of(c_.disentangled), c_.width),
      relative_norm_(c_.width, {.eps = c_.eps}),
      final_norm_(c_.width, {.eps = c_.eps, .bias = c_.norm_bias}),
      layers_(layers_of(c_)),
      pooler_(c_.width, c_.width),
      next_sentence_(c_.width, 2),
      dense_(c_.width, head_width(), {.bias = c_.top.dense_bias}),
      out_(head_width(), outputs(), {.bias = !c_.predicts_words() || c_.word_bias}),
      norm_(head_width(), {.eps = c_.eps, .bias = c_.norm_bias}) {}

std::int64_t Encoder::outputs() const {
  if (c_.predicts_words()) return c_.vocab;
  if (c_.head == EncoderHead::Answer) return 2;
  const bool score = c_.head == EncoderHead::Choice || c_.head == EncoderHead::Replaced;
  return score ? 1 : std::ssize(c_.labels);
}

void Encoder::visit(nn::Visitor& v) {
  visit_body(v);
  visit_pooler(v);
  visit_head(v);
}
void Encoder::visit_body(nn::Visitor& v) {
  v("tokens", tokens_);
  if (c_.positions > 0) v("positions", positions_);
  if (c_.types > 0) v("types", types_);
  v("embedding_norm", embedding_norm_);
  if (c_.projects) v("projection", projection_);
  if (c_.distances) v("distances", distances_);
  if (c_.disentangled) v("relative", relative_);
  if (c_.disentangled && c_.disentangled->normalized) v("relative_norm", relative_norm_);
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    const auto in_group = static_cast<std::size_t>(c_.group_layers);
    v(c_.groups > 0 ? str_cat("layers.", k / in_group, ".", k % in_group) : str_cat("layers.", k), layers_[k]);
  }
  if (c_.norm_first) v("final_norm", final_norm_);
}
void Encoder::visit_pooler(nn::Visitor& v) {
  if (c_.pooler) v("pooler", pooler_);
}
void Encoder::visit_head(nn::Visitor& v) {
  if (c_.top.dense) v("head.dense", dense_);
  if (c_.top.norm) v("head.norm", norm_);
  if (words_by_table()) {
    if (c_.word_bias) v.parameter("head.out.bias", out_bias_, {c_.vocab}, nn::constant_init(0));
  } else if (c_.head != EncoderHead::None && c_.head != EncoderHead::NextSentence) {
    v("head.out", out_);
  }
  if (c_.head == EncoderHead::PreTraining || c_.head == EncoderHead::NextSentence) v("next_sentence", next_sentence_);
}

// The rows of the table of positions: [length, width], or where padding has none [batch, length, width].
Tensor Encoder::positions(const Tensor& ids) const {
  if (!c_.positions_by_padding) return positions_(arange(ids.graph(), ids.extent(1)));
  const Tensor counted = to(ne(ids, c_.padding), DType::I64);
  return positions_(cumsum(counted, 1) * counted + c_.padding);
}

Tensor Encoder::embed(const Tensor& ids, const Tensor& mask, const Tensor& types, Random* random) const {
  Tensor x = tokens_(ids);
  if (c_.positions > 0) x = x + positions(ids);
  if (c_.types > 1) x = x + types_(types);
  else if (c_.types == 1) x = x + types_.weight;  // one row, of every token
  if (c_.projects && c_.projects_before_norm) x = projection_(x);
  x = embedding_norm_(x);
  if (c_.hides_padding) x = x * to(mask, DType::F32).unsqueeze(-1);
  x = drop(x, random, c_.dropout.hidden);
  return c_.projects && !c_.projects_before_norm ? projection_(x) : x;
}

// What each layer attends by. Tokens that are alike in it share their tensors.
std::vector<EncoderAttention> Encoder::attentions(const Tensor& mask, Random* random) const {
  Graph& g = mask.graph();
  const Dim length = mask.extent(1);
  const Shape square{length, length};
  const Tensor seen = ne(mask, 0).unsqueeze(1).unsqueeze(1);  // [batch, 1, 1, length]
  const Tensor i = g.index(square, Dim::index(0, length)), j = g.index(square, Dim::index(1, length));
  EncoderAttention shared{.mask = seen, .dropout = random ? c_.dropout.attention : 0, .random = random};
  if (c_.distances) {
    const Tensor bias = relative_bias(distances_.weight, *c_.distances, length, length, 0);
    shared.mask = where(seen, bias, -INFINITY);
  }
  if (c_.disentangled) {
    shared.table = relative_.weight;
    if (c_.disentangled->normalized) shared.table = relative_norm_(shared.table);
    shared.distances = disentangled_distances(g, *c_.disentangled, length, false);
    shared.distances_back = disentangled_distances(g, *c_.disentangled, length, true);
  }
  std::vector<EncoderAttention> all;
  for (const EncoderLayerKind& kind : c_.layers) {
    EncoderAttention& a = all.emplace_back(shared);
    if (kind.rope) a.angles = rope_angles(g, c_.ropes[*kind.rope], length);
    if (kind.reach == 0) continue;
    // a row of padding, which may be far from every token, sees itself
    const Tensor near = abs(i - j) <= kind.reach;
    a.mask = logical_and(near, logical_or(seen, eq(i, j)));
  }
  return all;
}

const EncoderLayer& Encoder::layer(std::size_t k) const {
  if (c_.groups == 0) return layers_[k];
  const auto repeated = static_cast<std::size_t>(c_.group_layers), groups = static_cast<std::size_t>(c_.groups);
  const std::size_t group = (k / repeated) * groups / (c_.layers.size() / repeated);
  return layers_[group * repeated + k % repeated];
}

Tensor Encoder::pool(const Tensor& hidden, const Tensor& pooled, const Tensor& mask) const {
  switch (c_.top.pool) {
    case EncoderPool::Pooled: return pooled;
    case EncoderPool::First: return first_token(hidden);
    case EncoderPool::Mean: {
      const Tensor real = to(mask, DType::F32).unsqueeze(-1);  // [batch, length, 1]
      return sum(hidden * real, {1}) / sum(real, {1});
    }
    case EncoderPool::Each: break;
  }
  return hidden;
}

Tensor Encoder::logits(const Tensor& hidden, const Tensor& pooled, const Tensor& mask, Random* random) const {
  Tensor h = pool(hidden, pooled, mask);
  if (c_.top.drop_first) h = drop(h, random, c_.dropout.head);
  if (c_.top.dense) h = activate(c_.top.activation, dense_(h));
  if (c_.top.norm) h = norm_(h);
  if (words_by_table()) return c_.word_bias ? linear(h, tokens_.weight, out_bias_) : linear(h, tokens_.weight);
  const Tensor y = out_(c_.predicts_words() ? h : drop(h, random, c_.dropout.head));
  const bool score = c_.head == EncoderHead::Choice || c_.head == EncoderHead::Replaced;
  return score ? y.squeeze(-1) : y;
}

std::map<std::string, Tensor> Encoder::run(const Tensor& ids, const Tensor& mask, const Tensor& types, Random* random,
                                           const nn::At& at) const {
  const OpScope scope("Encoder", at);
  const EncoderDropout& p = c_.dropout;
  const ResidualDropout residual{random, p.attended ? p.hidden : 0, p.hidden};
  const std::vector<EncoderAttention> attention = attentions(mask, random);
  Tensor x = embed(ids, mask, types, random);
  for (std::size_t k = 0; k < c_.layers.size(); ++k) x = layer(k)(x, attention[k], residual);
  if (c_.norm_first) x = final_norm_(x);
  std::map<std::string, Tensor> out{{"hidden", x}};
  Tensor pooled;
  if (c_.pooler) out["pooled"] = pooled = tanh(pooler_(first_token(x)));
  if (c_.head != EncoderHead::None && c_.head != EncoderHead::NextSentence)
    out["logits"] = logits(x, pooled, mask, random);
  if (c_.head == EncoderHead::PreTraining || c_.head == EncoderHead::NextSentence)
    out["next_sentence"] = next_sentence_(pooled);
  return out;
}

LoadedModel load_encoder(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  EncoderConfig c = EncoderConfig::from(config);
  const bool gguf = w.gguf() != nullptr;
  LoadedModel m(config.text("model_type"),
                WeightTable(w, gguf ? std::span<const std::string_view>() : encoder_prefixes(),
                            gguf ? encoder_gguf_names() : encoder_weight_names(c.kind)));
  c.fit(config, w, m.weights);
  m.architecture = c.architecture, m.labels = c.labels, m.padding = c.padding;
  m.limits = {{"batch", o.batch}, {"length", c.longest}};
  const Encoder& encoder = m.add(Encoder(c));
  m.weights.require_all_used(str_cat("a ", c.architecture));
  const Shape shape{Dim::symbol("batch", 1, o.batch), Dim::symbol("length", 1, c.longest)};
  std::vector<std::string> names{"input_ids", "attention_mask"};
  if (c.types > 1) names.emplace_back("token_type_ids");
  for (const std::string& name : names) m.inputs[name] = m.graph().input(name, shape, DType::I64);
  for (const auto& [name, value] :
       encoder(m.inputs["input_ids"], m.inputs["attention_mask"], m.inputs["token_type_ids"]))
    m.give(name, value);
  std::erase_if(m.inputs, [](const auto& input) { return !input.second.defined(); });
  m.retrieve(o);
  return m;
}

}  // namespace lc
