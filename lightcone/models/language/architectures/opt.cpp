// OPT (S. Zhang et al., 2022): learned positions from row 2 on; the 350M model has narrower embeddings and norms of
// sums.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_opt(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l);
  l.position_offset = 2, l.positions = l.length + l.position_offset, l.positions_by_mask = true;
  l.norm = {.kind = NormKind::Layer, .affine = c.flag("layer_norm_elementwise_affine", true)};
  const bool bias = c.flag("enable_bias", true), before = c.flag("do_layer_norm_before", true);
  l.place = before ? NormPlace::Before : NormPlace::Sum;
  l.final_norm = before && !c.flag("_remove_final_layer_norm", false);
  set_attention_biases(l, bias, bias);
  l.network = {.inner = c.size("ffn_dim"),
               .activation = c.text("activation_function", "relu"),
               .up_bias = bias,
               .down_bias = bias};
  if (const std::int64_t n = c.size("word_embed_proj_dim", l.width); n != l.width) l.embedding_width = n;
  l.tied = c.flag("tie_word_embeddings", true);
  if (!l.padding) l.padding = 1;
  c.neutral({"layerdrop", "init_std"});
}

constexpr WeightName kOptNames[] = {
    {"embed_tokens", "tokens"},
    {"embed_positions", "positions"},
    {"project_in", "embedding_projection"},
    {"project_out", "output_projection"},
    {"layers.#.self_attn_layer_norm", "layers.#.attention_norm"},
    {"layers.#.self_attn.q_proj", "layers.#.attention.query"},
    {"layers.#.self_attn.k_proj", "layers.#.attention.key"},
    {"layers.#.self_attn.v_proj", "layers.#.attention.value"},
    {"layers.#.self_attn.out_proj", "layers.#.attention.output"},
    {"layers.#.final_layer_norm", "layers.#.network_norm"},
    {"layers.#.fc1", "layers.#.network.up"},
    {"layers.#.fc2", "layers.#.network.down"},
    {"final_layer_norm", "norm"},
    {"layer_norm", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kOpt{"opt", "OPT", read_opt, kOptNames};

}  // namespace lc
