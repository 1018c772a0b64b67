// Falcon (E. Almazrouei et al., 2023): the layout of 7B (one head of keys), of 40B (groups) and of Falcon-RW (ALiBi).
#include <cmath>

#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_falcon(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l,
             {.width = {"hidden_size", "n_embed"},
              .layers = {"num_hidden_layers", "n_layer"},
              .heads = {"num_attention_heads", "n_head"},
              .kv_heads = {"num_kv_heads", "n_head_kv"}});
  l.norm = {.kind = NormKind::Layer, .eps = c.number("layer_norm_epsilon", 1e-5)};
  const bool modern = c.flag("new_decoder_architecture", false), one = c.flag("multi_query", true);
  const bool parallel = c.flag("parallel_attn", true), bias = c.flag("bias", false);
  const std::int64_t norms = c.size("num_ln_in_parallel_attn", modern ? 2 : 1);
  if (norms > 2) c.fail("num_ln_in_parallel_attn is ", norms, ", and not 1 or 2");
  if (norms == 2 && !modern) c.fail("num_ln_in_parallel_attn is 2 without new_decoder_architecture");
  if (modern && !parallel) c.fail("new_decoder_architecture needs parallel_attn");
  l.parallel = modern || parallel;
  l.shared_norm = l.parallel && norms == 1;
  LanguageAttention& a = l.attention;
  if (!modern) a.kv_heads = one ? 1 : a.heads;
  a.layout = modern || !one ? QueryKeyValue::Grouped : QueryKeyValue::Joined;
  set_attention_biases(l, bias, bias);
  l.network = {.inner = c.size("ffn_hidden_size", 4 * l.width),
               .activation = c.text("activation", "gelu"),
               .up_bias = bias,
               .down_bias = bias};
  if (c.flag("alibi", false)) {  // slopes in bf16, and divided as the scores are
    a.alibi = a.alibi_rounded = true;
    a.alibi_scale = 1 / std::sqrt(static_cast<double>(a.head));
    c.neutral({"rope_theta", "rope_scaling", "rope_parameters"});
  } else {
    read_one_rope(c, l);
  }
  l.tied = c.flag("tie_word_embeddings", true);
}

constexpr WeightName kFalconNames[] = {
    {"h.#.self_attention.maybe_rotary.inv_freq", ""},
    {"h.#.self_attention.rotary_emb.inv_freq", ""},
    {"word_embeddings", "tokens"},
    {"h.#.input_layernorm", "layers.#.attention_norm"},
    {"h.#.ln_attn", "layers.#.attention_norm"},
    {"h.#.post_attention_layernorm", "layers.#.network_norm"},
    {"h.#.ln_mlp", "layers.#.network_norm"},
    {"h.#.self_attention.query_key_value", "layers.#.attention.query_key_value"},
    {"h.#.self_attention.dense", "layers.#.attention.output"},
    {"h.#.mlp.dense_h_to_4h", "layers.#.network.up"},
    {"h.#.mlp.dense_4h_to_h", "layers.#.network.down"},
    {"ln_f", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kFalcon{"falcon", "Falcon", read_falcon, kFalconNames};

}  // namespace lc
