#include "lightcone/models/diffusion/pipeline/text_encoder.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "lightcone/runtime/names.h"

namespace lc::diffusion {
namespace {

constexpr std::int64_t kOldEnd = 2;  // what files of before 2023 say, whatever the token is

constexpr WeightName kTextNames[] = {
    {"embeddings.position_ids", ""},
    {"embeddings.token_embedding", "tokens"},
    {"embeddings.position_embedding", "positions"},
    {"encoder.layers.#.self_attn.q_proj", "layers.#.query"},
    {"encoder.layers.#.self_attn.k_proj", "layers.#.key"},
    {"encoder.layers.#.self_attn.v_proj", "layers.#.value"},
    {"encoder.layers.#.self_attn.out_proj", "layers.#.output"},
    {"encoder.layers.#.layer_norm1", "layers.#.attention_norm"},
    {"encoder.layers.#.mlp.fc1", "layers.#.up"},
    {"encoder.layers.#.mlp.fc2", "layers.#.down"},
    {"encoder.layers.#.layer_norm2", "layers.#.feed_forward_norm"},
    {"final_layer_norm", "norm"},
    {"text_projection", "projection"},
};
constexpr std::string_view kTextPrefixes[] = {"text_model."};

}  // namespace

TextEncoderConfig TextEncoderConfig::from(const ConfigFile& c, std::size_t weights) {
  TextEncoderConfig t;
  c.only("model_type", "clip_text_model");
  const std::vector<std::string> classes = c.texts("architectures");
  const std::string name = classes.empty() ? "CLIPTextModel" : classes.front();
  if (name != "CLIPTextModel" && name != "CLIPTextModelWithProjection")
    c.fail("the architecture ", in_quotes(name), " is neither CLIPTextModel nor CLIPTextModelWithProjection");
  t.vocab = c.size("vocab_size", 49408), t.width = c.size("hidden_size", 512),
  t.layers = c.size("num_hidden_layers", 12);
  t.heads = c.size("num_attention_heads", 8), t.inner = c.size("intermediate_size", 2048);
  t.positions = c.size("max_position_embeddings", 77);
  t.end = c.id("eos_token_id", 49407);
  t.eps = c.number("layer_norm_eps", 1e-5);
  t.activation = c.text("hidden_act", "quick_gelu");
  const std::int64_t projection = c.size("projection_dim", 512);
  if (name == "CLIPTextModelWithProjection") t.projection = projection;
  if (t.layers > static_cast<std::int64_t>(weights)) c.fail(t.layers, " layers, and ", weights, " weights");
  if (t.heads > t.width || t.width % t.heads != 0)
    c.fail(t.heads, " attention heads do not divide a width of ", t.width);
  if (!(t.eps > 0)) c.fail("layer_norm_eps is ", t.eps, ", and not above 0");
  const auto& known = activation_names();
  if (std::ranges::find(known, t.activation) == known.end())
    c.fail("hidden_act is ", in_quotes(t.activation), ", which is no known activation; the nearest is ",
           nearest_name(t.activation, known));
  c.require_all_known("clip_text_model");
  return t;
}

TextEncoder::TextEncoder(TextEncoderConfig c)
    : c_(std::move(c)),
      tokens_(c_.vocab, c_.width),
      positions_(c_.positions, c_.width),
      layers_(static_cast<std::size_t>(c_.layers), TransformerBlock({.width = c_.width,
                                                                     .heads = c_.heads,
                                                                     .inner = c_.inner,
                                                                     .eps = c_.eps,
                                                                     .activation = c_.activation,
                                                                     .norm_first = true})),
      norm_(c_.width, {.eps = c_.eps}) {
  if (c_.projection > 0) projection_.emplace(c_.width, c_.projection, nn::LinearOptions{.bias = false});
}
void TextEncoder::visit(nn::Visitor& v) {
  v("tokens", tokens_)("positions", positions_)("layers", layers_)("norm", norm_);
  if (projection_) v("projection", *projection_);
}
TextEncoder::Output TextEncoder::operator()(const Tensor& ids, const nn::At& at) const {
  const OpScope scope("TextEncoder", at);
  Output out;
  Tensor x = tokens_(ids) + positions_(arange(ids, ids.extent(1)));
  for (const TransformerBlock& layer : layers_) {
    out.penultimate = x;
    x = layer(x, {.is_causal = true});
  }
  out.hidden = norm_(x);
  const Tensor ends = c_.end == kOldEnd ? ids : to(eq(ids, c_.end), DType::I64);
  const Tensor where = argmax(ends, 1).unsqueeze(1).unsqueeze(2).expand({ids.extent(0), 1, c_.width});
  out.pooled = gather(out.hidden, 1, where).squeeze(1);
  if (projection_) out.embeds = (*projection_)(out.pooled);
  return out;
}

LoadedModel load_text_encoder(const Weights& w, const LoadModelOptions& o) {
  const ConfigFile config(w, o.ignore);
  const TextEncoderConfig c = TextEncoderConfig::from(config, w.tensors().size());
  LoadedModel m("clip_text_model", WeightTable(w, kTextPrefixes, kTextNames));
  m.architecture = c.projection > 0 ? "CLIPTextModelWithProjection" : "CLIPTextModel";
  m.limits = {{"batch", o.batch}, {"length", c.positions}};
  const TextEncoder& net = m.add(TextEncoder(c));
  m.weights.require_all_used(str_cat("a ", m.architecture));
  const Shape shape{Dim::symbol("batch", 1, o.batch), Dim::symbol("length", 1, c.positions)};
  const TextEncoder::Output out = net(m.inputs["input_ids"] = m.graph().input("input_ids", shape, DType::I64));
  m.give("hidden", out.hidden);
  m.give("penultimate", out.penultimate);
  m.give("pooled", out.pooled);
  if (out.embeds.defined()) m.give("text_embeds", out.embeds);
  m.retrieve(o);
  return m;
}

}  // namespace lc::diffusion
