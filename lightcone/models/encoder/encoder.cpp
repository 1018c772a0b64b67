#include "lightcone/models/encoder/encoder.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

std::int64_t outputs_of(const EncoderConfig& c) {
  if (c.head == EncoderHead::Answer) return 2;
  const bool words = c.head == EncoderHead::MaskedLM || c.head == EncoderHead::PreTraining;
  return words ? c.vocab : std::ssize(c.labels);
}

Tensor first_token(const Tensor& hidden) { return narrow(hidden, 1, 0, 1).squeeze(1); }

}  // namespace

Encoder::Encoder(EncoderConfig c)
    : c_(std::move(c)),
      tokens_(c_.vocab, c_.width),
      positions_(c_.positions, c_.width),
      types_(c_.types, c_.width),
      embedding_norm_(c_.width, {.eps = c_.eps}),
      layers_(
          static_cast<std::size_t>(c_.layers),
          TransformerBlock(
              {.width = c_.width, .heads = c_.heads, .inner = c_.inner, .eps = c_.eps, .activation = c_.activation})),
      pooler_(c_.width, c_.width),
      next_sentence_(c_.width, 2),
      dense_(c_.width, c_.width),
      out_(c_.width, outputs_of(c_)),
      norm_(c_.width, {.eps = c_.eps}) {}

// Classifiers of RoBERTa and DistilBERT have a layer where BERT has its pooler.
bool Encoder::has_head_dense() const {
  return predicts_words() || (c_.head == EncoderHead::Sequence && c_.kind != EncoderKind::Bert);
}

std::string Encoder::head_activation() const {
  if (!predicts_words()) return c_.kind == EncoderKind::Roberta ? "tanh" : "relu";
  return c_.kind == EncoderKind::Roberta ? "gelu" : c_.activation;
}

void Encoder::visit(nn::Visitor& v) {
  visit_body(v);
  visit_pooler(v);
  visit_head(v);
}
void Encoder::visit_body(nn::Visitor& v) {
  v("tokens", tokens_)("positions", positions_);
  if (c_.types > 0) v("types", types_);
  v("embedding_norm", embedding_norm_)("layers", layers_);
}
void Encoder::visit_pooler(nn::Visitor& v) {
  if (c_.pooler) v("pooler", pooler_);
}
void Encoder::visit_head(nn::Visitor& v) {
  if (has_head_dense()) v("head.dense", dense_);
  if (predicts_words()) v("head.norm", norm_);
  if (predicts_words() && c_.tied) v.parameter("head.out.bias", out_bias_, {c_.vocab}, nn::constant_init(0));
  else if (c_.head != EncoderHead::None && c_.head != EncoderHead::NextSentence) v("head.out", out_);
  if (c_.head == EncoderHead::PreTraining || c_.head == EncoderHead::NextSentence) v("next_sentence", next_sentence_);
}

// The rows of the table of positions: [length, width], or of RoBERTa, where padding has none, [batch, length, width].
Tensor Encoder::positions(const Tensor& ids) const {
  if (c_.kind != EncoderKind::Roberta) return positions_(arange(ids.graph(), ids.extent(1)));
  const Tensor counted = to(ne(ids, c_.padding), DType::I64);
  return positions_(cumsum(counted, 1) * counted + c_.padding);
}

Tensor Encoder::embed(const Tensor& ids, const Tensor& types) const {
  Tensor x = tokens_(ids) + positions(ids);
  if (c_.types > 1) x = x + types_(types);
  else if (c_.types == 1) x = x + types_.weight;  // one row, of every token
  return embedding_norm_(x);
}

Tensor Encoder::words(const Tensor& hidden) const {
  const Tensor h = norm_(activate(head_activation(), dense_(hidden)));
  return c_.tied ? linear(h, tokens_.weight, out_bias_) : out_(h);
}

Tensor Encoder::classified(const Tensor& hidden, const Tensor& pooled, Random* random) const {
  const auto drop_in = [&](const Tensor& x) { return drop(x, random, c_.dropout.head); };
  if (c_.head != EncoderHead::Sequence) return out_(drop_in(hidden));
  if (!has_head_dense()) return out_(drop_in(pooled));
  const Tensor first = first_token(hidden);
  return out_(drop_in(activate(head_activation(), dense_(c_.kind == EncoderKind::Roberta ? drop_in(first) : first))));
}

std::map<std::string, Tensor> Encoder::run(const Tensor& ids, const Tensor& mask, const Tensor& types, Random* random,
                                           const nn::At& at) const {
  const OpScope scope("Encoder", at);
  const Tensor seen = ne(mask, 0).unsqueeze(1).unsqueeze(1);  // [batch, 1, 1, length]
  const EncoderDropout& p = c_.dropout;
  // DistilBERT drops nothing of what attention adds
  const ResidualDropout residual{random, c_.kind == EncoderKind::DistilBert ? 0 : p.hidden, p.hidden};
  const AttentionOptions attention{.attn_mask = seen, .dropout_p = random ? p.attention : 0, .random = random};
  Tensor x = drop(embed(ids, types), random, p.hidden);
  for (const TransformerBlock& layer : layers_) x = layer(x, attention, residual);
  std::map<std::string, Tensor> out{{"hidden", x}};
  Tensor pooled;
  if (c_.pooler) out["pooled"] = pooled = tanh(pooler_(first_token(x)));
  if (predicts_words()) out["logits"] = words(x);
  else if (c_.head != EncoderHead::None && c_.head != EncoderHead::NextSentence)
    out["logits"] = classified(x, pooled, random);
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
  if (c.layers > std::ssize(w.tensors())) config.fail(c.layers, " layers, and ", w.tensors().size(), " weights");
  const bool needs_pooler =
      c.kind == EncoderKind::Bert &&
      (c.head == EncoderHead::Sequence || c.head == EncoderHead::PreTraining || c.head == EncoderHead::NextSentence);
  c.pooler = needs_pooler || m.weights.has("pooler.weight");
  m.architecture = c.architecture, m.labels = c.labels;
  m.padding = c.kind == EncoderKind::Roberta ? c.padding : 0;
  m.limits = {{"batch", o.batch}, {"length", c.length()}};
  const Encoder& encoder = m.add(Encoder(c));
  m.weights.require_all_used(str_cat("a ", c.architecture));
  const Shape shape{Dim::symbol("batch", 1, o.batch), Dim::symbol("length", 1, c.length())};
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
