// GPT-J (B. Wang and A. Komatsuzaki, 2021): parallel layers with one norm.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_gptj(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l,
             {.width = {"n_embd", "hidden_size"},
              .layers = {"n_layer", "num_hidden_layers"},
              .heads = {"n_head", "num_attention_heads"},
              .length = {"n_positions", "max_position_embeddings"}});
  l.norm = {.kind = NormKind::Layer, .eps = c.number("layer_norm_epsilon", 1e-5)};
  l.parallel = l.shared_norm = true;
  l.network = {.inner = c.size("n_inner", 4 * l.width),
               .activation = c.text("activation_function", "gelu_new"),
               .up_bias = true,
               .down_bias = true};
  const std::int64_t turned = c.size("rotary_dim", 64);
  if (turned > l.attention.head || turned % 2 != 0)
    c.fail("rotary_dim is ", turned, ", and heads have ", l.attention.head, " elements");
  l.ropes = {plain_rope(turned, 10000, true)};
  for (LanguageLayerKind& layer : l.layers) layer.rope = 0;
  l.tied = c.flag("tie_word_embeddings", false);
  l.head_bias = l.head_bias || l.top == LanguageHead::Words;
  if (c.has("rotary") && !c.flag("rotary", true)) c.fail("rotary is false, which is not supported");
  c.neutral({"n_ctx", "resid_pdrop", "embd_pdrop", "attn_pdrop", "scale_attn_weights", "summary_activation",
             "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

constexpr WeightName kGptJNames[] = {
    {"h.#.attn.bias", ""},
    {"h.#.attn.masked_bias", ""},
    {"h.#.attn.embed_positions", ""},
    {"wte", "tokens"},
    {"h.#.ln_1", "layers.#.attention_norm"},
    {"h.#.attn.q_proj", "layers.#.attention.query"},
    {"h.#.attn.k_proj", "layers.#.attention.key"},
    {"h.#.attn.v_proj", "layers.#.attention.value"},
    {"h.#.attn.out_proj", "layers.#.attention.output"},
    {"h.#.mlp.fc_in", "layers.#.network.up"},
    {"h.#.mlp.fc_out", "layers.#.network.down"},
    {"ln_f", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kGptJ{"gptj", "GPTJ", read_gptj, kGptJNames};

}  // namespace lc
