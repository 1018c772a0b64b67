// GPT-NeoX and Pythia (S. Black et al., 2022).
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_neox(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l);
  l.norm = {.kind = NormKind::Layer, .eps = c.number("layer_norm_eps", 1e-5)};
  l.parallel = c.flag("use_parallel_residual", true);
  l.attention.layout = QueryKeyValue::Grouped;
  const bool bias = c.flag("attention_bias", true);
  set_attention_biases(l, bias, bias);
  l.network = {.inner = c.size("intermediate_size"),
               .activation = c.text("hidden_act", "gelu"),
               .up_bias = true,
               .down_bias = true};
  read_one_rope(c, l, {.partial = 0.25, .theta_key = "rotary_emb_base", .partial_key = "rotary_pct"});
  l.tied = c.flag("tie_word_embeddings", false);
  c.neutral({"is_decoder", "rope_theta", "partial_rotary_factor"});
}

constexpr WeightName kNeoxNames[] = {
    {"layers.#.attention.bias", ""},
    {"layers.#.attention.masked_bias", ""},
    {"layers.#.attention.rotary_emb", ""},
    {"embed_in", "tokens"},
    {"layers.#.input_layernorm", "layers.#.attention_norm"},
    {"layers.#.post_attention_layernorm", "layers.#.network_norm"},
    {"layers.#.attention.query_key_value", "layers.#.attention.query_key_value"},
    {"layers.#.attention.dense", "layers.#.attention.output"},
    {"layers.#.mlp.dense_h_to_4h", "layers.#.network.up"},
    {"layers.#.mlp.dense_4h_to_h", "layers.#.network.down"},
    {"final_layer_norm", "norm"},
    {"embed_out", "head", true},
};

}  // namespace

constinit const LanguageArchitecture kGptNeox{"gpt_neox", "GPTNeoX", read_neox, kNeoxNames};

}  // namespace lc
