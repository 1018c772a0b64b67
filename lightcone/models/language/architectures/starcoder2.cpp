// StarCoder 2 (A. Lozhkov et al., 2024): grouped queries, plain networks, biases everywhere.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_starcoder2(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l);
  l.norm = {.kind = NormKind::Layer, .eps = c.number("norm_epsilon", 1e-5)};
  const bool bias = c.flag("use_bias", true);
  set_attention_biases(l, bias, bias);
  l.network = {.inner = c.size("intermediate_size"),
               .activation = c.text("hidden_act", "gelu_pytorch_tanh"),
               .up_bias = bias,
               .down_bias = bias};
  read_one_rope(c, l);
  if (c.has("sliding_window"))
    for (LanguageLayerKind& layer : l.layers) layer.window = c.size("sliding_window");
  l.tied = c.flag("tie_word_embeddings", true);
  c.only("mlp_type", "default");
  c.only("norm_type", "layer_norm");
  c.neutral({"residual_dropout", "embedding_dropout"});
}

constexpr WeightName kStarcoder2Names[] = {
    {"layers.#.mlp.c_fc", "layers.#.network.up"},
    {"layers.#.mlp.c_proj", "layers.#.network.down"},
};

}  // namespace

constinit const LanguageArchitecture kStarcoder2{"starcoder2", "Starcoder2", read_starcoder2, kStarcoder2Names,
                                                 kLlamaNames};

}  // namespace lc
