// BLOOM (BigScience, 2022): ALiBi, and a norm after the table of tokens.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_bloom(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l,
             {.width = {"hidden_size", "n_embed"},
              .layers = {"n_layer", "num_hidden_layers"},
              .heads = {"n_head", "num_attention_heads"},
              .length = {"seq_length", "max_position_embeddings"}});
  l.norm = {.kind = NormKind::Layer, .eps = c.number("layer_norm_epsilon", 1e-5)};
  l.embedding_norm = true;
  l.attention.alibi = true;
  l.attention.layout = QueryKeyValue::Grouped;
  set_attention_biases(l, true, true);
  l.network = {.inner = 4 * l.width, .activation = "gelu_pytorch_tanh", .up_bias = true, .down_bias = true};
  l.tied = c.flag("tie_word_embeddings", true);
  c.lacks({"apply_residual_connection_post_layernorm"});
  c.neutral({"pretraining_tp", "slow_but_exact", "offset_alibi", "attention_softmax_in_fp32", "masked_softmax_fusion",
             "bias_dropout_fusion", "skip_bias_add", "skip_bias_add_qkv", "n_inner", "unk_token_id"});
}

constexpr WeightName kBloomNames[] = {
    {"word_embeddings", "tokens"},
    {"word_embeddings_layernorm", "embedding_norm"},
    {"h.#.input_layernorm", "layers.#.attention_norm"},
    {"h.#.post_attention_layernorm", "layers.#.network_norm"},
    {"h.#.self_attention.query_key_value", "layers.#.attention.query_key_value"},
    {"h.#.self_attention.dense", "layers.#.attention.output"},
    {"h.#.mlp.dense_h_to_4h", "layers.#.network.up"},
    {"h.#.mlp.dense_4h_to_h", "layers.#.network.down"},
    {"ln_f", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kBloom{"bloom", "Bloom", read_bloom, kBloomNames};

}  // namespace lc
